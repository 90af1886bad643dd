// SPDX-License-Identifier: GPL-2.0
/*
 * A loop over three functions without a branch: each executes as many
 * instructions as it has, so its symbol's size says what its share is.
 *
 * usage: resonance TURNS
 */
#include <stdlib.h>

#define attributes(...)	__attribute__((__VA_ARGS__))

#define STRAIGHT(name, nops)						\
	static attributes(__noinline__) void name(void)		\
	{								\
		asm volatile(".rept " #nops "\n\tnop\n\t.endr");	\
	}

STRAIGHT(largest, 11072)
STRAIGHT(middle, 9016)
STRAIGHT(smallest, 6938)

int main(int argc, char **argv)
{
	unsigned long turns = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;

	for (; turns; turns--) {
		largest();
		middle();
		smallest();
	}

	return EXIT_SUCCESS;
}
