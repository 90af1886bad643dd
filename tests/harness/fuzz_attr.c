// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls around perf events which alternate between two sample periods.
 *
 * usage: fuzz_attr SEED CALLS
 *
 * Most events open, count and overflow. Their samples must have periods of
 * their event, and a new period is taken if it is one. Which attrs open is for
 * the selftests to say, and everything else for the kernel's own checks.
 *
 * The calls by kind are printed, and how many succeeded. The exit status is 1
 * if the kernel broke a rule, 4 if it does not know alternate periods.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define SLOTS		24
#define CHILDREN	4
#define LONGS		8

enum kind {
	OPEN, CLOSE, MMAP, MUNMAP, READ, IOC_ENABLE, IOC_DISABLE, IOC_REFRESH, IOC_RESET,
	IOC_PERIOD, IOC_SET_OUTPUT, IOC_PAUSE_OUTPUT, IOC_ID, FORK, KILL, WAIT, THREAD,
	AFFINITY, HOTPLUG, KINDS
};

static const char * const kinds[] = {
	"open", "close", "mmap", "munmap", "read", "ENABLE", "DISABLE", "REFRESH", "RESET",
	"PERIOD", "SET_OUTPUT", "PAUSE_OUTPUT", "ID", "fork", "kill", "wait", "thread",
	"affinity", "hotplug"
};

/* An open event. */
struct slot {
	int fd;			/* -1: the slot is free */
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	bool leader;
	bool alternates;
	__u64 id;
	__u64 longs[LONGS];	/* every sample_period that it has had ... */
	int nr_longs;		/* ... or more than there is room for */
	struct perf_event_mmap_page *page;
	size_t mapped;
	bool redirected;	/* has once written to the buffer of another event */
	bool readable;		/* the ring buffer, from its tail on */
};

/* The base of attrs. */
struct base {
	__u32 type;
	__u64 config;
	bool opens;
};

static struct base bases[] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D },
	{ PERF_TYPE_RAW, 0x11 },
	{ PERF_TYPE_RAW, 0x08 },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY },
	{ PERF_TYPE_TRACEPOINT, 0 },
};

static struct slot slots[SLOTS];
static pid_t children[CHILDREN];
static unsigned long calls, limit, violations, counts[KINDS], succeeded[KINDS];
static unsigned long alternating, samples, alternating_samples, checked, lost, throttled;
static __u64 seed, state;
static int cpus;

/* splitmix64 */
static __u64 rnd(void)
{
	__u64 z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;

	return z ^ (z >> 31);
}

static __u64 below(__u64 n)
{
	return rnd() % n;
}

static bool one_in(__u64 n)
{
	return !below(n);
}

/* Counts a call; returns what it returned, errno untouched. */
static long called(enum kind kind, long ret)
{
	calls++;
	counts[kind]++;
	succeeded[kind] += ret >= 0;

	return ret;
}

static void violation(const char *what, const struct perf_event_attr *attr,
		      long long expected, long long seen)
{
	if (++violations > 20)
		return;
	printf("VIOLATION seed %llu call %lu: %s: expected %lld, is %lld;",
	       seed, calls, what, expected, seen);
	printf(" type %u config %llx size %u freq %u period %llu alternative %llu",
	       attr->type, attr->config, attr->size, attr->freq,
	       attr->sample_period, attr->alternative_sample_period);
	printf(" jitter %u count %u\n",
	       attr->jitter_alternate_period, attr->alternative_sample_count);
}

static void work(unsigned long loops)
{
	static char pages[16 * 4096];

	for (unsigned long i = 0; i < loops; i++) {
		asm volatile("" ::: "memory");
		if (i % 1024)
			continue;
		getppid();
		if (i % 8192)
			continue;
		sched_yield();
		madvise(pages + 4096, sizeof(pages) - 8192, MADV_DONTNEED);
		memset(pages, 1, sizeof(pages));
	}
}

static void *thread(void *loops)
{
	work((unsigned long)loops);

	return NULL;
}

static int start_thread(pthread_t *id, unsigned long loops)
{
	errno = pthread_create(id, NULL, thread, (void *)loops);

	return errno ? -1 : 0;
}

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		      unsigned long flags)
{
	return syscall(__NR_perf_event_open, attr, pid, cpu, group, flags);
}

