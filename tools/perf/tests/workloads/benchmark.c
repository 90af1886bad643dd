// SPDX-License-Identifier: GPL-2.0
/*
 * Seven leaf functions, each with one behaviour that a PMU can see, in a mix whose true shares are
 * known. Every call of a function executes the same number of instructions, whatever the data: what
 * varies is how long they take. "--truth" counts them without a PMU, step by step.
 *
 *	perf test -w benchmark -- [options] ORDER DEPTH
 *	cc -O2 -static -pthread -DBENCHMARK_MAIN benchmark.c -o benchmark
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef BENCHMARK_MAIN
#include <linux/compiler.h>
#include "../tests.h"
#endif

#define attributes(...)	__attribute__((__VA_ARGS__))

/* What is counted lies in one section, where a function ends at the start of the next one. */
#define counted		attributes(__noinline__, aligned(64), section("benchmark_text"))
#define DECLARE_END(section)	extern const char __stop_##section[]

/* The compiler can neither compute @x nor the number of turns of a loop on it. */
#define hide(x)		({ asm volatile("" : "+r"(x)); })

#define complain(format, ...)	(fprintf(stderr, "benchmark: " format "\n", ##__VA_ARGS__), -1)

/*
 * The work of a call at depth 1 is PIECES pieces; below that each piece is a call. The lengths
 * differ, and so do the shares. They are well above a window of 300 events; where windows are
 * longer (cpu-clock has none below 10 us), build it with more pieces.
 */
#ifndef PIECES
#define PIECES			8
#endif
#define NOPS_LOOPS		60	/* turns of 16 nops */
#define INT_DIVIDES		300
#define FP_DIVIDES		400
#define ISBS			140
#define BRANCH_WORDS		2	/* turns of 64 branches */
#define CONVERSIONS		120
#define MISS_PAGES		12
#define MISS_LINES		4	/* in each page */
#define MISS_LOADS		5	/* loads from each line; the first one misses */
#define WRAPPER_WORK		40

#define NR_FUNCTIONS		7
#define NR_WORDS		2048	/* more branches than a predictor remembers */
#define NR_VALUES		8
#define MEMORY			(64UL << 20)	/* more than the caches hold */
#define LINE			64

struct benchmark;

typedef void (benchmark_fn)(struct benchmark *b, unsigned int pieces);

/* not static: we want to check these symbols in reports */
benchmark_fn nops, int_divider_stalls, fp_divider_stalls, isb;
benchmark_fn branch_mispredicts, double_to_int, dcache_miss;
attributes(__noinline__) void middle(struct benchmark *b, benchmark_fn *fn, unsigned int pieces);
attributes(__noinline__) void outer(struct benchmark *b, benchmark_fn *fn);
attributes(__noinline__) void iteration(struct benchmark *b);
DECLARE_END(benchmark_text);

static const struct {
	const char	*name;
	benchmark_fn	*fn;
} functions[NR_FUNCTIONS] = {
	{ "nops",		nops },
	{ "int_divider_stalls",	int_divider_stalls },
	{ "fp_divider_stalls",	fp_divider_stalls },
	{ "isb",		isb },
	{ "branch_mispredicts",	branch_mispredicts },
	{ "double_to_int",	double_to_int },
	{ "dcache_miss",	dcache_miss },
};

/* What the command line asks for. */
struct options {
	unsigned long	order;		/* 0: shuffled, else the step through functions[] */
	unsigned long	depth;		/* calls from iteration() to the leaf */
	unsigned long	iterations;	/* in each thread */
	unsigned long	threads;
	unsigned long	seed;		/* of the shuffle and the branches */
	int		slow;		/* in functions[], called twice; -1: none */
	bool		faults;		/* every page that dcache_miss() comes to is a page fault */
	bool		truth;		/* print the exact work instead of doing it */
};

/* The state of one thread. */
struct benchmark {
	const struct options	*o;
	uint32_t		random;		/* xorshift state, never 0 */
	unsigned int		sequence[NR_FUNCTIONS];	/* in functions[] */
	unsigned long		sink;		/* results nobody needs */
	unsigned long		divisor;
	double			quotient;
	double			dividend;
	double			values[NR_VALUES];	/* to be converted */
	uint64_t		words[NR_WORDS];	/* branches, half of each word taken */
	unsigned int		word;
	char			*memory;
	unsigned long		pages;		/* in memory, a power of two */
	unsigned long		page;
	unsigned long		offset;
	unsigned long		page_size;
	pthread_t		thread;
	bool			error;
};

