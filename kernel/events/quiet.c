// SPDX-License-Identifier: GPL-2.0
/*
 * Quiet windows: the sample which opens a window of an event that alternates is
 * taken at the overflow, but written when the window closes. So the interrupt
 * before a window is short, and leaves caches and predictors as they were.
 *
 * A kept sample is a record in memory of the event. The type of a plain record is
 * 0 until __perf_quiet_write() fills in ids and numbers of lost samples. All
 * functions run on the event's CPU with interrupts disabled.
 */
#include <linux/irq_work.h>
#include <linux/perf_alt_period.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "internal.h"

/* Room for a record without call chain and branches: a group of 16 fits. */
#define PERF_QUIET_RECORD	512

/* The most memory of an event. */
#define PERF_QUIET_MAX		4096

/* These can be long, or are not in memory which the handler may read. */
#define PERF_QUIET_REFUSED	(PERF_SAMPLE_RAW | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX)

/* perf_event_record() writes these. */
#define PERF_QUIET_PLAIN	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
				 PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |	\
				 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ)

static void perf_quiet_tick(struct irq_work *work)
{
	perf_quiet_write_cpu();
}

/*
 * A task may stay in the kernel for long while its event counts user space
 * alone. Then the next tick writes what is kept.
 */
static DEFINE_PER_CPU(struct irq_work, perf_quiet_work) = IRQ_WORK_INIT_LAZY(perf_quiet_tick);

/* May an event of this CPU keep samples? */
bool perf_quiet_pending(void)
{
	return irq_work_is_pending(this_cpu_ptr(&perf_quiet_work));
}

/* Write what the event keeps, in its order; busy is set. */
static void perf_quiet_flush(struct perf_event *event)
{
	struct perf_quiet *quiet = event->quiet;
	struct perf_output_handle handle;
	struct perf_event_header *header;
	struct perf_sample_data data;
	unsigned int at;

	for (at = 0; at < quiet->used; at += header->size) {
		header = (void *)quiet->records + at;
		if (!header->type)
			perf_event_record_finish(event, header);
		if (perf_output_begin(&handle, &data, event, header->size))
			continue;
		perf_output_copy(&handle, header, header->size);
		perf_output_end(&handle);
	}
	quiet->used = 0;
}

/* Write what the event keeps. */
void __perf_quiet_write(struct perf_event *event)
{
	struct perf_quiet *quiet = event->quiet;

	if (!quiet->used || quiet->busy)
		return;

	quiet->busy = true;
	barrier();
	perf_quiet_flush(event);
	barrier();
	quiet->busy = false;
}

/*
 * Write what the events of a group keep, and let them keep nothing more while
 * the group changes: an NMI may come at any time.
 */
void perf_quiet_hold(struct perf_event *leader)
{
	struct perf_event *event = leader;

	do {
		if (event->quiet) {
			event->quiet->busy = true;
			barrier();
			perf_quiet_flush(event);
		}
		event = list_next_entry(event, sibling_list);
	} while (event != leader);
}

/* Let the events of a group keep samples again. */
void perf_quiet_release(struct perf_event *leader)
{
	struct perf_event *event = leader;

	barrier();
	do {
		if (event->quiet)
			event->quiet->busy = false;
		event = list_next_entry(event, sibling_list);
	} while (event != leader);
}

/* Write a record of any form to the memory of the event. Returns false if it has no room. */
static noinline bool perf_quiet_keep(struct perf_event *event, struct perf_sample_data *data,
				     struct pt_regs *regs)
{
	struct perf_quiet *quiet = event->quiet;
	struct perf_output_handle handle = { .event = event };
	struct perf_event_header header;

	/* protect the callchain buffers */
	guard(rcu)();

	perf_prepare_sample(data, event, regs);
	perf_prepare_header(&header, data, event, regs);

	if (quiet->size - quiet->used <= header.size)
		__perf_quiet_write(event);
	/* One byte more, or the copy would turn the page of a ring buffer. */
	if (quiet->size - quiet->used <= header.size)
		return false;

	handle.addr = (void *)quiet->records + quiet->used;
	handle.size = quiet->size - quiet->used;
	perf_output_sample(&handle, &header, data, event);
	quiet->used += header.size;

	return true;
}

/* The overflow handler of events whose windows are quiet. */
void perf_event_output_quiet(struct perf_event *event, struct perf_sample_data *data,
			     struct pt_regs *regs)
{
	struct perf_quiet *quiet = event->quiet;
	u16 size;

	/*
	 * No window is open: the phase is that of the interval after the one which
	 * has begun, and the first window follows a long interval.
	 */
	if (event->alt_phase == PERF_ALT_WINDOW)
		goto write;
	/* A throttled event has to wait, and a signal is not to come before its sample. */
	if (unlikely(event->hw.interrupts == MAX_INTERRUPTS || quiet->busy ||
		     READ_ONCE((event->parent ?: event)->fasync)))
		goto write;

	size = sizeof(struct perf_event_header) + event->header_size + event->id_header_size;
	/* A BPF program or the driver may have prepared more than a period. */
	if (likely(quiet->plain && data->sample_flags == PERF_SAMPLE_PERIOD &&
		   quiet->size - quiet->used >= size)) {
		perf_event_record(event, data, regs, (void *)quiet->records + quiet->used, size);
		quiet->used += size;
	} else if (!perf_quiet_keep(event, data, regs)) {
		goto write;
	}

	if (!irq_work_is_pending(this_cpu_ptr(&perf_quiet_work)))
		irq_work_queue(this_cpu_ptr(&perf_quiet_work));
	return;

write:
	__perf_quiet_write(event);
	perf_event_output(event, data, regs);
}

/* The memory that an event needs, 0 if its windows cannot be quiet. */
static unsigned int perf_quiet_size(struct perf_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	unsigned int size = PERF_QUIET_RECORD;

	if (!attr->alternative_sample_period || event->pmu->task_ctx_nr == perf_sw_context)
		return 0;
	/* Without a time, a record has to be in its place. */
	if (!(attr->sample_type & PERF_SAMPLE_TIME) || attr->sample_type & PERF_QUIET_REFUSED)
		return 0;
	/* Somebody waits for each sample. */
	if (attr->sigtrap || (!attr->watermark && attr->wakeup_events))
		return 0;

	if (attr->alternative_sample_count > 1)
		return PERF_QUIET_MAX;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN)
		size += (1 + attr->sample_max_stack + PERF_MAX_CONTEXTS_PER_STACK) * sizeof(u64);
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		size += 64 * sizeof(struct perf_branch_entry);

	return min(size, PERF_QUIET_MAX);
}

int perf_quiet_alloc(struct perf_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	unsigned int size = perf_quiet_size(event);

	if (!size)
		return 0;
	if (!is_default_overflow_handler(event) &&
	    event->overflow_handler != perf_event_output_quiet)
		return 0;

	event->quiet = kzalloc(size, GFP_KERNEL);
	if (!event->quiet)
		return -ENOMEM;
	event->quiet->size = size - sizeof(*event->quiet);
	event->quiet->plain = !(attr->sample_type & ~PERF_QUIET_PLAIN) &&
			      (!(attr->sample_type & PERF_SAMPLE_READ) ||
			       attr->read_format & PERF_FORMAT_GROUP);
	event->overflow_handler = perf_event_output_quiet;

	return 0;
}
