// SPDX-License-Identifier: GPL-2.0
/*
 * The part of a PAPR hypervisor that QEMU lacks: it writes the dispatch trace log.
 *
 * QEMU accepts the place of a processor's log (H_REGISTER_VPA) and does no more. This module sees
 * the hypercall. Writing N to DEBUGFS/vpa_dtl_hypervisor makes N numbered entries on each processor
 * that has a log, a few in each millisecond, and tells in the kernel's log how many were written.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/tracepoint.h>
#include <asm/dtl.h>
#include <asm/hvcall.h>
#include <asm/smp.h>
#include <asm/time.h>

#define AT_ONCE 64

static DEFINE_PER_CPU(struct dtl_entry *, log);
static struct tracepoint *hcall_entry;
static struct dentry *file;

/* Runs on each processor, from *info on. */
static void write_some(void *info)
{
	struct dtl_entry *ring = __this_cpu_read(log);
	struct lppaca *vpa = get_lppaca();
	u32 number = *(u32 *)info;
	u64 index = be64_to_cpu(vpa->dtl_idx);

	for (u32 i = 0; ring && i < AT_ONCE; i++, index++) {
		ring[index % N_DISPATCH_LOG] = (struct dtl_entry) {
			.preempt_reason = 2,
			.processor_id = cpu_to_be16(smp_processor_id()),
			.enqueue_to_dispatch_time = cpu_to_be32(number + i),
			.timebase = cpu_to_be64(mftb()),
			.srr0 = cpu_to_be64((u64)plpar_hcall_norets),
		};
		/* readers of the index must see the entry */
		smp_wmb();
		vpa->dtl_idx = cpu_to_be64(index + 1);
	}
}

static int write_entries(void *data, u64 number)
{
	for (u32 next = 0; next < number; next += AT_ONCE) {
		on_each_cpu(write_some, &next, true);
		usleep_range(2000, 2100);
	}
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
	if (!error)
		file = debugfs_create_file_unsafe("vpa_dtl_hypervisor", 0200, NULL, NULL,
						  &write_fops);
	return error;
}

static void __exit stop(void)
{
	debugfs_remove(file);
	tracepoint_probe_unregister(hcall_entry, see_hcall, NULL);
	tracepoint_synchronize_unregister();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Writes a dispatch trace log of known content");
MODULE_LICENSE("GPL");
