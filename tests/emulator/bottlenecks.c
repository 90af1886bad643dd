// SPDX-License-Identifier: GPL-2.0
/*
 * Each function has one known bottleneck, which the right metric must show. usage: bottlenecks
 * ROUNDS. In each round each function runs for some ten thousand instructions. The sizes give both
 * presets of emulator/README.md the bottleneck. perf's own benchmark has divisions, barriers and
 * random branches.
 */
#include <stdio.h>
#include <stdlib.h>

#define LINE 64
#define PAGE 4096
#define alone __attribute__((noipa))	/* calls of it stay as they are */

struct node {
	struct node *next;
	char rest[LINE - sizeof(struct node *)];
};

static unsigned long state = 88172645463325252;
static unsigned long sink;

static inline unsigned long draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Nodes of @nodes[] in a ring, in the order of @order[]. */
static struct node *ring(struct node *nodes, const unsigned int *order, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		nodes[order[i]].next = &nodes[order[(i + 1) % n]];
	return &nodes[order[0]];
}

static void shuffle(unsigned int *order, unsigned int n)
{
	for (unsigned int i = n - 1; i > 0; i--) {
		unsigned int other = draw() % (i + 1), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

#define CHASE(name)							\
	static struct node *name##_at;					\
	static alone void name(void)					\
	{								\
		struct node *node = name##_at;				\
									\
		for (int i = 0; i < 4000; i++)				\
			node = node->next;				\
		name##_at = node;					\
	}

CHASE(l1d_miss)
CHASE(l2_miss)
CHASE(dtlb_miss)

static char stored[4 << 20];

static alone void store_miss(void)
{
	static unsigned int at;

	for (int i = 0; i < 4000; i++) {
		asm volatile("str %1, [%0]" :: "r"(&stored[at]), "r"(state) : "memory");
		at = (at + LINE) % sizeof(stored);
	}
}

/* One instruction in each of 2048 lines: 128 KiB */
static alone void l1i_miss(void)
{
	asm volatile(".rept 2048\n\tb 1f\n\t.balign 64\n1:\n\t.endr");
}

/* One instruction in each of 256 pages, at another line of each */
static alone void itlb_miss(void)
{
	asm volatile(".set number, 0\n\t.rept 256\n\tb 1f\n\t.balign 4096\n\t"
		     ".skip (number % 64) * 64 + 64\n1:\n\t.set number, number + 1\n\t.endr");
}

#define TARGET(n) static alone void target##n(void) { asm volatile("nop"); }
TARGET(0)
TARGET(1)
TARGET(2)
TARGET(3)

static alone void branch_target(void)
{
	static void (*const targets[])(void) = { target0, target1, target2, target3 };

	for (int i = 0; i < 2000; i++)
		targets[draw() >> 30 & 3]();
}

/*
 * Nested calls: a core forgets the return addresses of the outer ones. There are three call sites,
 * because with one the prediction is often right by chance.
 */
static alone unsigned long deep_return(unsigned int depth)
{
	unsigned long (*again)(unsigned int) = deep_return;

	/* the compiler does not know what it calls */
	asm("" : "+r"(again));
	if (!depth)
		return 0;
	switch (depth % 3) {
	case 0:
		return again(depth - 1) + 1;
	case 1:
		return again(depth - 1) + 2;
	default:
		return again(depth - 1) + 3;
	}
}

static alone void compute(void)
{
	unsigned long x = 1;

	for (int i = 0; i < 4000; i++)
		asm volatile("add %0, %0, %0\n\teor %0, %0, #1" : "+r"(x));
	sink += x;
}

static struct node *nodes(unsigned int n)
{
	struct node *found = aligned_alloc(PAGE, n * sizeof(struct node));

	if (!found)
		exit(1);
	return found;
}

static void prepare(void)
{
	enum { SMALL = 2048, LARGE = 65536, PAGES = 2048, LINES = PAGE / LINE };
	unsigned int *order = calloc(LARGE, sizeof(*order));

	/* 128 KiB in any order */
	for (unsigned int i = 0; i < SMALL; i++)
		order[i] = i;
	shuffle(order, SMALL);
	l1d_miss_at = ring(nodes(SMALL), order, SMALL);
	/* 4 MiB, page after page, in any order in each */
	for (unsigned int i = 0; i < LARGE; i++)
		order[i] = i;
	for (unsigned int i = 0; i < LARGE; i += LINES)
		shuffle(order + i, LINES);
	l2_miss_at = ring(nodes(LARGE), order, LARGE);
	/* one line of each of 2048 pages */
	for (unsigned int i = 0; i < PAGES; i++)
		order[i] = i * LINES + i % LINES;
	dtlb_miss_at = ring(nodes(PAGES * LINES), order, PAGES);
	free(order);
}

int main(int argc, char **argv)
{
	int rounds = argc == 2 ? atoi(argv[1]) : 0;

	if (rounds <= 0) {
		fprintf(stderr, "usage: bottlenecks ROUNDS\n");
		return 1;
	}
	prepare();
	while (rounds--) {
		l1d_miss();
		l2_miss();
		dtlb_miss();
		store_miss();
		for (int i = 0; i < 4; i++)
			l1i_miss();
		for (int i = 0; i < 16; i++)
			itlb_miss();
		branch_target();
		for (int i = 0; i < 40; i++)
			sink += deep_return(64);
		compute();
	}
	return sink == 1;
}
