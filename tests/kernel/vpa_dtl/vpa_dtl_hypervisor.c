// SPDX-License-Identifier: GPL-2.0
/*
 * The part of a PAPR hypervisor that QEMU lacks: it writes the dispatch trace log.
 *
 * QEMU accepts the place of a processor's log (H_REGISTER_VPA) and does no more. This module sees
 * the hypercall, and a thread of that processor writes entries of known content to the log. So a
 * log changes between the sched_switch to that thread and the next one, and at no other time.
 *
 * Writing N to DEBUGFS/vpa_dtl_hypervisor/write makes N entries for each processor; only those that
 * the log's mask enables are written. The write returns when the last interval is over. The
 * kernel's log tells what was written, and by which threads.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <asm/dtl.h>
#include <asm/hvcall.h>
#include <asm/smp.h>
#include <asm/time.h>

static unsigned int most = N_DISPATCH_LOG - 1;
module_param(most, uint, 0644);
MODULE_PARM_DESC(most, "entries to write at once, at most");

static unsigned int interval = 1000;
module_param(interval, uint, 0644);
MODULE_PARM_DESC(interval, "microseconds from one write to the next");

static DEFINE_PER_CPU(struct dtl_entry *, log);
static DEFINE_PER_CPU(struct work_struct, works);
static u32 wanted;
static struct tracepoint *hcall_entry;
static struct dentry *folder;

/* the events that the mask enables, and their codes in the log */
static const struct {
	u8 mask;
	u8 preempt_reason;
} kinds[] = {
	{ DTL_LOG_CEDE, 2 },
	{ DTL_LOG_PREEMPT, 4 },
	{ DTL_LOG_FAULT, 6 },
};

#define DISPATCH_REASONS 11

static struct dtl_entry known_entry(u32 number)
{
	return (struct dtl_entry) {
		.dispatch_reason = number % DISPATCH_REASONS,
		.preempt_reason = kinds[number % ARRAY_SIZE(kinds)].preempt_reason,
		.processor_id = cpu_to_be16(smp_processor_id()),
		.enqueue_to_dispatch_time = cpu_to_be32(number),
		.ready_to_enqueue_time = cpu_to_be32(number * GOLDEN_RATIO_32),
		.waiting_to_ready_time = cpu_to_be32(~number),
		.timebase = cpu_to_be64(mftb()),
		.fault_addr = cpu_to_be64(number * GOLDEN_RATIO_64),
		.srr0 = cpu_to_be64((u64)plpar_hcall_norets + number % 4 * 4),
		.srr1 = cpu_to_be64(number ^ 0x8000000000009033),
	};
}

/* Returns the entry's timebase, 0 when the log does not want it. */
static u64 log_entry(u32 number)
{
	struct dtl_entry entry = known_entry(number);
	struct lppaca *vpa = get_lppaca();
	struct dtl_entry *ring = __this_cpu_read(log);
	u64 index = be64_to_cpu(vpa->dtl_idx);

	if (!ring || !(vpa->dtl_enable_mask & kinds[number % ARRAY_SIZE(kinds)].mask))
		return 0;
	ring[index % N_DISPATCH_LOG] = entry;
	/* readers of the index must see the entry */
	smp_wmb();
	vpa->dtl_idx = cpu_to_be64(index + 1);
	return be64_to_cpu(entry.timebase);
}

/* Runs on each processor. */
static void hypervisor(struct work_struct *work)
{
	u32 next = 0, chunk, written = 0;
	u64 timebase, sum = 0;

	while (next < wanted) {
		local_irq_disable();
		for (chunk = hash_32(next, 32) % most + 1; chunk && next < wanted; chunk--) {
			timebase = log_entry(next++);
			written += !!timebase;
			sum += timebase;
		}
		local_irq_enable();
		fsleep(interval);
	}
	pr_info("vpa_dtl_hypervisor: cpu %d thread %d wrote %u entries, sum of timebases %llu\n",
		raw_smp_processor_id(), current->pid, written, sum);
}

static int write_entries(void *data, u64 number)
{
	int cpu;

	wanted = number;
	for_each_online_cpu(cpu) {
		INIT_WORK(per_cpu_ptr(&works, cpu), hypervisor);
		schedule_work_on(cpu, per_cpu_ptr(&works, cpu));
	}
	for_each_online_cpu(cpu)
		flush_work(per_cpu_ptr(&works, cpu));
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(write_fops, NULL, write_entries, "%llu\n");

static void see_hcall(void *data, unsigned long opcode, unsigned long *args)
{
	unsigned long function = args[0] >> H_VPA_FUNC_SHIFT & H_VPA_FUNC_MASK;
	int cpu;

	if (opcode != H_REGISTER_VPA || (function != H_VPA_REG_DTL && function != H_VPA_DEREG_DTL))
		return;
	for_each_possible_cpu(cpu)
		if (get_hard_smp_processor_id(cpu) == args[1])
			per_cpu(log, cpu) = function == H_VPA_REG_DTL ? __va(args[2]) : NULL;
}

static void find_hcall_entry(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "hcall_entry"))
		hcall_entry = tracepoint;
}

static int __init start(void)
{
	int error;

	for_each_kernel_tracepoint(find_hcall_entry, NULL);
	if (!hcall_entry)
		return -ENOENT;
	error = tracepoint_probe_register(hcall_entry, see_hcall, NULL);
	if (error)
		return error;
	folder = debugfs_create_dir("vpa_dtl_hypervisor", NULL);
	debugfs_create_file_unsafe("write", 0200, folder, NULL, &write_fops);
	return 0;
}

static void __exit stop(void)
{
	debugfs_remove(folder);
	tracepoint_probe_unregister(hcall_entry, see_hcall, NULL);
	tracepoint_synchronize_unregister();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Writes a dispatch trace log of known content");
MODULE_LICENSE("GPL");
