// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods whatever becomes of the task: children, threads, exec, other CPUs,
 * signals, BPF programs, more events than counters, and another user.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "alternate_period.h"

static pid_t worker;	/* a child, which ends with this process */
static int server;	/* socket of a task that works on request */
static int cpus[2];	/* for a task that moves */

#define CPU_ONLINE "/sys/devices/system/cpu/cpu%d/online"

static bool set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), CPU_ONLINE, cpu);

	return write_number(path, online);
}

static void work_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* ends itself if the parent does not */
	alarm(10);
	for (;;)
		work(STEP);
}

static pid_t fork_worker(void)
{
	pid_t pid = fork();

	if (!pid)
		work_for_ever();

	worker = pid;

	return pid;
}

static void *thread(void *tid)
{
	__atomic_store_n((pid_t *)tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	for (;;)
		work(STEP);

	return NULL;
}

static pid_t create_thread(void)
{
	static pid_t tid;
	pthread_t id;

	if (pthread_create(&id, NULL, thread, &tid))
		return -1;

	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		work(STEP);

	return tid;
}

/* Expects that a child starts at the beginning, although its parent is in a window. */
static void expect_inheritance(struct __test_metadata *_metadata, EVENT *self,
			       pid_t (*child)(void))
{
	self->attr.inherit = 1;
	start(_metadata, self);
	run_into(_metadata, self, true);

	/* Both run in turns on the same CPU. */
	self->tid = child();
	ASSERT_LT(0, self->tid);
	expect_alternation(_metadata, self, 0);

	self->tid = getpid();
	self->position = 0;
	expect_alternation(_metadata, self, 0);
}

TEST_F(event, child_of_window)
{
	expect_inheritance(_metadata, self, fork_worker);
}

TEST_F(event, thread_of_window)
{
	expect_inheritance(_metadata, self, create_thread);
}

/*
 * Tasks with the same events may exchange them on a switch. An interval must not begin in one task
 * and end in another.
 */
TEST_F(event, tasks_do_not_exchange_events)
{
	struct sample *sample;
	__u64 last = 0;

	/* Events with counts in the sample are never exchanged. */
	self->attr.sample_type &= ~PERF_SAMPLE_READ;
	self->attr.inherit = 1;
	start(_metadata, self);
	ASSERT_LT(0, fork_worker());
	for (int i = 0; i < 4 * SAMPLES; i++, last = sample->period) {
		sample = next_sample(_metadata, self);
		if (i)
			EXPECT_EQ(last == LONG ? WINDOW : LONG, sample->period);
	}
}

/* Existing children keep their period, later ones have the new one. */
TEST_F(event, ioc_period_and_children)
{
	__u64 period = OTHER_LONG, position;
	struct sample *sample;

	self->attr.inherit = 1;
	start(_metadata, self);
	self->tid = fork_worker();
	ASSERT_LT(0, self->tid);
	sample = expect_alternation(_metadata, self, 0);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));
	position = self->page->data_head;
	expect_intervals(_metadata, self, sample, sample->period == LONG);
	kill(worker, SIGKILL);

	self->attr.sample_period = period;
	self->tid = getpid();
	self->position = position;
	expect_alternation(_metadata, self, UNKNOWN);

	self->tid = fork_worker();
	ASSERT_LT(0, self->tid);
	expect_alternation(_metadata, self, 0);
}

/* A task that works when the other end of its standard input asks for it. */
#define SERVER		"server of alternate_tasks"

enum order { WORK, EXEC };

static void serve(void)
{
	char order = WORK;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The first answer says that the server is there. */
	while (write(STDIN_FILENO, &order, 1) == 1 &&
	       read(STDIN_FILENO, &order, 1) == 1) {
		if (order == EXEC) {
			execl("/proc/self/exe", SERVER, NULL);
			break;
		}
		work(STEP);
	}

	_exit(1);
}

static bool tell_server(EVENT *self, char order)
{
	return send(server, &order, 1, MSG_NOSIGNAL) == 1 &&
	       read(server, &order, 1) == 1;
}

static void step_server(EVENT *self)
{
	tell_server(self, WORK);
}

