// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The core model as a plugin of qemu-system-aarch64: it follows the execution of each vCPU, lets it
 * wait, counts the events of the guest's PMU, and records branches. Each block of instructions
 * calls enter_block() when it begins. Only then the end of the previous block is known: the target
 * of its branch, or the instructions that did not execute because of an exception. Under -icount,
 * which waiting needs, all vCPUs run in turn on one thread: so there are no locks.
 */
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qemu-plugin.h>

#include "core.h"
#include "late.h"
#include "truth.h"

#define LINE 64
#define MAX_VCPUS 64
#define REGISTERS 31
/* the largest access in bytes */
#define MAX_ACCESS 16
#define VECTORS_SIZE 0x800
#define VECTOR_SIZE 0x80
/* vectors come in fours, of which the first one is for synchronous exceptions */
#define VECTOR_KINDS 4

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/**
 * struct board - what a processor and QEMU tell each other
 * @counts: what the PMU counts
 * @branches_wanted: the guest records branches
 * @operations_wanted: the guest samples operations of users (bit 0), of the kernel (bit 1)
 * @operations_left: how many are left to the next one
 */
struct board {
	struct core_counts counts;
	uint64_t branches_wanted, operations_wanted;
	int64_t operations_left;
};

/**
 * struct vcpu - a processor, and who executes on it
 * @core: the core that executes: @own with kernel=on, else that of the image
 * @own: the core that all share who execute here
 * @others: cycles that other cores have executed here, less those of @core elsewhere
 * @board: what it shares with QEMU
 * @block: what it executes
 * @operation: an operation of @block that is followed, if @core follows one
 * @image: whose instructions these are
 * @thread: as the kernel numbers it
 * @space: its page table
 * @in_kernel: no user has executed since the last exception, or since the start
 * @x: handles of the registers x0 ... x30
 * @elr: handle of ELR_EL1
 */
struct vcpu {
	struct core *core, own;
	uint64_t others;
	struct board *board;
	struct block *block;
	struct qemu_plugin_operation operation;
	struct image *image;
	uint32_t thread;
	uint64_t space;
	bool in_kernel;
	struct qemu_plugin_register *x[REGISTERS], *elr;
};

static struct core_config config;
/* with kernel=on, from the first process on, the core executes the kernel, too */
static bool model_kernel;
static bool kernel_argument;
static const char *truth_file;
static struct vcpu vcpus[MAX_VCPUS];
static GArray *vectors;
static qemu_plugin_id_t plugin_id;
static struct qemu_plugin_scoreboard *boards;
/* branch records of the guest, and where they are written as text */
static uint64_t nr_records = 64;
static const void *time_control;

G_GNUC_PRINTF(1, 2) static void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "model: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
}

static bool is_kernel(uint64_t pc)
{
	return pc >> 63;
}

/* Ends each callback: the vCPU waits, and the PMU checks its counts. */
static void finish(unsigned int index, struct vcpu *vcpu, uint64_t cycles)
{
	if (cycles && !qemu_plugin_stall_vcpu(time_control, index, cycles)) {
		fail("time can only pass with -icount shift=N, without record and replay");
		exit(1);
	}
	if (vcpu->core->due) {
		vcpu->core->due = false;
		qemu_plugin_pmu_event_due(index);
	}
}

static uint64_t read_register(struct qemu_plugin_register *handle)
{
	g_autoptr(GByteArray) bytes = g_byte_array_new();
	uint64_t value = 0;

	if (handle && qemu_plugin_read_register(handle, bytes) == sizeof(value))
		memcpy(&value, bytes->data, sizeof(value));
	return GUINT64_FROM_LE(value);
}

/*
 * Each image has a core of its own unless the kernel is modelled: when and how often other images
 * run depends on the recording, and on the host.
 */
static void use_image(struct vcpu *vcpu, struct image *image)
{
	vcpu->image = image;
	vcpu->others += vcpu->core->cycles;
	vcpu->core = &vcpu->own;
	if (!model_kernel) {
		if (!image->core) {
			image->core = g_new(struct core, 1);
			core_init(image->core, &config);
		}
		vcpu->core = image->core;
	}
	vcpu->others -= vcpu->core->cycles;
	vcpu->core->counts = &vcpu->board->counts;
	vcpu->core->context = image;
}