/* Fetch what follows anew. On x86 cpuid would do so, but leaves the guest in a virtual machine. */
static inline void synchronise(void)
{
#if defined(__aarch64__)
	asm volatile("isb" : : : "memory");
#elif defined(__x86_64__)
	asm volatile("lfence" : : : "memory");
#elif defined(__riscv)
	asm volatile("fence.i" : : : "memory");
#elif defined(__powerpc__)
	asm volatile("isync" : : : "memory");
#endif
}

static inline uint32_t xorshift(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	return *x ^= *x << 5;
}

counted void nops(struct benchmark *b attributes(unused), unsigned int pieces)
{
	for (unsigned int i = pieces * NOPS_LOOPS; i; i--) {
		hide(i);
		asm volatile(".rept 16\n\tnop\n\t.endr");
	}
}

counted void int_divider_stalls(struct benchmark *b, unsigned int pieces)
{
	unsigned long x = b->divisor;

	/* the quotient is about as large as the divisor: never 0, never quick */
	for (unsigned int i = pieces * INT_DIVIDES; i; i--) {
		hide(i);
		x = ULONG_MAX / x;
	}
	b->divisor = x;
}

counted void fp_divider_stalls(struct benchmark *b, unsigned int pieces)
{
	double dividend = b->dividend, x = b->quotient;

	for (unsigned int i = pieces * FP_DIVIDES; i; i--) {
		hide(i);
		x = dividend / x;
	}
	b->quotient = x;
}

counted void isb(struct benchmark *b attributes(unused), unsigned int pieces)
{
	for (unsigned int i = pieces * ISBS; i; i--) {
		hide(i);
		synchronise();
	}
}

counted void branch_mispredicts(struct benchmark *b, unsigned int pieces)
{
	unsigned long x = b->sink, y = pieces;
	unsigned int word = b->word;

	for (unsigned int i = pieces * BRANCH_WORDS; i; i--) {
		uint64_t directions = b->words[word];

		word = (word + 1) % NR_WORDS;
		for (unsigned int bit = 64; bit; bit--) {
			hide(bit);
			/* different statements: no conditional move, no common end */
			if (directions & 1)
				asm volatile("" : "+r"(x) : "r"(bit));
			else
				asm volatile("" : "+r"(y) : "r"(i));
			directions >>= 1;
		}
	}
	b->word = word;
	b->sink = x + y;
}

counted void double_to_int(struct benchmark *b, unsigned int pieces)
{
	unsigned long sum = b->sink;

	for (unsigned int i = pieces * CONVERSIONS; i; i--) {
		hide(i);
		sum += (int)b->values[i % NR_VALUES];
	}
	b->sink = sum;
}

counted void dcache_miss(struct benchmark *b, unsigned int pieces)
{
	unsigned long page = b->page, offset = b->offset, value = 0;

	for (unsigned int i = pieces * MISS_PAGES; i; i--) {
		/* All pages in turn, at random. The values are 0, but must arrive first. */
		page = (page * 1664525 + 1013904223 + value) & (b->pages - 1);
		for (unsigned int line = MISS_LINES; line; line--) {
			const char *memory;

			hide(line);
			offset = (offset + 11 * LINE + value) & (b->page_size - 1);
			memory = b->memory + page * b->page_size + offset;
			for (unsigned int load = MISS_LOADS; load; load--) {
				hide(load);
				value = *(const unsigned long *)(memory + value);
				hide(value);
			}
		}
	}
	b->page = page;
	b->offset = offset;
}

/* Depth 2: every piece is a call, with some work in between. */
counted void middle(struct benchmark *b, benchmark_fn *fn, unsigned int pieces)
{
	for (; pieces; pieces--) {
		for (unsigned int i = WRAPPER_WORK; i; i--)
			hide(i);
		fn(b, 1);
	}
}

/* Depth 3: two halves, with some work before each. */
counted void outer(struct benchmark *b, benchmark_fn *fn)
{
	for (unsigned int half = 2; half; half--) {
		for (unsigned int i = WRAPPER_WORK; i; i--)
			hide(i);
		middle(b, fn, PIECES / 2);
	}
}