/* Does the PMU open such an event, and does it with alternate periods? */
static bool opens(const struct base *base, __u64 window)
{
	struct perf_event_attr attr = {
		.type = base->type,
		.config = base->config,
		.size = sizeof(attr),
		.sample_period = 1000000,
		.alternative_sample_period = window,
		.disabled = 1,
	};
	int fd = event_open(&attr, 0, -1, -1, 0);

	if (fd < 0 && errno == E2BIG) {
		puts("kernel without alternate sample periods");
		exit(4);
	}
	if (fd >= 0)
		close(fd);

	return fd >= 0;
}

static __u64 a_period(void)
{
	static const __u64 odd[] = {
		0, 1, 2, 3, 100, INT_MAX, UINT_MAX, 1ULL << 32, (1ULL << 63) - 1,
		1ULL << 63, (1ULL << 63) + 1, ~0ULL,
	};

	if (one_in(12))
		return odd[below(ARRAY_SIZE(odd))];
	if (one_in(4))
		return 1 + below(100);

	return (200ULL << below(12)) + below(200);
}

static void set_new_members(struct perf_event_attr *attr)
{
	static const __u32 jitters[] = { 31, 64, ~0U };

	/* An event without a period cannot alternate: mostly do not try. */
	if (one_in(3) || (!attr->sample_period && !one_in(8)))
		return;
	attr->alternative_sample_period = one_in(8) ? attr->sample_period : a_period();
	if (one_in(2))
		attr->jitter_alternate_period = below(31);
	/* Jitter needs no window. */
	if (one_in(16))
		attr->alternative_sample_period = 0;
	if (one_in(16))
		attr->jitter_alternate_period = jitters[below(ARRAY_SIZE(jitters))];
	if (one_in(4))
		attr->alternative_sample_count = below(256);
	if (one_in(32))
		attr->alternative_sample_count = 1U << below(32);
}

static void set_sampling(struct perf_event_attr *attr)
{
	attr->sample_period = a_period();
	if (one_in(8)) {
		attr->freq = 1;
		attr->sample_freq = 1 + below(5000);
	}
	/* With the identifier, check_sample() finds the event in any ring buffer. */
	attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
	if (one_in(2))
		attr->sample_type |= rnd() &
			(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
			 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID |
			 PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW |
			 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
			 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
			 PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR |
			 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE |
			 PERF_SAMPLE_CODE_PAGE_SIZE);
	if (one_in(4))
		attr->sample_type |= PERF_SAMPLE_READ;
	attr->sample_regs_user = 1;
	attr->sample_regs_intr = 1;
	attr->sample_stack_user = 8 * below(32);
	attr->wakeup_events = below(4);
}

/* An attr that is valid more often than not. */
static void make_attr(struct perf_event_attr *attr, bool sibling)
{
	const struct base *base;

	do {
		base = &bases[one_in(2) ? below(2) : below(ARRAY_SIZE(bases))];
	} while (!base->opens);

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = base->type;
	attr->config = base->config;
	if (!one_in(4))
		set_sampling(attr);

	attr->disabled = one_in(3);
	attr->exclude_kernel = one_in(2);
	attr->exclude_user = one_in(8);
	attr->inherit = one_in(2);
	attr->inherit_thread = attr->inherit && one_in(4);
	attr->inherit_stat = one_in(8);
	attr->pinned = !sibling && one_in(16);
	attr->exclusive = !sibling && one_in(16);
	attr->task = one_in(4);
	attr->sample_id_all = one_in(2);
	attr->context_switch = one_in(8);
	attr->write_backward = one_in(16);
	attr->enable_on_exec = attr->disabled && one_in(2);
	attr->remove_on_exec = !attr->enable_on_exec && one_in(8);
	attr->read_format = below(32);
	if (!one_in(4))
		attr->read_format &= ~PERF_FORMAT_GROUP;
	set_new_members(attr);
	if (attr->sample_type)
		attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
}

/* Returns a random slot that is open, or free; NULL if there is none. */
static struct slot *a_slot(bool open)
{
	int first = below(SLOTS);

	for (int i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[(first + i) % SLOTS];

		if (open == !(slot->fd < 0))
			return slot;
	}

	return NULL;
}

/* An event whose ring buffer another one can use, if there is one. */
static long an_output(const struct slot *slot)
{
	int first = below(SLOTS);

	for (int i = 0; i < SLOTS; i++) {
		const struct slot *other = &slots[(first + i) % SLOTS];

		if (other->fd >= 0 && other != slot && other->page &&
		    other->cpu == slot->cpu && other->pid == slot->pid)
			return other->fd;
	}

	return -1;
}