/* The user, or the kernel, goes from @source to @target. */
static void record_branch(struct vcpu *vcpu, enum qemu_plugin_branch_kind kind, uint64_t source,
			  uint64_t target, bool missed)
{
	struct qemu_plugin_branch branch = {
		.source = source, .target = target,
		.cycle = vcpu->others + vcpu->core->cycles,
		.kind = kind,
		.source_user = !is_kernel(source), .target_user = !is_kernel(target),
		.missed = missed,
	};

	qemu_plugin_record_branch(vcpu - vcpus, &branch);
}

/* @block has ended, perhaps with a @missed branch, while branches are recorded. */
static G_NO_INLINE void record_end(struct vcpu *vcpu, struct block *block, uint64_t next,
				   bool missed)
{
	static const enum qemu_plugin_branch_kind kinds[] = {
		[INSN_DIRECT] = QEMU_PLUGIN_BRANCH_DIRECT,
		[INSN_CONDITIONAL] = QEMU_PLUGIN_BRANCH_CONDITIONAL,
		[INSN_INDIRECT] = QEMU_PLUGIN_BRANCH_INDIRECT,
		[INSN_CALL] = QEMU_PLUGIN_BRANCH_CALL,
		[INSN_INDIRECT_CALL] = QEMU_PLUGIN_BRANCH_INDIRECT_CALL,
		[INSN_RETURN] = QEMU_PLUGIN_BRANCH_RETURN,
		[INSN_EXCEPTION_RETURN] = QEMU_PLUGIN_BRANCH_EXCEPTION_RETURN,
	};
	struct insn *last = &block->insns[block->n - 1];

	if ((block->branch || last->kind == INSN_EXCEPTION_RETURN) &&
	    (block->branch != INSN_CONDITIONAL || next == block->target))
		record_branch(vcpu, kinds[last->kind], last->pc, next, missed);
}

static bool samples_operations(const struct vcpu *vcpu, const struct block *block)
{
	return vcpu->board->operations_wanted & 1 << is_kernel(block->pc);
}

/* @block begins: follow its operation that takes the count to 0. */
static G_NO_INLINE void count_operations(struct vcpu *vcpu, struct block *block)
{
	int64_t left = vcpu->board->operations_left;

	vcpu->board->operations_left -= block->n;
	if (left <= 0 || left > block->n)
		return;
	vcpu->operation = (struct qemu_plugin_operation){.pc = block->pc + (left - 1) * 4};
	core_follow(vcpu->core, &block->insns[left - 1]);
}

/*
 * The operation of @block that is followed has ended; if it is a branch, perhaps a @missed one,
 * then @next is executed. What the core waits for before an instruction, to fetch it, is not of
 * that instruction.
 */
static G_NO_INLINE void end_operation(struct vcpu *vcpu, struct block *block, uint64_t next,
				      bool missed)
{
	static const struct {
		enum core_event event;
		enum qemu_plugin_operation_flags flag;
	} flags[] = {
		{L1D_CACHE_REFILL, QEMU_PLUGIN_OPERATION_L1D_MISS},
		{L1D_TLB_REFILL, QEMU_PLUGIN_OPERATION_TLB_MISS},
		{L2D_CACHE, QEMU_PLUGIN_OPERATION_LLC_ACCESS},
		{L2D_CACHE_REFILL, QEMU_PLUGIN_OPERATION_LLC_MISS},
	};
	struct qemu_plugin_operation *operation = &vcpu->operation;
	struct insn *insn = vcpu->core->followed;
	uint64_t *events = vcpu->core->events;

	for (size_t i = 0; i < G_N_ELEMENTS(flags); i++)
		if (events[flags[i].event])
			operation->flags |= flags[i].flag;
	if (insn->accesses_simd)
		operation->flags |= QEMU_PLUGIN_OPERATION_SIMD_FP;
	if (is_branch(insn->kind) || insn->kind == INSN_EXCEPTION_RETURN) {
		operation->address = next;
		operation->flags = QEMU_PLUGIN_OPERATION_BRANCH;
		if (insn->kind == INSN_CONDITIONAL)
			operation->flags |= QEMU_PLUGIN_OPERATION_CONDITIONAL;
		else if (insn->kind != INSN_DIRECT && insn->kind != INSN_CALL)
			operation->flags |= QEMU_PLUGIN_OPERATION_INDIRECT;
		if (insn->kind == INSN_CONDITIONAL && next != block->target)
			operation->flags |= QEMU_PLUGIN_OPERATION_NOT_TAKEN;
		if (missed)
			operation->flags |= QEMU_PLUGIN_OPERATION_MISPREDICTED;
	}
	operation->latency = 1 + events[STALL_BACKEND];
	operation->translation_latency = events[L1D_TLB_REFILL] * config.walk_latency;
	core_follow(vcpu->core, NULL);
	qemu_plugin_record_operation(vcpu - vcpus, operation);
}