/* Every function once. */
counted void iteration(struct benchmark *b)
{
	unsigned long depth = b->o->depth;
	unsigned int i;

	if (!b->o->order) {
		uint32_t x = b->random;

		for (i = NR_FUNCTIONS - 1; i; i--) {
			unsigned int j = ((uint64_t)xorshift(&x) * (i + 1)) >> 32;
			unsigned int tmp = b->sequence[i];

			b->sequence[i] = b->sequence[j];
			b->sequence[j] = tmp;
		}
		b->random = x;
	}

	for (i = 0; i < NR_FUNCTIONS; i++) {
		benchmark_fn *fn = functions[b->sequence[i]].fn;

		if (depth == 1)
			fn(b, PIECES);
		else if (depth == 2)
			middle(b, fn, PIECES);
		else
			outer(b, fn);
	}
}

/* The same, and one function does its work a second time. */
static void slow_iteration(struct benchmark *b)
{
	iteration(b);
	functions[b->o->slow].fn(b, PIECES);
}

/* Returns a random word with 32 bits set. */
static uint64_t balanced_word(struct benchmark *b)
{
	uint32_t half = xorshift(&b->random);
	uint64_t word = (uint64_t)half << 32 | (uint32_t)~half;

	/* exchange bits at random with the ones 32, 16 ... 1 places above */
	for (unsigned int shift = 32; shift; shift >>= 1) {
		uint64_t low = UINT64_MAX / ((UINT64_C(1) << shift) + 1);
		uint64_t swap = (uint64_t)xorshift(&b->random) << 32 | xorshift(&b->random);

		swap &= (word ^ word >> shift) & low;
		word ^= swap ^ swap << shift;
	}
	return word;
}

static int benchmark_init(struct benchmark *b, const struct options *o, unsigned int thread)
{
	unsigned long i;

	b->o = o;
	b->random = (o->seed + 1) * 2654435761U ^ (thread + 1) * 2246822519U;
	if (!b->random)
		b->random = 1;
	for (i = 0; i < NR_FUNCTIONS; i++)
		b->sequence[i] = i * (o->order ? o->order : 1) % NR_FUNCTIONS;
	for (i = 0; i < NR_VALUES; i++)
		b->values[i] = 1.25 * i;
	for (i = 0; i < NR_WORDS; i++)
		b->words[i] = balanced_word(b);
	b->divisor = (1UL << (sizeof(long) * CHAR_BIT / 2)) + 12345;
	b->dividend = 3.7;
	b->quotient = 1.9;

	b->page_size = sysconf(_SC_PAGESIZE);
	b->pages = MEMORY / b->page_size;
	b->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->memory == MAP_FAILED)
		return complain("no memory: %s", strerror(errno));
	/* one fault per page; a kernel without huge pages refuses, and need not */
	madvise(b->memory, MEMORY, MADV_NOHUGEPAGE);
	return 0;
}

static void *benchmark_run(void *arg)
{
	struct benchmark *b = arg;
	void (*iterate)(struct benchmark *b) = b->o->slow < 0 ? iteration : slow_iteration;
	unsigned long pass = b->pages / (PIECES * MISS_PAGES);
	unsigned long i;

	/* The cache has to hold pages of its own. For faults the kernel maps its zero page. */
	if (!b->o->faults)
		for (i = 0; i < b->pages; i++)
			b->memory[i * b->page_size] = 0;

	for (i = 0; i < b->o->iterations; i++) {
		if (b->o->faults && i && i % pass == 0 &&
		    madvise(b->memory, MEMORY, MADV_DONTNEED)) {
			b->error = complain("madvise: %s", strerror(errno));
			break;
		}
		iterate(b);
	}
	return NULL;
}

static int run(struct benchmark *b, const struct options *o)
{
	unsigned long i, started = 0;
	int err = 0;

	for (i = 0; i < o->threads; i++)
		if (benchmark_init(&b[i], o, i))
			return -1;

	if (o->threads == 1) {
		benchmark_run(b);
		return b->error;
	}

	for (; started < o->threads && !err; started += !err)
		err = pthread_create(&b[started].thread, NULL, benchmark_run, &b[started]);
	if (err)
		err = complain("no thread: %s", strerror(err));
	for (i = 0; i < started; i++) {
		pthread_join(b[i].thread, NULL);
		err |= b[i].error;
	}
	return err;
}

