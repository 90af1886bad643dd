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
 * The last line tells how much was done. The exit status is 1 if the kernel
 * broke a rule.
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

/* An open event. */
struct slot {
	int fd;			/* -1: the slot is free */
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	bool leader;
	__u64 longs[LONGS];	/* every sample_period that it has had ... */
	int nr_longs;		/* ... or more than there is room for */
	struct perf_event_mmap_page *page;
	size_t mapped;
};

static const struct {
	__u32 type;
	__u64 config;
} bases[] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ PERF_TYPE_RAW, 0x11 },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
};

static struct slot slots[SLOTS];
static pid_t children[CHILDREN];
static unsigned long calls, opens, opened, alternating, samples, alternating_samples, checked;
static unsigned long hotplugs, violations;
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

static void violation(const char *what, const struct perf_event_attr *attr,
		      long long expected, long long seen)
{
	if (violations++ > 20)
		return;
	printf("VIOLATION seed %llu call %lu: %s: expected %lld, is %lld;",
	       seed, calls, what, expected, seen);
	printf(" type %u config %llx period %llu alternative %llu jitter %u count %u\n",
	       attr->type, attr->config, attr->sample_period, attr->alternative_sample_period,
	       attr->jitter_alternate_period, attr->alternative_sample_count);
}

static void work(unsigned long loops)
{
	static char pages[16 * 4096];

	for (unsigned long i = 0; i < loops; i++) {
		asm volatile("" ::: "memory");
		if (i % 8192)
			continue;
		sched_yield();
		madvise(pages + 4096, sizeof(pages) - 8192, MADV_DONTNEED);
		memset(pages, 1, sizeof(pages));
	}
}

static __u64 a_period(void)
{
	static const __u64 odd[] = {
		0, 1, 2, 3, INT_MAX, UINT_MAX, 1ULL << 32, (1ULL << 63) - 1, 1ULL << 63, ~0ULL,
	};

	if (one_in(12))
		return odd[below(ARRAY_SIZE(odd))];
	if (one_in(4))
		return 1 + below(100);

	return (200ULL << below(12)) + below(200);
}

static void set_new_members(struct perf_event_attr *attr)
{
	/* An event without a period cannot alternate: mostly do not try. */
	if (one_in(3) || (!attr->sample_period && !one_in(8)))
		return;
	/* Jitter needs no window. */
	if (!one_in(16))
		attr->alternative_sample_period = a_period();
	if (one_in(2))
		attr->jitter_alternate_period = below(one_in(16) ? UINT_MAX : 31);
	if (one_in(4))
		attr->alternative_sample_count = below(one_in(16) ? UINT_MAX : 256);
}