/* @block has ended, and @next is executed then. Returns whether it ends with a missed branch. */
static bool leave_block(struct vcpu *vcpu, struct block *block, uint64_t next)
{
	bool missed = block->branch &&
		      core_misses(vcpu->core, block->branch, block->pc + (block->n - 1) * 4ULL,
				  block->target, next);

	if (G_UNLIKELY(vcpu->board->branches_wanted))
		record_end(vcpu, block, next, missed);
	if (G_UNLIKELY(vcpu->core->followed))
		end_operation(vcpu, block, next, missed);
	return missed;
}

/* @block has ended with a branch; @next is executed then. */
static uint64_t branch(struct vcpu *vcpu, struct block *block, bool missed, struct block *next)
{
	return core_branch(vcpu->core, &block->insns[block->n - 1], &next->insns[0], block->branch,
			   missed);
}

/* @block ends before its instruction number @executed. */
static void cut_block(struct vcpu *vcpu, struct block *block, uint64_t executed)
{
	truth_abort(vcpu->image, block, executed);
	vcpu->core->cycles -= block->n - executed;
	if (samples_operations(vcpu, block))
		vcpu->board->operations_left += block->n - executed;
	if (vcpu->core->followed) {
		if (vcpu->operation.pc < block->pc + executed * 4)
			end_operation(vcpu, block, 0, false);
		core_follow(vcpu->core, NULL);
	}
}

static uint64_t begin_block(struct vcpu *vcpu, struct block *block)
{
	uint64_t cycles = 0, pc = block->pc;

	vcpu->block = block;
	truth_execute(vcpu->image, block);
	core_execute(vcpu->core, block->n);
	for (uint64_t i = 0; i < block->n; i += (LINE - (pc + i * 4) % LINE) / 4)
		cycles += core_fetch(vcpu->core, &block->insns[i], pc + i * 4);
	/* from now on events are those of data */
	if (G_UNLIKELY(samples_operations(vcpu, block)))
		count_operations(vcpu, block);
	return cycles;
}

static void register_callbacks(qemu_plugin_id_t id);

/* A user executes after the kernel, perhaps not the same one as before. */
static uint64_t resume_user(struct vcpu *vcpu, struct block *block)
{
	uint64_t cycles = 0;

	/* wait for the first process: the kernel boots as thread 0, partly at user addresses */
	if (kernel_argument && !model_kernel && vcpu->thread) {
		model_kernel = true;
		/* translate all code again, the kernel's with callbacks */
		qemu_plugin_reset(plugin_id, register_callbacks);
	}
	vcpu->in_kernel = false;
	use_image(vcpu, truth_image(vcpu->thread, vcpu->space));
	if (vcpu->image->branch)
		cycles = branch(vcpu, vcpu->image->branch, vcpu->image->missed, block);
	vcpu->image->branch = NULL;
	return cycles;
}

/* It is called for each block: calls in it would take a fifth of its time. */
__attribute__((flatten)) static void enter_block(unsigned int index, void *block_)
{
	struct vcpu *vcpu = &vcpus[index];
	struct block *block = block_, *before = vcpu->block;
	uint64_t cycles = 0, pc = block->pc;

	if (!vcpu->in_kernel)
		late_step(vcpu->image, vcpu->core->cycles, pc, before && before->branch);
	if (before) {
		bool missed = leave_block(vcpu, before, pc);

		if (before->branch)
			cycles = branch(vcpu, before, missed, block);
	}
	if (vcpu->in_kernel && !is_kernel(pc)) {
		cycles += resume_user(vcpu, block);
		late_step(vcpu->image, vcpu->core->cycles, pc, true);
	}
	finish(index, vcpu, cycles + begin_block(vcpu, block));
}