/* One line of the truth. */
struct row {
	const char	*name;
	uintptr_t	start;	/* the first address */
	unsigned long	calls;	/* in one iteration */
	unsigned long	steps;	/* instructions in one iteration */
};

#define NR_ROWS		(NR_FUNCTIONS + 3)

static struct row *find_row(struct row *rows, uintptr_t pc)
{
	struct row *found = NULL;

	if (pc >= (uintptr_t)__stop_benchmark_text)
		return NULL;
	for (unsigned int i = 0; i < NR_ROWS; i++)
		if (rows[i].start <= pc && (!found || found->start < rows[i].start))
			found = &rows[i];
	return found;
}

/* Does the child stop by this signal? */
static bool stops(pid_t pid, int sig, int *status)
{
	return waitpid(pid, status, 0) == pid && WIFSTOPPED(*status) && WSTOPSIG(*status) == sig;
}

static int traced_iteration(void *arg)
{
	struct benchmark *b = arg;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	/* not raise(), which takes this for the parent's thread */
	kill(getpid(), SIGSTOP);
	if (b->o->slow < 0)
		iteration(b);
	else
		slow_iteration(b);
	_exit(0);
}

/* Lets a child do one iteration, instruction by instruction, and counts them per function. */
static int step_iteration(struct row *rows, struct benchmark *b)
{
	static char stack[65536] attributes(aligned(16));
	int status = 0;
	pid_t pid;

	/* With the same address space a switch is cheaper, above all in an emulator. */
	pid = clone(traced_iteration, stack + sizeof(stack), CLONE_VM | SIGCHLD, b);
	if (pid < 0 || !stops(pid, SIGSTOP, &status))
		return complain("cannot trace a child");
	while (!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) {
		siginfo_t info;
		struct row *row;

		if (!stops(pid, SIGTRAP, &status))
			return WIFEXITED(status) && !WEXITSTATUS(status) ?
			       0 : complain("the child died");
		/* the address is that of the next instruction */
		if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info))
			continue;
		row = find_row(rows, (uintptr_t)info.si_addr);
		if (row)
			row->steps++;
	}
	kill(pid, SIGKILL);
	return complain("no single steps on this architecture: %s", strerror(errno));
}

static int truth(struct benchmark *b, const struct options *o)
{
	unsigned long leaf_calls = o->depth == 1 ? 1 : PIECES;
	unsigned long long times = (unsigned long long)o->iterations * o->threads;
	struct row rows[NR_ROWS] = {
		[NR_FUNCTIONS]	   = { .name = "middle", .start = (uintptr_t)middle,
				       .calls = NR_FUNCTIONS * (o->depth - 1) },
		[NR_FUNCTIONS + 1] = { .name = "outer", .start = (uintptr_t)outer,
				       .calls = o->depth == 3 ? NR_FUNCTIONS : 0 },
		[NR_FUNCTIONS + 2] = { .name = "iteration", .start = (uintptr_t)iteration,
				       .calls = 1 },
	};
	unsigned long long total = 0;

	for (unsigned int i = 0; i < NR_FUNCTIONS; i++) {
		rows[i].name = functions[i].name;
		rows[i].start = (uintptr_t)functions[i].fn;
		rows[i].calls = leaf_calls + ((int)i == o->slow);
	}
	if (benchmark_init(b, o, 0) || step_iteration(rows, b))
		return -1;

	for (unsigned int i = 0; i < NR_ROWS; i++) {
		total += rows[i].steps;
		if (rows[i].calls && rows[i].steps % rows[i].calls)
			return complain("the calls of %s differ", rows[i].name);
	}

	printf("# %-18s %17s %14s %18s %9s %11s\n", "function", "instructions/call",
	       "calls", "instructions", "share%", "faults/call");
	for (unsigned int i = 0; i < NR_ROWS; i++) {
		const struct row *row = &rows[i];
		bool faults = o->faults && row->start == (uintptr_t)dcache_miss;

		if (!row->steps)
			continue;
		printf("%-20s %17lu %14llu %18llu %9.4f %11lu\n",
		       row->name, row->steps / row->calls, row->calls * times,
		       row->steps * times, 100.0 * row->steps / total,
		       faults ? MISS_PAGES * PIECES / leaf_calls : 0);
	}
	return 0;
}