/* An attr that is valid more often than not. */
static void make_attr(struct perf_event_attr *attr, bool sibling)
{
	int base = one_in(2) ? below(2) : below(ARRAY_SIZE(bases));

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = bases[base].type;
	attr->config = bases[base].config;
	if (!one_in(4)) {
		attr->sample_period = a_period();
		if (one_in(8)) {
			attr->freq = 1;
			attr->sample_freq = 1 + below(5000);
		}
		attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
		attr->sample_type |= rnd() &
			(PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
			 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW);
		attr->wakeup_events = below(4);
	}
	attr->disabled = one_in(3);
	attr->exclude_kernel = one_in(2);
	attr->inherit = one_in(2);
	attr->inherit_thread = attr->inherit && one_in(4);
	attr->inherit_stat = one_in(8);
	attr->pinned = !sibling && one_in(16);
	attr->exclusive = !sibling && one_in(16);
	attr->enable_on_exec = attr->disabled && one_in(2);
	attr->remove_on_exec = !attr->enable_on_exec && one_in(8);
	attr->read_format = below(32);
	if (!one_in(4))
		attr->read_format &= ~PERF_FORMAT_GROUP;
	set_new_members(attr);
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

static void close_slot(struct slot *slot)
{
	/* The mapping may outlive the descriptor for a while: try both orders. */
	bool first = one_in(2);

	if (first)
		close(slot->fd);
	if (slot->page)
		munmap(slot->page, slot->mapped);
	if (!first)
		close(slot->fd);
	slot->page = NULL;
	slot->fd = -1;
}

static void do_open(void)
{
	struct slot *slot = a_slot(false), *leader = one_in(2) ? a_slot(true) : NULL;
	struct perf_event_attr attr;
	int fd, cpu;
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
	if (one_in(4))
		pid = children[below(CHILDREN)];
	else if (one_in(6))
		pid = -1;
	if (leader && !one_in(16)) {
		pid = leader->pid;
		cpu = leader->cpu;
	}
	if (pid == -1 && cpu == -1)
		cpu = below(cpus);

	opens++;
	fd = syscall(__NR_perf_event_open, &attr, pid, cpu, leader ? leader->fd : -1, 0);
	if (fd < 0)
		return;

	opened++;
	alternating += !!attr.alternative_sample_period;
	*slot = (struct slot) {
		.fd = fd,
		.attr = attr,
		.pid = pid,
		.cpu = cpu,
		.leader = !leader,
		.longs = { attr.sample_period },
		.nr_longs = 1,
	};
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
	void *page;

	if (!slot || slot->page)
		return;
	slot->mapped = (1 + (1UL << below(4))) * getpagesize();
	page = mmap(NULL, slot->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, slot->fd, 0);
	if (page != MAP_FAILED)
		slot->page = page;
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

static void check_period(const struct slot *slot, __u64 period)
{
	const struct perf_event_attr *attr = &slot->attr;

	samples++;
	alternating_samples += !!attr->alternative_sample_period;
	/* Software events may report something else. */
	if (attr->type == PERF_TYPE_SOFTWARE || attr->freq || slot->nr_longs > LONGS)
		return;

	checked++;
	if (attr->alternative_sample_period &&
	    is_interval(attr, period, attr->alternative_sample_period))
		return;
	for (int i = 0; i < slot->nr_longs; i++) {
		if (is_interval(attr, period, slot->longs[i]))
			return;
		/* With jitter the first interval is drawn from 1 to the long period. */
		if (attr->jitter_alternate_period && period && period <= slot->longs[i])
			return;
	}
	violation("period of a sample", attr, slot->longs[0], period);
}

/* Checks the content of a ring buffer, and leaves it empty. */
static void drain(struct slot *slot)
{
	struct perf_event_mmap_page *page = slot->page;
	const char *data = (char *)page + page->data_offset;
	__u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	int place = 8 + 8 * __builtin_popcountll(slot->attr.sample_type &
		(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		 PERF_SAMPLE_CPU));

	while (tail < head) {
		/* A record begins at a multiple of 8: the header never wraps. */
		const struct perf_event_header *header = (void *)(data + tail % page->data_size);

		if (header->size < sizeof(*header) || header->size > head - tail) {
			violation("size of a record", &slot->attr, head - tail, header->size);
			break;
		}
		if (header->type == PERF_RECORD_SAMPLE)
			check_period(slot, *(__u64 *)(data + (tail + place) % page->data_size));
		tail += header->size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

static void do_drain(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].page)
			drain(&slots[i]);
}

static void do_read(void)
{
	struct slot *slot = a_slot(true);
	__u64 values[256];

	if (slot && read(slot->fd, values, sizeof(values)) > 0)
		work(100);
}

static void do_period(void)
{
	struct slot *slot = a_slot(true);
	__u64 period = a_period();
	int expected, err = 0;

	if (!slot)
		return;
	expected = slot->attr.sample_period && period && !(period >> 63) ? 0 : -EINVAL;
	if (ioctl(slot->fd, PERF_EVENT_IOC_PERIOD, &period))
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

	if (!slot)
		return;
	switch (below(4)) {
	case 0:
		ioctl(slot->fd, PERF_EVENT_IOC_DISABLE, group);
		break;
	case 1:
		ioctl(slot->fd, PERF_EVENT_IOC_REFRESH, (long)below(6) - 1);
		break;
	default:
		ioctl(slot->fd, PERF_EVENT_IOC_ENABLE, group);
	}
}

static void do_work(void)
{
	work(below(20000));
}

static void *thread(void *unused)
{
	work(5000);

	return NULL;
}

/* The actions of a child: everything by which events are inherited. */
static void live(void)
{
	pthread_t id;

	alarm(20);
	for (int steps = below(6); steps; steps--) {
		switch (below(8)) {
		case 0:
			if (!fork()) {
				work(5000);
				_exit(0);
			}
			break;
		case 1:
			if (!pthread_create(&id, NULL, thread, NULL) && one_in(2))
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
	if (!*child)
		return;
	if (!one_in(4))
		kill(*child, SIGKILL);
	waitpid(*child, NULL, 0);
	*child = 0;
}

static void do_fork(void)
{
	pid_t *child = &children[below(CHILDREN)];

	end_child(child);
	*child = fork();
	if (!*child)
		live();
}

static void do_affinity(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(below(cpus), &set);
	CPU_SET(below(cpus), &set);
	sched_setaffinity(one_in(4) ? children[below(CHILDREN)] : 0, sizeof(set), &set);
}

static bool set_online(int cpu, const char *online)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	fd = open(path, O_WRONLY);
	ret = write(fd, online, 1);
	close(fd);

	return ret == 1;
}

/* Takes the last CPU offline and back; rarely, as it takes long. */
static void do_hotplug(void)
{
	if (cpus < 2 || !one_in(10))
		return;
	hotplugs += set_online(cpus - 1, "0");
	for (int i = 0; i < 20; i++)
		do_open();
	work(10000);
	set_online(cpus - 1, "1");
}

static const struct {
	void (*run)(void);
	int weight;
} actions[] = {
	{ do_open, 200 }, { do_close, 100 }, { do_mmap, 80 }, { do_read, 200 }, { do_drain, 40 },
	{ do_ioctl, 500 }, { do_period, 300 }, { do_work, 30 }, { do_fork, 2 },
	{ do_affinity, 10 }, { do_hotplug, 10 },
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

int main(int argc, char **argv)
{
	unsigned long limit;

	if (argc < 3) {		/* a child after its exec */
		work(20000);
		return 0;
	}
	seed = strtoull(argv[1], NULL, 0);
	state = seed;
	limit = strtoul(argv[2], NULL, 0);
	cpus = sysconf(_SC_NPROCESSORS_CONF);
	for (int i = 0; i < SLOTS; i++)
		slots[i].fd = -1;

	for (calls = 0; calls < limit; calls++)
		act();

	for (int i = 0; i < CHILDREN; i++)
		end_child(&children[i]);
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].fd >= 0)
			close_slot(&slots[i]);
	printf("seed %llu: %lu calls, %lu opens, %lu events, %lu alternating, ",
	       seed, calls, opens, opened, alternating);
	printf("%lu samples, %lu of alternating events, %lu periods checked, ",
	       samples, alternating_samples, checked);
	printf("%lu hotplugs, %lu violations\n", hotplugs, violations);

	return !!violations;
}