static void start_server(struct __test_metadata *_metadata, EVENT *self)
{
	pid_t pid;
	char here;
	int fd[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		dup2(fd[1], STDIN_FILENO);
		close(fd[0]);
		close(fd[1]);
		serve();
	}

	close(fd[1]);
	worker = pid;
	server = fd[0];
	ASSERT_EQ(1, read(server, &here, 1));
	self->step = step_server;
	self->tid = pid;
}

TEST_F(event, exec_keeps_rest_of_interval)
{
	start_server(_metadata, self);
	self->target = worker;
	start(_metadata, self);
	for (int window = 0; window < 2; window++) {
		struct sample *sample = run_into(_metadata, self, window);

		ASSERT_TRUE(tell_server(self, EXEC));
		expect_intervals(_metadata, self, sample, window);
	}
}

TEST_F(event, enable_on_exec)
{
	start_server(_metadata, self);
	self->target = worker;
	self->attr.enable_on_exec = 1;
	open_group(_metadata, self);
	for (int i = 0; i < 2 * LONG / STEP; i++)
		self->step(self);
	EXPECT_EQ(0, count(_metadata, self));
	ASSERT_TRUE(tell_server(self, EXEC));
	expect_alternation(_metadata, self, 0);
}

/* With more events than counters, they take turns, also inside of intervals. */
TEST_F(event, multiplexing_keeps_rest_of_interval)
{
	self->attr.sample_period = 8 * LONG;
	self->attr.alternative_sample_period = 3 * LONG;
	for (int i = 0; i < 40; i++)
		ASSERT_LE(0, open_counter(self, -1));
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
	EXPECT_LT(self->page->time_running, self->page->time_enabled);
}

/* The data of the signal handler. */
static struct {
	int fd;
	int signals;
	__u64 count[2 * SAMPLES];
} traps;

static void handle_trap(int signal)
{
	__u64 now[3];	/* nr, the event, its sibling */

	if (traps.signals < ARRAY_SIZE(traps.count) &&
	    read(traps.fd, now, sizeof(now)) == sizeof(now))
		traps.count[traps.signals] = now[1];
	traps.signals++;
}

/* Each overflow has its signal, before the task goes on. */
TEST_F(event, sigtrap)
{
	int samples = 0, late = 0;

	ASSERT_NE(SIG_ERR, signal(SIGTRAP, handle_trap));
	self->attr.remove_on_exec = 1;
	self->attr.sigtrap = 1;
	open_group(_metadata, self);
	traps.fd = self->leader;
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
	expect_alternation(_metadata, self, 0);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));

	self->position = 0;
	for (struct sample *sample; (sample = poll_sample(self)); samples++) {
		if (samples >= ARRAY_SIZE(traps.count))
			continue;
		EXPECT_LE(sample->value[0], traps.count[samples]);
		/* A tick may come in between. */
		late += traps.count[samples] >= sample->value[0] + WINDOW / 2;
	}
	EXPECT_GE(samples / 10, late);
	EXPECT_LT(SAMPLES, samples);
	EXPECT_EQ(samples, traps.signals);
}

/* Loads a BPF program that drops the samples with a certain period. */
static int load_dropper(__s32 period)
{
	struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, sample_period) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K,
		  .dst_reg = BPF_REG_2, .imm = period, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* Where the program drops the sample, the next one ends two intervals. */
TEST_F(event, bpf_drops_samples)
{
	static const __u64 periods[] = { LONG, WINDOW };

	for (int kept = 0; kept < 2; kept++) {
		int program = load_dropper(periods[!kept]);
		struct sample *last, *sample;

		if (program < 0)
			SKIP(return, "cannot load a BPF program: %s", strerror(errno));

		open_group(_metadata, self);
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_SET_BPF, program));
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
		for (int i = 0; i < LONGS; i++)
			last = next_sample(_metadata, self);
		for (int i = 0; i < SAMPLES; i++, last = sample) {
			sample = next_sample(_metadata, self);
			EXPECT_EQ(periods[kept], sample->period);
			EXPECT_TRUE(near(sample->value[0] - last->value[0], LONG + WINDOW,
					 self->skid));
		}
		stop(_metadata, self);
	}
}

