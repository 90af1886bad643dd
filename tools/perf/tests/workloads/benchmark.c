// SPDX-License-Identifier: GPL-2.0
/*
 * Seven leaf functions, each with one behaviour that a PMU can see, in a mix
 * whose true shares are known.
 *
 * Every call of a function executes the same number of instructions, whatever
 * the data: what varies is how long the instructions take. "--truth" counts
 * them by stepping through one iteration, independently of any PMU.
 *
 * Built as a workload of perf test:
 *
 *	perf test -w benchmark -- [options] ORDER DEPTH
 *
 * or, with BENCHMARK_MAIN defined, as a program:
 *
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
#ifndef noinline
#define noinline	attributes(__noinline__)
#endif

/*
 * One section for everything that is counted, so that the functions lie
 * together and the end of each is the start of the next one.
 */
#define counted		attributes(__noinline__, aligned(64), section("benchmark_text"))
#define DECLARE_END(section)	extern const char __stop_##section[]

/* The compiler can neither compute @x nor the number of turns of a loop on it. */
#define hide(x)		({ asm volatile("" : "+r"(x)); })

#define complain(format, ...)	fprintf(stderr, "benchmark: " format "\n", ##__VA_ARGS__)

/*
 * The work of a call at depth 1 is PIECES pieces; below that each piece is a
 * call. The lengths differ so that the shares do, and are well above a window
 * of 300 events so that most windows lie within one call. Where windows are
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

#define MAX_ITERATIONS		1000000000UL
#define MAX_THREADS		256UL
#define DEFAULT_ITERATIONS	16500UL

struct benchmark;

typedef void (*benchmark_fn)(struct benchmark *b, unsigned int pieces);

/* not static: we want to check these symbols in reports */
noinline void nops(struct benchmark *b, unsigned int pieces);
noinline void int_divider_stalls(struct benchmark *b, unsigned int pieces);
noinline void fp_divider_stalls(struct benchmark *b, unsigned int pieces);
noinline void isb(struct benchmark *b, unsigned int pieces);
noinline void branch_mispredicts(struct benchmark *b, unsigned int pieces);
noinline void double_to_int(struct benchmark *b, unsigned int pieces);
noinline void dcache_miss(struct benchmark *b, unsigned int pieces);
noinline void middle(struct benchmark *b, benchmark_fn fn, unsigned int pieces);
noinline void outer(struct benchmark *b, benchmark_fn fn);
noinline void iteration(struct benchmark *b);

DECLARE_END(benchmark_text);

static const struct {
	const char	*name;
	benchmark_fn	fn;
} functions[NR_FUNCTIONS] = {
	{ "nops",		nops },
	{ "int_divider_stalls",	int_divider_stalls },
	{ "fp_divider_stalls",	fp_divider_stalls },
	{ "isb",		isb },
	{ "branch_mispredicts",	branch_mispredicts },
	{ "double_to_int",	double_to_int },
	{ "dcache_miss",	dcache_miss },
};

/**
 * struct options - what the command line asks for
 * @order:	0: shuffled in every iteration, else the step through the list
 * @depth:	number of calls from iteration() to the leaf
 * @iterations:	calls of iteration() in each thread
 * @threads:	how many of them run
 * @seed:	of the shuffle and the branch directions
 * @faults:	every page that dcache_miss() comes to is a page fault
 * @truth:	print the exact work instead of doing it
 * @help:	print the usage
 */
struct options {
	unsigned long	order;
	unsigned long	depth;
	unsigned long	iterations;
	unsigned long	threads;
	unsigned long	seed;
	bool		faults;
	bool		truth;
	bool		help;
};

/**
 * struct benchmark - the state of one thread
 * @o:		options, common to all threads
 * @random:	xorshift state, never 0
 * @sequence:	indices in functions[], in the order of their calls
 * @sink:	results nobody needs
 * @divisor:	kept between calls of int_divider_stalls()
 * @quotient:	kept between calls of fp_divider_stalls()
 * @dividend:	of fp_divider_stalls()
 * @values:	to be converted
 * @words:	directions of branches, as many taken as not in each word
 * @word:	next of @words
 * @memory:	MEMORY bytes of zeros
 * @pages:	in @memory, a power of two
 * @page:	where dcache_miss() is
 * @offset:	in @page
 * @page_size:	from the kernel
 * @thread:	thread which works on this
 * @error:	the thread could not run
 */
struct benchmark {
	const struct options	*o;
	uint32_t		random;
	unsigned int		sequence[NR_FUNCTIONS];
	unsigned long		sink;
	unsigned long		divisor;
	double			quotient;
	double			dividend;
	double			values[NR_VALUES];
	uint64_t		words[NR_WORDS];
	unsigned int		word;
	char			*memory;
	unsigned long		pages;
	unsigned long		page;
	unsigned long		offset;
	unsigned long		page_size;
	pthread_t		thread;
	bool			error;
};

