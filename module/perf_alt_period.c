// SPDX-License-Identifier: GPL-2.0
/*
 * Alternate sample periods for a kernel whose perf_event_attr has none.
 *
 * Such a kernel copies attr.sig_data and ignores it unless attr.sigtrap is set.
 * That is where perf puts the window and its jitter, and where this module finds
 * them when a hardware event overflows. From then on the event alternates between
 * its period and one window; README.md lists what differs from the series.
 *
 * Nobody asks the module when an event is opened. So an event that it cannot
 * alternate, one with a frequency for example, has its own period alone; perf
 * refuses these. The driver begins the second interval before the module hears
 * of the first one, so an event begins with two long intervals, without jitter.
 */
#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/prandom.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "perf_alt_period.h"

/* attr.sig_data as perf makes it, see evsel__use_alt_period_module() */
#define SIG_DATA_MAGIC		GENMASK_ULL(63, 48)
#define SIG_DATA_JITTER		GENMASK_ULL(47, 40)
#define SIG_DATA_WINDOW		GENMASK_ULL(39, 0)
#define MAGIC			0xa17eULL

/* x86 may take a period of 1, which jitter makes of 2, for BTS */
#define PERIOD_MIN		3

#ifdef CONFIG_S390
#error "The samples of s390 do not come from an overflow interrupt."
#endif

static DEFINE_PER_CPU(struct rnd_state, jitter_state);
/* Contexts of CPU-wide events that have overflowed: no task leads to them. */
static DEFINE_PER_CPU(struct perf_event_context *, cpu_context);

/* Set when the module is removed: no more windows may begin. */
static bool leaving;

/* Returns true for x86 events that their driver allows to overflow only seldom. */
static bool needs_long_period(const struct perf_event *event)
{
#ifdef CONFIG_X86
	if (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL)
		return event->hw.config & HSW_IN_TX_CHECKPOINTED;
#endif
#ifdef X86_FEATURE_BRS
	if (boot_cpu_has(X86_FEATURE_BRS))
		return event->attr.branch_sample_type;
#endif
	return false;
}

/* perf does not open most other events. If one gets here, it keeps its own period. */
static bool alternates(struct perf_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	u64 window = FIELD_GET(SIG_DATA_WINDOW, attr->sig_data);

	return FIELD_GET(SIG_DATA_MAGIC, attr->sig_data) == MAGIC &&
	       min(attr->sample_period, window) >= PERIOD_MIN &&
	       !attr->freq && !attr->sigtrap && !attr->precise_ip &&
	       !is_software_event(event) && !needs_long_period(event) &&
	       !perf_alt_period_check(attr->sample_period, window, 0,
				      FIELD_GET(SIG_DATA_JITTER, attr->sig_data));
}

/*
 * The kernel has no member for the phase. freq_count_stamp is unused in an event without a
 * frequency, so it holds the chosen window, or 0. If PERF_EVENT_IOC_PERIOD has set another period
 * since, the event is at the beginning again. If it has set exactly the length of the window, the
 * window counts as chosen.
 */
static u16 phase_of(struct hw_perf_event *hwc)
{
	return hwc->freq_count_stamp == hwc->sample_period ? PERF_ALT_WINDOW : PERF_ALT_LONG;
}

/* The driver takes the long period at its next reload. */
static void end_window(struct perf_event *event)
{
	event->hw.sample_period = event->attr.sample_period;
	event->hw.freq_count_stamp = 0;
}

/* Runs before perf_event_overflow(), in interrupt or NMI context. */
static int overflow(struct kprobe *probe, struct pt_regs *regs)
{
	struct perf_event *event = (void *)regs_get_kernel_argument(regs, 0);
	struct hw_perf_event *hwc = &event->hw;
	u64 data = event->attr.sig_data, period;
	u32 jitter;
	u16 phase;

	if (!alternates(event))
		return 0;

	if (!event->ctx->task)
		__this_cpu_write(cpu_context, event->ctx);

	if (READ_ONCE(leaving)) {
		end_window(event);
		return 0;
	}

	phase = phase_of(hwc);
	period = perf_alt_period_next(&phase, event->attr.sample_period,
				      FIELD_GET(SIG_DATA_WINDOW, data), 0);
	jitter = FIELD_GET(SIG_DATA_JITTER, data);
	if (jitter)
		period = perf_alt_period_jitter(period, jitter,
						prandom_u32_state(this_cpu_ptr(&jitter_state)));
	hwc->sample_period = period;
	hwc->freq_count_stamp = phase == PERF_ALT_WINDOW ? hwc->sample_period : 0;

	return 0;
}

/* Disabled until probe_may_be_used() has seen which kind of probe it is. */
static struct kprobe probe = {
	.symbol_name = "perf_event_overflow",
	.pre_handler = overflow,
	.flags = KPROBE_FLAG_DISABLED,
};

/*
 * On x86 the overflow is an NMI. If it comes while kprobes handle another breakpoint, it may end in
 * BUG() at our breakpoint, see reenter_kprobe(). A probe that ftrace calls misses the overflow
 * instead.
 */
static bool probe_may_be_used(void)
{
	return !IS_ENABLED(CONFIG_X86) || kprobe_ftrace(&probe);
}

static void end_windows(struct perf_event_context *ctx)
{
	struct perf_event *event;

	raw_spin_lock_irq(&ctx->lock);
	list_for_each_entry(event, &ctx->event_list, event_entry) {
		if (alternates(event))
			end_window(event);
	}
	raw_spin_unlock_irq(&ctx->lock);
}

static int __init perf_alt_period_init(void)
{
	int err;

	prandom_seed_full_state(&jitter_state);
	err = register_kprobe(&probe);
	if (err) {
		pr_err("perf_alt_period: cannot probe %s: error %d: the kernel must have this function and CONFIG_KPROBES\n",
		       probe.symbol_name, err);
		return err;
	}

	if (!probe_may_be_used()) {
		pr_err("perf_alt_period: cannot probe %s by ftrace: on x86 this needs Linux 5.16 or later, with CONFIG_KPROBES_ON_FTRACE\n",
		       probe.symbol_name);
		err = -EOPNOTSUPP;
	} else {
		err = enable_kprobe(&probe);
	}
	if (err)
		unregister_kprobe(&probe);

	return err;
}

static void __exit perf_alt_period_exit(void)
{
	struct perf_event_context *ctx;
	struct task_struct *group, *task;
	int cpu;

	/*
	 * After the grace period no handler begins a window. The loops below end the windows of the
	 * events that they find. Other windows end if the event overflows before the probe is
	 * removed. An event may keep its window as a plain period if its task exchanges contexts
	 * with a task that was visited before.
	 */
	WRITE_ONCE(leaving, true);
	synchronize_rcu();

	rcu_read_lock();
	for_each_process_thread(group, task) {
		/* Up to Linux 6.1 this is an array; hardware events have the first one. */
		ctx = rcu_dereference(*(struct perf_event_context __rcu **)&task->perf_event_ctxp);
		if (ctx)
			end_windows(ctx);
	}
	rcu_read_unlock();

	for_each_possible_cpu(cpu) {
		ctx = per_cpu(cpu_context, cpu);
		if (ctx)
			end_windows(ctx);
	}

	unregister_kprobe(&probe);
}

module_init(perf_alt_period_init);
module_exit(perf_alt_period_exit);

MODULE_DESCRIPTION("Alternate sample periods of hardware perf events");
MODULE_LICENSE("GPL");
MODULE_VERSION(PERF_ALT_PERIOD_VERSION);