static int other_cpu(EVENT *self)
{
	int cpu = 0;

	while (cpu < CPU_SETSIZE && (cpu == self->cpu || !pin_to(cpu)))
		cpu++;
	pin_to(self->cpu);

	return cpu < CPU_SETSIZE ? cpu : -1;
}

static void step_elsewhere(EVENT *self)
{
	pin_to(cpus[0]);
	work(STEP);
	pin_to(cpus[1]);
	work(STEP);
}

TEST_F(event, migration_keeps_rest_of_interval)
{
	cpus[0] = self->cpu;
	cpus[1] = other_cpu(self);
	if (cpus[1] < 0)
		SKIP(return, "needs two CPUs");

	self->cpu = -1;
	self->step = step_elsewhere;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

/* Chooses a CPU for the test, and another one that stays online. */
static bool find_hotplug_cpu(EVENT *self)
{
	int other = other_cpu(self);

	/* The first CPU often cannot go offline. */
	cpus[0] = self->cpu ?: other;
	cpus[1] = self->cpu ? other : self->cpu;
	if (other < 0 || !set_online(cpus[0], true))
		return false;

	/* It is brought back at the end. */
	snprintf(self->changed, sizeof(self->changed), CPU_ONLINE, cpus[0]);
	self->before = 1;

	return pin_to(cpus[0]);
}

#define NO_HOTPLUG	"needs root and two CPUs, one of which can go offline"

/* The task has to leave the CPU, and its interval ends on another one. */
TEST_F(event, hotplug_keeps_rest_of_interval)
{
	if (!find_hotplug_cpu(self))
		SKIP(return, NO_HOTPLUG);

	self->cpu = -1;
	start(_metadata, self);
	for (int window = 0; window < 2; window++) {
		struct sample *sample = run_into(_metadata, self, window);

		ASSERT_TRUE(set_online(cpus[0], false));
		EXPECT_FALSE(pin_to(cpus[0]));
		expect_intervals(_metadata, self, sample, window);
		ASSERT_TRUE(set_online(cpus[0], true));
		ASSERT_TRUE(pin_to(cpus[0]));
	}
}

/* The events of a CPU end with it. */
TEST_F(event, hotplug_ends_event_of_cpu)
{
	__u64 period = OTHER_LONG, ended;

	if (!find_hotplug_cpu(self))
		SKIP(return, NO_HOTPLUG);

	self->cpu = cpus[0];
	self->target = -1;
	self->tid = 0;
	start(_metadata, self);
	run_into(_metadata, self, true);

	ASSERT_TRUE(pin_to(cpus[1]));
	ASSERT_TRUE(set_online(cpus[0], false));
	ended = count(_metadata, self);
	EXPECT_EQ(-1, perf_event_open(&self->attr, -1, self->cpu, -1));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));

	ASSERT_TRUE(set_online(cpus[0], true));
	ASSERT_TRUE(pin_to(cpus[0]));
	EXPECT_EQ(-1, perf_event_open(&self->attr, -1, self->cpu, self->leader));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));
	work(LONG);
	EXPECT_EQ(ended, count(_metadata, self));

	/* A new event begins at the beginning. */
	close(self->leader);
	self->position = 0;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

#define NOBODY		65534
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"

/* With perf_event_paranoid = 2 users may sample user space only. */
TEST_F(event, unprivileged)
{
	int paranoid = read_number(PARANOID);

	if (!geteuid()) {
		ASSERT_TRUE(change_number(self, PARANOID, 2));
		if (setresuid(NOBODY, NOBODY, NOBODY))
			SKIP(return, "cannot be another user: %s", strerror(errno));
	} else if (paranoid != 2) {
		SKIP(return, "needs root or perf_event_paranoid = 2");
	}

	start(_metadata, self);
	expect_alternation(_metadata, self, 0);

	self->attr.exclude_kernel = 0;
	EXPECT_EQ(EACCES, try_open(&self->attr));
}

#define main test_main
TEST_HARNESS_MAIN
#undef main

int main(int argc, char *argv[])
{
	if (!strcmp(argv[0], SERVER))
		serve();

	return test_main(argc, argv);
}