/* Synchronise the context: what follows is fetched anew. */
static inline void synchronise(void)
{
#if defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
	asm volatile("isb" : : : "memory");
#elif defined(__x86_64__) || defined(__i386__)
	/*
	 * cpuid would be the instruction by the book, but leaves the guest in
	 * a virtual machine and then takes longer than all other functions
	 * together. lfence waits for everything before it, too.
	 */
	asm volatile("lfence" : : : "memory");
#elif defined(__riscv)
	asm volatile("fence.i" : : : "memory");
#elif defined(__powerpc__)
	asm volatile("isync" : : : "memory");
#else
	asm volatile("" : : : "memory");
#endif
}

counted void nops(struct benchmark *b attributes(unused), unsigned int pieces)
{
	unsigned int i;

	for (i = pieces * NOPS_LOOPS; i; i--) {
		hide(i);
		asm volatile("nop\n\tnop\n\tnop\n\tnop\n\t"
			     "nop\n\tnop\n\tnop\n\tnop\n\t"
			     "nop\n\tnop\n\tnop\n\tnop\n\t"
			     "nop\n\tnop\n\tnop\n\tnop");
	}
}

counted void int_divider_stalls(struct benchmark *b, unsigned int pieces)
{
	unsigned long x = b->divisor;
	unsigned int i;

	/* the quotient is about as large as the divisor: never 0, never quick */
	for (i = pieces * INT_DIVIDES; i; i--) {
		hide(i);
		x = ULONG_MAX / x;
	}
	b->divisor = x;
}

counted void fp_divider_stalls(struct benchmark *b, unsigned int pieces)
{
	double dividend = b->dividend, x = b->quotient;
	unsigned int i;

	for (i = pieces * FP_DIVIDES; i; i--) {
		hide(i);
		x = dividend / x;
	}
	b->quotient = x;
}

counted void isb(struct benchmark *b attributes(unused), unsigned int pieces)
{
	unsigned int i;

	for (i = pieces * ISBS; i; i--) {
		hide(i);
		synchronise();
	}
}