static void unmap_slot(struct slot *slot)
{
	if (!slot->page)
		return;
	called(MUNMAP, munmap(slot->page, slot->mapped));
	slot->page = NULL;
}

static void close_slot(struct slot *slot)
{
	/* The mapping may outlive the descriptor for a while: try both orders. */
	bool first = one_in(2);

	if (first)
		unmap_slot(slot);
	called(CLOSE, close(slot->fd));
	if (!first)
		unmap_slot(slot);
	slot->fd = -1;
}

static void do_open(void)
{
	struct slot *slot = a_slot(false), *leader = one_in(2) ? a_slot(true) : NULL;
	unsigned long flags = 0;
	struct perf_event_attr attr;
	int fd, group = -1, cpu;
	pid_t pid = 0;

	if (!slot) {
		slot = &slots[below(SLOTS)];
		if (slot == leader)
			leader = NULL;
		close_slot(slot);
	}

	if (leader && !leader->leader && !one_in(8))
		leader = NULL;

	make_attr(&attr, leader);
	cpu = one_in(attr.inherit ? 2 : 4) ? (int)below(cpus) : -1;
	switch (below(16)) {
	case 0 ... 3:
		pid = children[below(CHILDREN)];
		break;
	case 4 ... 5:
		pid = -1;
		break;
	}
	if (leader) {
		group = leader->fd;
		if (!one_in(16)) {
			pid = leader->pid;
			cpu = leader->cpu;
		}
		if (one_in(8))
			flags |= PERF_FLAG_FD_OUTPUT;
	}
	if (pid == -1 && cpu == -1 && !one_in(8))
		cpu = below(cpus);

	fd = called(OPEN, event_open(&attr, pid, cpu, group, flags));
	if (fd < 0)
		return;

	memset(slot, 0, sizeof(*slot));
	slot->fd = fd;
	slot->attr = attr;
	slot->pid = pid;
	slot->cpu = cpu;
	slot->leader = group == -1;
	slot->redirected = flags & PERF_FLAG_FD_OUTPUT;
	slot->longs[slot->nr_longs++] = attr.sample_period;
	slot->alternates = attr.alternative_sample_period;
	alternating += slot->alternates;
	called(IOC_ID, ioctl(fd, PERF_EVENT_IOC_ID, &slot->id));
}

static void do_close(void)
{
	struct slot *slot = a_slot(true);

	if (slot)
		close_slot(slot);
}

static void do_mmap(void)
{
	struct slot *slot = a_slot(true);
	int prot = PROT_READ;
	void *page;

	if (!slot || slot->page)
		return;
	if (!one_in(8))
		prot |= PROT_WRITE;
	/* A buffer that was first mapped read-only is overwritten, maybe while it is read. */
	slot->readable = prot & PROT_WRITE && !slot->attr.write_backward && !slot->redirected;
	slot->mapped = (1 + (1UL << below(4))) * getpagesize();
	page = mmap(NULL, slot->mapped, prot, MAP_SHARED, slot->fd, 0);
	if (called(MMAP, page == MAP_FAILED ? -1 : 0) == 0)
		slot->page = page;
}

static void do_munmap(void)
{
	struct slot *slot = a_slot(true);

	if (slot)
		unmap_slot(slot);
}

/* Is this an interval of the nominal length, jittered as the attr says? */
static bool is_interval(const struct perf_event_attr *attr, __u64 period, __u64 nominal)
{
	__u64 half = 0;

	if (attr->jitter_alternate_period)
		half = 1ULL << attr->jitter_alternate_period;
	if (half > nominal / 2)
		half = nominal / 2;

	return period >= nominal - half && period <= nominal + half;
}

/* With jitter the first interval is drawn from 1 to the long period. */
static bool may_be_first(const struct perf_event_attr *attr, __u64 period, __u64 length)
{
	return attr->jitter_alternate_period && period && period <= length;
}

static void check_sample(const __u64 *word)
{
	const __u64 before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			     PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
	const struct slot *slot = slots;
	__u64 period;

	samples++;
	while (slot->fd < 0 || slot->id != word[0])
		if (++slot == slots + SLOTS)
			return;
	alternating_samples += slot->alternates;

	/* Clocks and other software events, of whatever type, may report something else. */
	if ((slot->attr.type != PERF_TYPE_HARDWARE && slot->attr.type != PERF_TYPE_HW_CACHE &&
	     slot->attr.type != PERF_TYPE_RAW) || slot->attr.freq ||
	    slot->nr_longs > LONGS || !(slot->attr.sample_type & PERF_SAMPLE_PERIOD))
		return;

	checked++;
	period = word[__builtin_popcountll(slot->attr.sample_type & before)];
	if (slot->alternates &&
	    is_interval(&slot->attr, period, slot->attr.alternative_sample_period))
		return;
	for (int i = 0; i < slot->nr_longs; i++)
		if (is_interval(&slot->attr, period, slot->longs[i]) ||
		    may_be_first(&slot->attr, period, slot->longs[i]))
			return;
	violation("period of a sample", &slot->attr, slot->longs[0], period);
}