/*
 * The block of @vcpu was interrupted before its instruction number @executed, whose address is
 * @next, or after its end, to go on at @next; @vector is executed then. The branch of a user is
 * counted when the user goes on, because the PMU has switched to the kernel's counters already.
 */
static uint64_t interrupt_block(struct vcpu *vcpu, uint64_t executed, uint64_t next,
				struct block *vector)
{
	struct block *block = vcpu->block;
	bool missed;

	vcpu->block = NULL;
	/* an instruction that does nothing but cause an exception is counted as executed */
	if (executed == block->n - 1 && !block->insns[executed].accesses_memory)
		executed++;
	if (executed < block->n) {
		cut_block(vcpu, block, executed);
		return 0;
	}
	missed = leave_block(vcpu, block, next);
	if (block->branch && !is_kernel(block->pc)) {
		vcpu->image->branch = block;
		vcpu->image->missed = missed;
	} else if (block->branch) {
		return branch(vcpu, block, missed, vector);
	}
	return 0;
}

/* Handles an exception, after a whole block or at the instruction in ELR. */
static void enter_vector(unsigned int index, void *block_)
{
	struct vcpu *vcpu = &vcpus[index];
	struct block *block = block_, *before = vcpu->block;
	uint64_t cycles = 0, executed = UINT64_MAX, pc = block->pc;
	uint64_t next = read_register(vcpu->elr);

	if (before && pc / VECTOR_SIZE % VECTOR_KINDS == 0 && next >= before->pc)
		executed = (next - before->pc) / 4;
	if (before)
		cycles = interrupt_block(vcpu, executed, next, block);
	if (vcpu->board->branches_wanted && (model_kernel || !vcpu->in_kernel))
		record_branch(vcpu, QEMU_PLUGIN_BRANCH_EXCEPTION, next, pc, false);
	vcpu->in_kernel = true;
	if (model_kernel)
		cycles += begin_block(vcpu, block);
	finish(index, vcpu, cycles);
}

/*
 * An access to a device has to be the last instruction of its block. Otherwise QEMU stops the block
 * there, executes the access alone, without enter_block(), and then the rest. Returns that
 * instruction of the block.
 */
static struct insn *accessing(struct vcpu *vcpu, struct insn *insn)
{
	struct block *block = vcpu->block;
	uint64_t i;

	if (!block || (insn >= block->insns && insn < block->insns + block->n))
		return insn;
	i = (insn->pc - block->pc) / 4;
	if (i >= block->n)
		return insn;
	cut_block(vcpu, block, i + 1);
	vcpu->block = NULL;
	return &block->insns[i];
}

static void access_memory(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address,
			  struct insn *insn, bool store)
{
	struct vcpu *vcpu = &vcpus[index];
	unsigned int size = 1;

	if (address % LINE > LINE - MAX_ACCESS)
		size <<= qemu_plugin_mem_size_shift(info);
	if (G_UNLIKELY(insn == vcpu->core->followed)) {
		if (!vcpu->operation.flags)
			vcpu->operation.address = address;
		vcpu->operation.flags |= store ? QEMU_PLUGIN_OPERATION_STORE :
						 QEMU_PLUGIN_OPERATION_LOAD;
	}
	insn = accessing(vcpu, insn);
	finish(index, vcpu, core_access(vcpu->core, insn, address, size, store));
}

static void load(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *insn)
{
	access_memory(index, info, address, insn, false);
}

static void store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *insn)
{
	access_memory(index, info, address, insn, true);
}

static void use_unit(unsigned int index, void *insn_)
{
	struct vcpu *vcpu = &vcpus[index];
	struct insn *insn = insn_;

	finish(index, vcpu, core_unit(vcpu->core, insn, insn->kind));
}

static void set_thread(unsigned int index, void *x)
{
	struct vcpu *vcpu = &vcpus[index];

	vcpu->thread = read_register(vcpu->x[GPOINTER_TO_UINT(x)]);
	use_image(vcpu, truth_image(vcpu->thread, 0));
}

