// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a trace through the core model, without QEMU: usage: trace [NAME=VALUE...]
 *
 * Each line of the input is one step, with numbers as in C:
 *
 * x N                     N instructions are executed
 * f ADDRESS               fetch
 * l ADDRESS SIZE          load
 * s ADDRESS SIZE          store
 * b KIND PC TARGET NEXT   branch
 * u KIND                  slow instruction
 * p SPACE                 another process
 * d WORD PC               decode
 *
 * Each line of the output is the value that the model returned; the last line has the counts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

static uint64_t recorded[NR_CORE_EVENTS];
/* those that belong to the instruction after a branch */
static uint64_t recorded_after[NR_CORE_EVENTS];
static char after;

void core_record(void *context, void *insn, enum core_event event, uint64_t n)
{
	(void)context;
	recorded[event] += n;
	if (insn == &after)
		recorded_after[event] += n;
}

int main(int argc, char **argv)
{
	struct core_config config = core_small;
	struct core_counts counts = {};
	const char *wrong = NULL;
	struct core core;
	char line[256];

	for (int i = 1; i < argc && !wrong; i++) {
		char *value = strchr(argv[i], '=');

		*value++ = '\0';
		wrong = core_configure(&config, argv[i], value);
	}
	wrong = wrong ?: core_init(&core, &config);
	if (wrong) {
		fprintf(stderr, "%s\n", wrong);
		return 1;
	}
	core.counts = &counts;
	for (int i = 0; i < NR_CORE_EVENTS; i++)
		counts.due[i] = UINT64_MAX;
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t n[4] = {}, cycles = 0, target;
		char *at = line + 1;

		for (int i = 0; i < 4; i++)
			n[i] = strtoull(at, &at, 0);
		switch (*line) {
		case 'x':
			core_execute(&core, n[0]);
			break;
		case 'f':
			cycles = core_fetch(&core, NULL, n[0]);
			break;
		case 'l':
		case 's':
			cycles = core_access(&core, NULL, n[0], n[1], *line == 's');
			break;
		case 'b':
			cycles = core_branch(&core, NULL, &after, n[0],
					     core_misses(&core, n[0], n[1], n[2], n[3]));
			break;
		case 'u':
			cycles = core_unit(&core, NULL, n[0]);
			break;
		case 'p':
			core.space = n[0];
			break;
		case 'd':
			cycles = a64_decode(n[0], n[1], &target);
			printf("%" PRIu64 " %" PRIx64 "\n", cycles, target);
			continue;
		}
		printf("%" PRIu64 "\n", cycles);
	}
	for (int i = 0; i < NR_CORE_EVENTS; i++) {
		if (i != STALL && i != INST_SPEC && i != BR_RETIRED && i != BR_RETURN_RETIRED &&
		    recorded[i] != counts.count[i])
			abort();
		printf("%s=%" PRIu64 " ", core_events[i].name, counts.count[i]);
		printf("AFTER_%s=%" PRIu64 " ", core_events[i].name, recorded_after[i]);
	}
	printf("CYCLES=%" PRIu64 "\n", core.cycles);
	core_destroy(&core);
	return 0;
}