/* Checks the content of a ring buffer, and leaves it empty. */
static void drain(struct slot *slot)
{
	struct perf_event_mmap_page *page = slot->page;
	__u64 tail = page->data_tail, head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	while (tail < head && head - tail <= page->data_size) {
		struct perf_event_header header;
		__u64 record[16];

		/* A record begins at a multiple of 8: the header never wraps. */
		memcpy(&header, (char *)page + page->data_offset + tail % page->data_size,
		       sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || header.size > head - tail) {
			/* Reading may cause a page fault, which is an event and may overwrite. */
			if (__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) == head)
				violation("size of a record", &slot->attr, head - tail,
					  header.size);
			break;
		}
		for (int i = 0; i < 16 && 8 * i < header.size; i++)
			memcpy(&record[i], (char *)page + page->data_offset +
			       (tail + 8 * i) % page->data_size, 8);
		if (header.type == PERF_RECORD_SAMPLE)
			check_sample(record + 1);
		lost += header.type == PERF_RECORD_LOST;
		throttled += header.type == PERF_RECORD_THROTTLE;
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void do_read(void)
{
	struct slot *slot = a_slot(true);
	__u64 values[256];

	if (!slot)
		return;
	called(READ, read(slot->fd, values, one_in(8) ? below(64) : sizeof(values)));
}

static void do_drain(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0 && slots[i].page && slots[i].readable)
			drain(&slots[i]);
}

static void do_period(struct slot *slot)
{
	__u64 period = a_period();
	bool valid = slot->attr.sample_period && period && !(period >> 63);
	int expected = valid ? 0 : -EINVAL, err = 0;

	if (called(IOC_PERIOD, ioctl(slot->fd, PERF_EVENT_IOC_PERIOD, &period)))
		err = -errno;

	if (slot->attr.freq)
		return;
	if (err != expected)
		violation("PERF_EVENT_IOC_PERIOD", &slot->attr, expected, err);
	if (err)
		return;
	if (slot->nr_longs < LONGS)
		slot->longs[slot->nr_longs] = period;
	slot->nr_longs++;
}

static void do_ioctl(void)
{
	struct slot *slot = a_slot(true);
	unsigned long group = one_in(4) ? PERF_IOC_FLAG_GROUP : 0;
	long output;

	if (!slot)
		return;
	switch (below(19)) {
	case 0 ... 4:
		called(IOC_ENABLE, ioctl(slot->fd, PERF_EVENT_IOC_ENABLE, group));
		break;
	case 5 ... 6:
		called(IOC_DISABLE, ioctl(slot->fd, PERF_EVENT_IOC_DISABLE, group));
		break;
	case 7 ... 8:
		called(IOC_REFRESH, ioctl(slot->fd, PERF_EVENT_IOC_REFRESH, (long)below(6) - 1));
		break;
	case 9:
		called(IOC_RESET, ioctl(slot->fd, PERF_EVENT_IOC_RESET, group));
		break;
	case 10 ... 15:
		do_period(slot);
		break;
	case 16 ... 17:
		output = one_in(4) ? (long)below(64) - 1 : an_output(slot);
		if (!called(IOC_SET_OUTPUT, ioctl(slot->fd, PERF_EVENT_IOC_SET_OUTPUT, output)))
			slot->redirected = true;
		break;
	case 18:
		called(IOC_PAUSE_OUTPUT,
		       ioctl(slot->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, (long)one_in(3)));
		break;
	}
}

static void do_work(void)
{
	work(below(20000));
}

/* The actions of a child: everything by which events are inherited. */
static void live(void)
{
	pthread_t id;
	pid_t pid;

	alarm(20);
	for (int steps = below(6); steps; steps--) {
		switch (below(8)) {
		case 0:
			pid = fork();
			if (!pid) {
				work(below(10000));
				_exit(0);
			}
			if (pid > 0 && one_in(2))
				waitpid(pid, NULL, 0);
			break;
		case 1:
			if (!start_thread(&id, below(10000)) && one_in(2))
				pthread_join(id, NULL);
			break;
		case 2:
			execl("/proc/self/exe", "fuzz_attr", NULL);
			break;
		default:
			work(below(50000));
		}
	}
	_exit(0);
}

