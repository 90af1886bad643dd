// SPDX-License-Identifier: GPL-2.0
/*
 * A PMU for an emulated x86 CPU, which has none: cycles and instructions are nanoseconds, and a
 * timer makes the interrupt of an overflow.
 *
 * Like the drivers of real PMUs, it reloads the period before the overflow is handled. It counts
 * the kernel's time even if an event excludes that.
 */

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <asm/irq_regs.h>

/* perf_event_overflow() is not exported: a probe gives its address */
static typeof(perf_event_overflow) *overflow;
static struct kprobe probe = { .symbol_name = "perf_event_overflow" };

static void clock_read(struct perf_event *event)
{
	u64 now = ktime_get_ns();
	s64 counted = now - local64_xchg(&event->hw.prev_count, now);

	local64_add(counted, &event->count);
	local64_sub(counted, &event->hw.period_left);
}

/* Returns the nanoseconds to the next overflow. */
static s64 set_period(struct hw_perf_event *hwc)
{
	s64 period = hwc->sample_period, left = local64_read(&hwc->period_left);

	/* an interval that was stopped keeps its period and the rest of it */
	if (left <= 0) {
		left = max(left + period, 1);
		local64_set(&hwc->period_left, left);
		hwc->last_period = period;
	}
	return left;
}

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	struct perf_event *event = container_of(timer, struct perf_event, hw.hrtimer);
	struct perf_sample_data data;
	ktime_t end;

	if (event->hw.state & PERF_HES_STOPPED)
		return HRTIMER_NORESTART;

	clock_read(event);
	perf_sample_data_init(&data, 0, event->hw.last_period);
	end = ktime_add_ns(local64_read(&event->hw.prev_count), set_period(&event->hw));
	overflow(event, &data, get_irq_regs());
	/* throttled: the tick starts the stopped events again */
	if (event->hw.state & PERF_HES_STOPPED)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, end);
	return HRTIMER_RESTART;
}

static void clock_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	local64_set(&event->hw.prev_count, ktime_get_ns());
	if (is_sampling_event(event))
		hrtimer_start(&event->hw.hrtimer, ns_to_ktime(set_period(&event->hw)),
			      HRTIMER_MODE_REL_PINNED_HARD);
}

static void clock_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	/* do not wait: the overflow handler itself may stop the event */
	hrtimer_try_to_cancel(&event->hw.hrtimer);
	clock_read(event);
}

static int clock_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		clock_start(event, PERF_EF_RELOAD);
	return 0;
}

static void clock_del(struct perf_event *event, int flags)
{
	clock_stop(event, PERF_EF_UPDATE);
}

static int clock_init(struct perf_event *event)
{
	if (event->attr.type != PERF_TYPE_HARDWARE || has_branch_stack(event) ||
	    (event->attr.config != PERF_COUNT_HW_CPU_CYCLES &&
	     event->attr.config != PERF_COUNT_HW_INSTRUCTIONS))
		return -ENOENT;
	hrtimer_init(&event->hw.hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	event->hw.hrtimer.function = interrupt;
	return 0;
}

/* events that perf refuses to alternate by the module: Intel's formats, AMD's event of Zen 3 */
PMU_FORMAT_ATTR(event, "config:0-7");
PMU_FORMAT_ATTR(in_tx_cp, "config:33");
PMU_FORMAT_ATTR(acr_mask, "config2:0-63");
static struct attribute *formats[] = {
	&format_attr_event.attr, &format_attr_in_tx_cp.attr, &format_attr_acr_mask.attr, NULL
};

static const struct attribute_group format_group = { .name = "format", .attrs = formats };

static struct perf_pmu_events_attr brs = {
	.attr = { .attr = { .name = "branch-brs", .mode = 0444 }, .show = perf_event_sysfs_show },
	.event_str = "event=0xc4",
};

static struct attribute *events[] = { &brs.attr.attr, NULL };
static const struct attribute_group events_group = { .name = "events", .attrs = events };

static const struct attribute_group *groups[] = { &format_group, &events_group, NULL };

static struct pmu pmu = {
	.module = THIS_MODULE,
	.attr_groups = groups,
	.task_ctx_nr = perf_hw_context,
	.event_init = clock_init,
	.add = clock_add,
	.del = clock_del,
	.start = clock_start,
	.stop = clock_stop,
	.read = clock_read,
};

static int __init start(void)
{
	int error = register_kprobe(&probe);

	if (error)
		return error;
	overflow = (void *)probe.addr;
	unregister_kprobe(&probe);
	return perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);
}

static void __exit stop(void)
{
	perf_pmu_unregister(&pmu);
}

module_init(start);
module_exit(stop);

MODULE_DESCRIPTION("A PMU of nanoseconds");
MODULE_LICENSE("GPL");
