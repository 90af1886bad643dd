// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a recording in a pipe as perf functions top does: live.
 *
 * usage: live PIPE [parts]. PIPE is a file with what perf record writes to a pipe. It prints the
 * sums at the end; with parts, those since the last round after each round.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/types.h>
#include "util/functions/functions.h"
#include "util/symbol.h"
#include "util/symbol_conf.h"

static bool is_due(void *data)
{
	return *(bool *)data;
}

static int take(void *data, struct fn_table *table, u64 begin, u64 end)
{
	(void)data;
	(void)begin;
	(void)end;
	return fn_table__write_sums("-", table);
}

int main(int argc, char **argv)
{
	bool in_parts = argc == 3;
	const struct fn_options options = {
		.by = "symbol", .force = true, .take = take, .is_due = is_due, .data = &in_parts,
	};
	struct fn_table table = {};

	if (argc != 2 && !in_parts)
		return EXIT_FAILURE;
	symbol_conf.priv_size = sizeof(struct fn_row *);
	symbol_conf.kallsyms_name = "/dev/null";
	symbol_conf.try_vmlinux_path = false;
	return fn_session__read(argv[1], &options, &table) ? EXIT_FAILURE : EXIT_SUCCESS;
}