static void end_child(pid_t *child)
{
	if (!one_in(4))
		called(KILL, kill(*child, SIGKILL));
	while (called(WAIT, waitpid(*child, NULL, 0)) < 0 && errno == EINTR)
		;
	*child = 0;
}

static void do_fork(void)
{
	pid_t *child = &children[below(CHILDREN)];

	if (*child)
		end_child(child);
	fflush(stdout);
	*child = called(FORK, fork());
	if (!*child)
		live();
	if (*child < 0)
		*child = 0;
}

static void do_thread(void)
{
	pthread_t id;

	if (called(THREAD, start_thread(&id, below(10000))))
		return;
	work(below(5000));
	pthread_join(id, NULL);
}

static void do_affinity(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(below(cpus), &set);
	if (one_in(4))
		CPU_SET(below(cpus), &set);
	called(AFFINITY, sched_setaffinity(one_in(4) ? children[below(CHILDREN)] : 0,
					   sizeof(set), &set));
}

static int set_online(int cpu, const char *online)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	ret = write(fd, online, 1);
	close(fd);

	return ret;
}

/* Takes the last CPU offline and back; rarely, as it takes long. */
static void do_hotplug(void)
{
	if (cpus < 2 || !one_in(10))
		return;
	called(HOTPLUG, set_online(cpus - 1, "0"));
	for (int i = 0; i < 20; i++)
		do_open();
	work(below(10000));
	called(HOTPLUG, set_online(cpus - 1, "1"));
}

static const struct {
	void (*run)(void);
	int weight;
} actions[] = {
	{ do_open, 200 }, { do_close, 100 }, { do_mmap, 80 }, { do_munmap, 10 },
	{ do_read, 200 }, { do_drain, 40 }, { do_ioctl, 800 }, { do_work, 30 },
	{ do_fork, 2 }, { do_thread, 3 }, { do_affinity, 10 }, { do_hotplug, 10 },
};

static void act(void)
{
	int total = 0, i;

	for (i = 0; i < (int)ARRAY_SIZE(actions); i++)
		total += actions[i].weight;
	total = below(total);
	for (i = 0; total >= actions[i].weight; i++)
		total -= actions[i].weight;
	actions[i].run();
}

static void setup(void)
{
	FILE *id = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");

	if (id) {
		for (unsigned int i = 0; i < ARRAY_SIZE(bases); i++)
			if (bases[i].type == PERF_TYPE_TRACEPOINT &&
			    fscanf(id, "%llu", &bases[i].config) != 1)
				bases[i].config = 0;
		fclose(id);
	}
	cpus = sysconf(_SC_NPROCESSORS_CONF);
	for (int i = 0; i < SLOTS; i++)
		slots[i].fd = -1;

	printf("seed %llu, %d CPUs; events without and with alternate periods:", seed, cpus);
	for (unsigned int i = 0; i < ARRAY_SIZE(bases); i++) {
		struct base *base = &bases[i];

		base->opens = opens(base, 0);
		printf(" %u:%llx %s", base->type, base->config,
		       !base->opens ? "no," : opens(base, 1000) ? "both," : "without,");
	}
	putchar('\n');
}

static void report(void)
{
	for (int kind = 0; kind < KINDS; kind++)
		printf("%-18s%8lu: ok %lu\n", kinds[kind], counts[kind], succeeded[kind]);
	printf("seed %llu: %lu calls, %lu alternating events, ", seed, calls, alternating);
	printf("%lu samples, %lu of alternating events, ", samples, alternating_samples);
	printf("%lu periods checked, %lu lost, %lu throttled, %lu violations\n",
	       checked, lost, throttled, violations);
}

int main(int argc, char **argv)
{
	if (argc < 2) {		/* a child after its exec */
		work(20000);
		return 0;
	}
	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_attr SEED CALLS\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 0);
	limit = strtoul(argv[2], NULL, 0);
	state = seed;

	setup();
	while (calls < limit)
		act();

	for (int i = 0; i < CHILDREN; i++)
		if (children[i])
			end_child(&children[i]);
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0)
			close_slot(&slots[i]);
	report();

	return !!violations;
}