static void set_space(unsigned int index, void *x)
{
	struct vcpu *vcpu = &vcpus[index];

	/* keep the address only; small tables are aligned to 64 bytes */
	vcpu->space = read_register(vcpu->x[GPOINTER_TO_UINT(x)]) & 0xffffffffffc0;
	vcpu->own.space = vcpu->space * 0x9e3779b97f4a7c15ULL >> 44;
}

static void set_vectors(unsigned int index, void *x)
{
	struct vcpu *vcpu = &vcpus[index];
	uint64_t base = read_register(vcpu->x[GPOINTER_TO_UINT(x)]);

	for (guint i = 0; i < vectors->len; i++)
		if (g_array_index(vectors, uint64_t, i) == base)
			return;
	g_array_append_val(vectors, base);
}

static bool is_vector(uint64_t pc)
{
	for (guint i = 0; i < vectors->len; i++) {
		uint64_t offset = pc - g_array_index(vectors, uint64_t, i);

		if (offset < VECTORS_SIZE && !(offset % VECTOR_SIZE))
			return true;
	}
	return false;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t pc = qemu_plugin_tb_vaddr(tb);
	uint32_t *words = g_new0(uint32_t, n);
	bool modelled = model_kernel || !is_kernel(pc);
	struct block *block;

	for (size_t i = 0; i < n; i++)
		qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, i), &words[i], sizeof(*words));
	block = truth_block(pc, words, n);

	if (is_vector(pc))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, enter_vector, QEMU_PLUGIN_CB_R_REGS,
						     block);
	else if (modelled)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, enter_block, QEMU_PLUGIN_CB_NO_REGS,
						     block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *qemu_insn = qemu_plugin_tb_get_insn(tb, i);
		struct insn *insn = &block->insns[i];
		qemu_plugin_vcpu_udata_cb_t set = NULL;
		unsigned int x = a64_register(words[i]);

		switch (insn->kind) {
		case INSN_SET_THREAD:
			set = set_thread;
			break;
		case INSN_SET_SPACE:
			set = set_space;
			break;
		case INSN_SET_VECTORS:
			set = set_vectors;
			break;
		case INSN_INTEGER_DIVIDE:
		case INSN_FLOAT_DIVIDE:
		case INSN_CONVERT:
		case INSN_ISB:
			if (modelled)
				qemu_plugin_register_vcpu_insn_exec_cb(qemu_insn, use_unit,
								       QEMU_PLUGIN_CB_NO_REGS,
								       insn);
			break;
		default:
			break;
		}
		if (set && x < REGISTERS)
			qemu_plugin_register_vcpu_insn_exec_cb(qemu_insn, set,
							       QEMU_PLUGIN_CB_R_REGS,
							       GUINT_TO_POINTER(x));
		if (modelled) {
			qemu_plugin_register_vcpu_mem_cb(qemu_insn, load, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_R, insn);
			qemu_plugin_register_vcpu_mem_cb(qemu_insn, store, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_W, insn);
		}
	}
	g_free(words);
}

static void find_registers(struct vcpu *vcpu)
{
	GArray *registers = qemu_plugin_get_registers();

	for (guint i = 0; i < registers->len; i++) {
		unsigned int x;
		char end;
		qemu_plugin_reg_descriptor reg;

		reg = g_array_index(registers, qemu_plugin_reg_descriptor, i);
		if (sscanf(reg.name, "x%u%c", &x, &end) == 1 && x < REGISTERS)
			vcpu->x[x] = reg.handle;
		else if (!strcmp(reg.name, "ELR_EL1"))
			vcpu->elr = reg.handle;
	}
	g_array_free(registers, true);
	g_assert(vcpu->x[0] && vcpu->x[30] && vcpu->elr);
}

static void init_vcpu(qemu_plugin_id_t id, unsigned int index)
{
	struct vcpu *vcpu = &vcpus[index];

	if (index >= MAX_VCPUS) {
		fail("it is for %d processors at most", MAX_VCPUS);
		exit(1);
	}
	/* qemu_plugin_install() has checked the configuration */
	core_init(&vcpu->own, &config);
	vcpu->core = &vcpu->own;
	vcpu->in_kernel = true;
	find_registers(vcpu);
	/* scoreboards move when they grow */
	for (unsigned int i = 0; i <= index; i++) {
		vcpus[i].board = qemu_plugin_scoreboard_find(boards, i);
		use_image(&vcpus[i], truth_image(0, 0));
	}
}