counted void branch_mispredicts(struct benchmark *b, unsigned int pieces)
{
	unsigned long x = b->sink, y = pieces;
	unsigned int word = b->word;
	unsigned int i, bit;

	for (i = pieces * BRANCH_WORDS; i; i--) {
		uint64_t directions = b->words[word];

		word = (word + 1) % NR_WORDS;
		for (bit = 64; bit; bit--) {
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
	unsigned int i;

	for (i = pieces * CONVERSIONS; i; i--) {
		hide(i);
		sum += (int)b->values[i % NR_VALUES];
	}
	b->sink = sum;
}

counted void dcache_miss(struct benchmark *b, unsigned int pieces)
{
	unsigned long page = b->page, offset = b->offset, value = 0;
	unsigned int i, line, load;

	for (i = pieces * MISS_PAGES; i; i--) {
		/*
		 * A linear congruential generator comes to every page once in
		 * b->pages steps. The values are 0, but they have to arrive
		 * before the next address is known.
		 */
		page = (page * 1664525 + 1013904223 + value) & (b->pages - 1);
		for (line = MISS_LINES; line; line--) {
			const char *memory;

			hide(line);
			offset = (offset + 11 * LINE + value) & (b->page_size - 1);
			memory = b->memory + page * b->page_size + offset;
			for (load = MISS_LOADS; load; load--) {
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
counted void middle(struct benchmark *b, benchmark_fn fn, unsigned int pieces)
{
	unsigned int i;

	for (; pieces; pieces--) {
		for (i = WRAPPER_WORK; i; i--)
			hide(i);
		fn(b, 1);
	}
}

/* Depth 3: two halves, with some work before each. */
counted void outer(struct benchmark *b, benchmark_fn fn)
{
	unsigned int half, i;

	for (half = 2; half; half--) {
		for (i = WRAPPER_WORK; i; i--)
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
			unsigned int j, tmp;

			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			j = ((uint64_t)x * (i + 1)) >> 32;
			tmp = b->sequence[i];
			b->sequence[i] = b->sequence[j];
			b->sequence[j] = tmp;
		}
		b->random = x;
	}

	for (i = 0; i < NR_FUNCTIONS; i++) {
		benchmark_fn fn = functions[b->sequence[i]].fn;

		if (depth == 1)
			fn(b, PIECES);
		else if (depth == 2)
			middle(b, fn, PIECES);
		else
			outer(b, fn);
	}
}

static uint32_t next_random(struct benchmark *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 17;
	b->random ^= b->random << 5;
	return b->random;
}

/* Returns a random word with 32 bits set. */
static uint64_t balanced_word(struct benchmark *b)
{
	uint32_t half = next_random(b);
	uint64_t word = (uint64_t)half << 32 | (uint32_t)~half;
	unsigned int shift;

	/* exchange bits at random with the ones 32, 16 ... 1 places above */
	for (shift = 32; shift; shift >>= 1) {
		uint64_t low = UINT64_MAX / ((UINT64_C(1) << shift) + 1);
		uint64_t swap = (uint64_t)next_random(b) << 32 | next_random(b);

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
	if (b->memory == MAP_FAILED) {
		complain("no memory: %s", strerror(errno));
		return -1;
	}
	/* one fault per page; a kernel without huge pages refuses, and need not */
	madvise(b->memory, MEMORY, MADV_NOHUGEPAGE);
	return 0;
}

static void *benchmark_run(void *arg)
{
	struct benchmark *b = arg;
	unsigned long pass = b->pages / (PIECES * MISS_PAGES);
	unsigned long i;

	/*
	 * Pages of its own, so that the cache has to hold them all. For faults
	 * they are only ever read: the kernel maps its zero page.
	 */
	if (!b->o->faults)
		for (i = 0; i < b->pages; i++)
			b->memory[i * b->page_size] = 0;

	for (i = 0; i < b->o->iterations; i++) {
		if (b->o->faults && i && i % pass == 0 &&
		    madvise(b->memory, MEMORY, MADV_DONTNEED)) {
			complain("madvise: %s", strerror(errno));
			b->error = true;
			return NULL;
		}
		iteration(b);
	}
	return NULL;
}

static int run(struct benchmark *b, const struct options *o)
{
	unsigned long i, started = 0;
	int ret = 0;

	for (i = 0; i < o->threads; i++)
		if (benchmark_init(&b[i], o, i))
			return -1;

	if (o->threads == 1) {
		benchmark_run(b);
		return b->error ? -1 : 0;
	}

	for (; started < o->threads; started++) {
		int err = pthread_create(&b[started].thread, NULL, benchmark_run, &b[started]);

		if (err) {
			complain("no thread: %s", strerror(err));
			ret = -1;
			break;
		}
	}
	for (i = 0; i < started; i++) {
		pthread_join(b[i].thread, NULL);
		if (b[i].error)
			ret = -1;
	}
	return ret;
}

/**
 * struct row - one line of the truth
 * @name:	of the function
 * @start:	its first address
 * @calls:	in one iteration
 * @steps:	instructions in one iteration
 * @faults:	page faults per call
 */
struct row {
	const char	*name;
	uintptr_t	start;
	unsigned long	calls;
	unsigned long	steps;
	unsigned long	faults;
};

#define NR_ROWS		(NR_FUNCTIONS + 4)

static struct row *find_row(struct row *rows, uintptr_t pc)
{
	struct row *found = NULL;
	unsigned int i;

	if (pc >= (uintptr_t)__stop_benchmark_text)
		return NULL;
	for (i = 0; i < NR_ROWS; i++)
		if (rows[i].start && rows[i].start <= pc &&
		    (!found || found->start < rows[i].start))
			found = &rows[i];
	return found;
}

/* Wait for the child to stop; false if it ended, or for a reason not ours. */
static bool stopped(pid_t pid, int sig, int *status)
{
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFSTOPPED(*status) && WSTOPSIG(*status) == sig;
}

static int traced_iteration(void *b)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(errno);
	/* not raise(), which takes this for the parent's thread */
	kill(getpid(), SIGSTOP);
	iteration(b);
	_exit(0);
}

/*
 * Lets a child do one iteration, instruction by instruction, and counts them per function. Calls
 * from iteration() to code outside the section (a library's division, where there is no instruction
 * for it) are in the last row.
 */
static int step_iteration(struct row *rows, struct benchmark *b)
{
	static char stack[65536] attributes(aligned(16));
	struct row *other = &rows[NR_ROWS - 1];
	unsigned long pending = 0;
	bool inside = false;
	int status = 0;
	pid_t pid;

	/* share this address space: a switch is cheaper, above all in an emulator */
	pid = clone(traced_iteration, stack + sizeof(stack), CLONE_VM | SIGCHLD, b);
	if (pid < 0) {
		complain("no child: %s", strerror(errno));
		return -1;
	}
	if (!stopped(pid, SIGSTOP, &status)) {
		complain("cannot trace: %s",
			 strerror(WIFEXITED(status) ? WEXITSTATUS(status) : errno));
		return -1;
	}
	for (;;) {
		siginfo_t info;
		struct row *row;

		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) {
			complain("no single steps on this architecture: %s", strerror(errno));
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		if (!stopped(pid, SIGTRAP, &status))
			break;
		/* the address is that of the next instruction */
		if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info))
			continue;
		row = find_row(rows, (uintptr_t)info.si_addr);
		if (row) {
			row->steps++;
			if (inside)
				other->steps += pending;
			inside = true;
			pending = 0;
		} else {
			pending++;
		}
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		complain("the child died");
		return -1;
	}
	return 0;
}

static int truth(struct benchmark *b, const struct options *o)
{
	unsigned long leaf_calls = o->depth == 1 ? 1 : PIECES;
	unsigned long long times = (unsigned long long)o->iterations * o->threads;
	struct row rows[NR_ROWS] = {};
	unsigned long long total = 0;
	unsigned int i;

	for (i = 0; i < NR_FUNCTIONS; i++) {
		rows[i].name = functions[i].name;
		rows[i].start = (uintptr_t)functions[i].fn;
		rows[i].calls = leaf_calls;
		if (o->faults && functions[i].fn == dcache_miss)
			rows[i].faults = MISS_PAGES * PIECES / leaf_calls;
	}
	rows[i].name = "middle";
	rows[i].start = (uintptr_t)middle;
	rows[i++].calls = NR_FUNCTIONS * (o->depth - 1);
	rows[i].name = "outer";
	rows[i].start = (uintptr_t)outer;
	rows[i++].calls = o->depth == 3 ? NR_FUNCTIONS : 0;
	rows[i].name = "iteration";
	rows[i].start = (uintptr_t)iteration;
	rows[i++].calls = 1;
	rows[i].name = "other";
	rows[i].calls = 1;

	if (benchmark_init(b, o, 0) || step_iteration(rows, b))
		return -1;

	for (i = 0; i < NR_ROWS; i++) {
		total += rows[i].steps;
		if (rows[i].calls && rows[i].steps % rows[i].calls) {
			complain("the calls of %s differ", rows[i].name);
			return -1;
		}
	}

	printf("# %-18s %17s %14s %18s %9s %11s\n", "function", "instructions/call",
	       "calls", "instructions", "share%", "faults/call");
	for (i = 0; i < NR_ROWS; i++) {
		const struct row *row = &rows[i];

		if (!row->steps)
			continue;
		printf("%-20s %17lu %14llu %18llu %9.4f %11lu\n",
		       row->name, row->steps / row->calls, row->calls * times,
		       row->steps * times, 100.0 * row->steps / total, row->faults);
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
	"  --seed N         for the shuffle and the branches (default 0)\n"
	"  --threads N      do the same in N threads (default 1)\n"
	"  --truth          print the exact work of such a run instead, per function;\n"
	"                   the shares are those of the instructions\n"
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
	complain("%s must be a number from %lu to %lu%s%s",
		 what, min, max, arg ? ", not " : "", arg ? arg : "");
	return -1;
}

static int parse_options(struct options *o, int argc, const char **argv)
{
	int i, positional = 0, err = 0;

	for (i = 0; i < argc && !err; i++) {
		const char *arg = argv[i];
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(arg, "--faults")) {
			o->faults = true;
		} else if (!strcmp(arg, "--truth")) {
			o->truth = true;
		} else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			o->help = true;
			return 0;
		} else if (!strcmp(arg, "--iterations")) {
			err = parse_number(arg, next, 1, MAX_ITERATIONS, &o->iterations);
			i++;
		} else if (!strcmp(arg, "--threads")) {
			err = parse_number(arg, next, 1, MAX_THREADS, &o->threads);
			i++;
		} else if (!strcmp(arg, "--seed")) {
			err = parse_number(arg, next, 0, UINT32_MAX, &o->seed);
			i++;
		} else if (*arg == '-') {
			complain("unknown option %s (see --help)", arg);
			err = -1;
		} else if (positional == 0) {
			err = parse_number("ORDER", arg, 0, NR_FUNCTIONS - 1, &o->order);
			positional++;
		} else if (positional == 1) {
			err = parse_number("DEPTH", arg, 1, 3, &o->depth);
			positional++;
		} else {
			complain("ORDER and DEPTH are all, what is %s?", arg);
			err = -1;
		}
	}
	if (!err && positional < 2) {
		complain("ORDER and DEPTH are missing (see --help)");
		err = -1;
	}
	return err;
}

static int benchmark(int argc, const char **argv)
{
	struct options o = {
		.iterations = DEFAULT_ITERATIONS,
		.threads = 1,
	};
	struct benchmark *b;
	int err;

	if (parse_options(&o, argc, argv))
		return EXIT_FAILURE;
	if (o.help) {
		fputs(usage, stdout);
		return EXIT_SUCCESS;
	}

	b = calloc(o.threads, sizeof(*b));
	if (!b) {
		complain("no memory");
		return EXIT_FAILURE;
	}
	err = o.truth ? truth(b, &o) : run(b, &o);
	free(b);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

#ifdef BENCHMARK_MAIN
int main(int argc, char **argv)
{
	return benchmark(argc - 1, (const char **)argv + 1);
}
#else
DEFINE_WORKLOAD(benchmark);
#endif
