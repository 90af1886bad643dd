// SPDX-License-Identifier: GPL-2.0
/*
 * usage: lives CHILDREN INSTRUCTIONS
 * Forks children, one after the other, which execute INSTRUCTIONS each: a fifth in early(), then
 * the others in late().
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each round has two instructions. */
static inline void rounds(unsigned long number)
{
	asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(number) : : "cc");
}

static __attribute__((noipa)) void early(unsigned long instructions)
{
	rounds(instructions / 2);
}

static __attribute__((noipa)) void late(unsigned long instructions)
{
	rounds(instructions / 2);
}

int main(int argc, char **argv)
{
	const int children = argc > 1 ? atoi(argv[1]) : 100;
	const unsigned long instructions = argc > 2 ? atol(argv[2]) : 1000000;

	for (int i = 0; i < children; i++) {
		const pid_t pid = fork();

		if (!pid) {
			early(instructions / 5);
			late(instructions / 5 * 4);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}