static const char usage[] =
	"Usage: benchmark [options] ORDER DEPTH\n"
	"\n"
	"  ORDER            0: the functions are shuffled in every iteration;\n"
	"                   1 to 6: always in the same order, each ORDER places\n"
	"                   behind the one before in the list of --truth\n"
	"  DEPTH            1: each function is called once in an iteration;\n"
	"                   2: 8 times, for an eighth of the work, by middle();\n"
	"                   3: 4 times by each of 2 middle(), called by outer()\n"
	"\n"
	"  --iterations N   each calls every function once (default 16500)\n"
	"  --faults         one page fault for each page in dcache_miss\n"
	"  --slow NAME      this function of --truth does its work twice (DEPTH 1)\n"
	"  --seed N         for the shuffle and the branches (default 0)\n"
	"  --threads N      do the same in N threads (default 1)\n"
	"  --truth          print the exact work of such a run instead, per function\n"
	"  --help           print this\n";

/* Sets @value to the number in @arg, or prints what is wrong with it. */
static int parse_number(const char *what, const char *arg, unsigned long min,
			unsigned long max, unsigned long *value)
{
	char *end;

	errno = 0;
	if (arg && *arg >= '0' && *arg <= '9') {
		*value = strtoul(arg, &end, 10);
		if (!errno && !*end && *value >= min && *value <= max)
			return 0;
	}
	return complain("%s must be a number from %lu to %lu%s%s",
			what, min, max, arg ? ", not " : "", arg ? arg : "");
}

/* Sets @slow to the place of a name in functions[], or prints that there is none. */
static int parse_function(const char *name, int *slow)
{
	for (int i = 0; name && i < NR_FUNCTIONS; i++) {
		if (!strcmp(name, functions[i].name)) {
			*slow = i;
			return 0;
		}
	}
	return complain("--slow must be a function of --truth%s%s", name ? ", not " : "",
			name ?: "");
}

static int parse_options(struct options *o, int argc, const char **argv)
{
	int i, positional = 0, err = 0;

	for (i = 0; i < argc && !err; i++) {
		const char *arg = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(arg, "--faults")) {
			o->faults = true;
		} else if (!strcmp(arg, "--truth")) {
			o->truth = true;
		} else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		} else if (!strcmp(arg, "--iterations")) {
			err = parse_number(arg, next, 1, 1000000000, &o->iterations);
			i++;
		} else if (!strcmp(arg, "--threads")) {
			err = parse_number(arg, next, 1, 256, &o->threads);
			i++;
		} else if (!strcmp(arg, "--seed")) {
			err = parse_number(arg, next, 0, UINT32_MAX, &o->seed);
			i++;
		} else if (!strcmp(arg, "--slow")) {
			err = parse_function(next, &o->slow);
			i++;
		} else if (*arg == '-') {
			err = complain("unknown option %s (see --help)", arg);
		} else if (++positional == 1) {
			err = parse_number("ORDER", arg, 0, NR_FUNCTIONS - 1, &o->order);
		} else if (positional == 2) {
			err = parse_number("DEPTH", arg, 1, 3, &o->depth);
		} else {
			err = complain("ORDER and DEPTH are all, what is %s?", arg);
		}
	}
	if (!err && positional < 2)
		return complain("ORDER and DEPTH are missing (see --help)");
	if (!err && o->slow >= 0 && o->depth != 1)
		return complain("--slow is for DEPTH 1");
	return err;
}

static int benchmark(int argc, const char **argv)
{
	struct options o = {
		.iterations = 16500,
		.threads = 1,
		.slow = -1,
	};
	struct benchmark *b;
	int err = parse_options(&o, argc, argv);

	if (err)
		return err;
	b = calloc(o.threads, sizeof(*b));
	if (!b)
		return complain("no memory");
	err = o.truth ? truth(b, &o) : run(b, &o);
	free(b);
	return err;
}

#ifdef BENCHMARK_MAIN
int main(int argc, char **argv)
{
	return benchmark(argc - 1, (const char **)argv + 1);
}
#else
DEFINE_WORKLOAD(benchmark);
#endif