static void write_truth(qemu_plugin_id_t id, void *unused)
{
	char *new = g_strconcat(truth_file, ".new", NULL);
	FILE *file = fopen(new, "w");
	int error = file ? truth_write(file) : errno;

	if (file && fclose(file) && !error)
		error = errno;
	if (!error && rename(new, truth_file))
		error = errno;
	if (error) {
		remove(new);
		fail("%s cannot be written: %s", truth_file, strerror(error));
	}
	g_free(new);
}

static void register_callbacks(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_init_cb(id, init_vcpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	if (truth_file)
		qemu_plugin_register_atexit_cb(id, write_truth, NULL);
}

static bool parse_argument(const char *argument)
{
	g_auto(GStrv) pair = NULL;
	const char *wrong;

	pair = g_strsplit(argument, "=", 2);

	if (!pair[0] || !pair[1]) {
		wrong = "an argument is NAME=VALUE";
	} else if (!strcmp(pair[0], "kernel")) {
		wrong = qemu_plugin_bool_parse(pair[0], pair[1], &kernel_argument) ?
				NULL :
				"it is on or off";
	} else if (!strcmp(pair[0], "records")) {
		wrong = g_ascii_string_to_unsigned(pair[1], 10, 0, 64, &nr_records, NULL) &&
					(!nr_records || nr_records >= 8) &&
					!(nr_records & (nr_records - 1)) ?
				NULL :
				"it is 0, 8, 16, 32 or 64";
	} else if (!strcmp(pair[0], "late")) {
		wrong = late_start(pair[1]);
	} else if (!strcmp(pair[0], "truth")) {
		truth_file = g_strdup(pair[1]);
		wrong = NULL;
	} else {
		wrong = core_configure(&config, pair[0], pair[1]);
	}
	if (wrong)
		fail("%s: %s", argument, wrong);
	return !wrong;
}

/* Gives the guest's PMU its events, its branch records, and operations. */
static bool provide_pmu(qemu_plugin_id_t id)
{
	qemu_plugin_u64 wanted = {boards, offsetof(struct board, branches_wanted)};
	qemu_plugin_u64 levels = {boards, offsetof(struct board, operations_wanted)};
	qemu_plugin_u64 left = {boards, offsetof(struct board, operations_left)};

	if (nr_records && !qemu_plugin_register_branch_records(id, nr_records, wanted))
		return false;
	if (!qemu_plugin_register_operations(id, levels, left))
		return false;
	for (enum core_event event = 0; event < NR_CORE_EVENTS; event++) {
		qemu_plugin_u64 count = {boards, offsetof(struct board, counts.count[event])};
		qemu_plugin_u64 due = {boards, offsetof(struct board, counts.due[event])};

		for (size_t i = 0; i < G_N_ELEMENTS(core_events[event].numbers); i++) {
			uint8_t number = core_events[event].numbers[i];

			if (number && !qemu_plugin_register_pmu_event(id, number, count, due))
				return false;
		}
	}
	return true;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	struct core core;
	const char *wrong;

	if (strcmp(info->target_name, "aarch64") || !info->system_emulation) {
		fail("it is for qemu-system-aarch64");
		return 1;
	}
	config = core_small;
	for (int i = 0; i < argc; i++)
		if (!parse_argument(argv[i]))
			return 1;
	wrong = core_init(&core, &config);
	if (wrong) {
		fail("%s", wrong);
		return 1;
	}
	core_destroy(&core);
	if (late_is_on() && kernel_argument) {
		fail("late=FILE needs a core for each program: leave kernel=on out");
		return 1;
	}

	vectors = g_array_new(false, false, sizeof(uint64_t));
	boards = qemu_plugin_scoreboard_new(sizeof(struct board));
	time_control = qemu_plugin_request_time_control();
	if (!provide_pmu(id)) {
		fail("another plugin counts the same events");
		return 1;
	}
	plugin_id = id;
	if (truth_file)
		truth_start();
	register_callbacks(id);
	return 0;
}
