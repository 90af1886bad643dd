// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin of qemu-system-aarch64: what the kernel executes between two pieces of a program.
 *
 * arguments: mark=ADDRESS   count only interrupts that execute this instruction of the kernel
 *            window=N       the interrupt opens a window if the next one comes within N
 *                           instructions of the program
 *            out=FILE       where the counts are written at the end
 *
 * The first line has, for all interrupts that open a window, their number, and the sums of their
 * instructions, lines of code, lines of data and pages of data, of 64 and of 4096 bytes. The second
 * line has the same for those that close one. Then follow the instructions of the first kind:
 * address, number of executions. It is for one vCPU.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define MOST 100000

enum { INSTRUCTIONS, CODE_LINES, DATA_LINES, DATA_PAGES, NR_COUNTS };

static uint64_t mark, window;
static char *out;
/* of the interrupt that is executed, or was the last one: addresses executed, lines and pages */
static GArray *executed, *pending;
static GHashTable *seen[NR_COUNTS];
static uint64_t counts[NR_COUNTS];
static uint64_t in_program;
static bool marked, is_pending;
/* of all that open a window, and of all that close one */
static uint64_t number[2], sums[2][NR_COUNTS];
static GHashTable *executions;

static void note(int what, uint64_t unit)
{
	g_hash_table_add(seen[what], (void *)unit);
}

/* The kernel returns to the program. Other interrupts are forgotten. */
static void end_interrupt(void)
{
	if (marked && executed->len < MOST) {
		GArray *last = pending;

		pending = executed;
		executed = last;
		counts[INSTRUCTIONS] = pending->len;
		for (int i = CODE_LINES; i < NR_COUNTS; i++)
			counts[i] = g_hash_table_size(seen[i]);
		in_program = 0;
		is_pending = true;
	}
	g_array_set_size(executed, 0);
	for (int i = CODE_LINES; i < NR_COUNTS; i++)
		g_hash_table_remove_all(seen[i]);
	marked = false;
}

/* It has become known whether a window follows the last interrupt. */
static void classify(void)
{
	bool closes = in_program > window;

	number[closes]++;
	for (int i = 0; i < NR_COUNTS; i++)
		sums[closes][i] += counts[i];
	for (guint i = 0; i < pending->len && !closes; i++) {
		void *pc = (void *)g_array_index(pending, uint64_t, i);
		void *before = g_hash_table_lookup(executions, pc);

		g_hash_table_insert(executions, pc, (void *)((uint64_t)before + 1));
	}
	is_pending = false;
}

static void execute(unsigned int vcpu, void *pc_)
{
	uint64_t pc = (uint64_t)pc_;

	if (!(pc >> 63)) {
		if (executed->len)
			end_interrupt();
		in_program++;
		return;
	}
	/* the kernel boots, waits, or serves a call: not an interrupt */
	if (executed->len == MOST)
		return;
	g_array_append_val(executed, pc);
	note(CODE_LINES, pc >> 6);
	if (pc == mark) {
		marked = true;
		if (is_pending)
			classify();
	}
}

static void access_memory(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
			  void *unused)
{
	if (executed->len && executed->len < MOST) {
		note(DATA_LINES, address >> 6);
		note(DATA_PAGES, address >> 12);
	}
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_insn_exec_cb(insn, execute, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)qemu_plugin_insn_vaddr(insn));
		qemu_plugin_register_vcpu_mem_cb(insn, access_memory, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

static void write_counts(qemu_plugin_id_t id, void *unused)
{
	FILE *file = fopen(out, "w");
	GHashTableIter at;
	void *pc, *times;

	if (!file)
		return;
	for (int closes = 0; closes < 2; closes++) {
		fprintf(file, "%" PRIu64, number[closes]);
		for (int i = 0; i < NR_COUNTS; i++)
			fprintf(file, " %" PRIu64, sums[closes][i]);
		fprintf(file, "\n");
	}
	g_hash_table_iter_init(&at, executions);
	while (g_hash_table_iter_next(&at, &pc, &times))
		fprintf(file, "%" PRIx64 " %" PRIu64 "\n", (uint64_t)pc, (uint64_t)times);
	fclose(file);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (g_str_has_prefix(argv[i], "mark="))
			mark = g_ascii_strtoull(argv[i] + strlen("mark="), NULL, 0);
		else if (g_str_has_prefix(argv[i], "window="))
			window = g_ascii_strtoull(argv[i] + strlen("window="), NULL, 0);
		else if (g_str_has_prefix(argv[i], "out="))
			out = g_strdup(argv[i] + strlen("out="));
	}
	if (!mark || !window || !out) {
		fprintf(stderr, "interrupts: mark=, window= and out= are needed\n");
		return 1;
	}
	executed = g_array_new(false, false, sizeof(uint64_t));
	pending = g_array_new(false, false, sizeof(uint64_t));
	executions = g_hash_table_new(NULL, NULL);
	for (int i = CODE_LINES; i < NR_COUNTS; i++)
		seen[i] = g_hash_table_new(NULL, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, write_counts, NULL);
	return 0;
}
