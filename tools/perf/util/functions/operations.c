// SPDX-License-Identifier: GPL-2.0
/*
 * Operations: hardware follows one in many to its end (Arm's SPE, AMD's IBS, Intel's loads), and
 * says what has happened to it. An observation is one operation in the function of its own address,
 * with 0 or 1 of each event, so a rate is a part of the operations. There is no skid. There are no
 * cycles either: latencies overlap.
 *
 * perf makes samples of SPE's records, one for each event of an operation and one for itself. They
 * follow each other in the order of spe_events[]; perf inject keeps the order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../sample.h"
#include "../session.h"
#include "session.h"

enum {
	OPERATION, BRANCH, BRANCH_MISS, CACHE, CACHE_MISS, TLB_MISS, LAST, LAST_MISS, LOAD,
	LATENCY, NR_EVENTS,
};

/* Those of the first cache are of loads and stores, those of the last level of loads. */
static const char *const names[NR_EVENTS] = {
	FN_OPERATIONS, "branches", "branch-misses", "cache-references", "cache-misses",
	"dTLB-load-misses", "LLC-references", "LLC-misses", "loads", "load-latency",
};

#define OF_MEMORY	(BIT(CACHE) | BIT(CACHE_MISS) | BIT(TLB_MISS) | BIT(LAST) | BIT(LAST_MISS))

/* Names of the events that perf makes of SPE's records, and what their samples say. */
static const struct {
	const char *name;
	u32 events;
} spe_events[] = {
	{ "l1d-miss", BIT(CACHE) | BIT(CACHE_MISS) },
	{ "l1d-access", BIT(CACHE) },
	{ "llc-miss", BIT(LAST) | BIT(LAST_MISS) },
	{ "llc-access", BIT(LAST) },
	{ "tlb-miss", BIT(TLB_MISS) },
	{ "tlb-access", 0 },
	{ "branch-miss", BIT(BRANCH) | BIT(BRANCH_MISS) },	/* Linux 6.12 */
	{ "branch", BIT(BRANCH) },				/* later ones */
	{ "remote-access", 0 },
	{ "memory", 0 },
	{ "instructions", BIT(OPERATION) },
};

/* Terms of arm_spe: config, config1. */
#define SPE_JITTER	BIT_ULL(16)
#define SPE_FILTERS	GENMASK_ULL(34, 32)
#define SPE_BRANCHES	BIT_ULL(32)
#define SPE_ALL_FILTERS	GENMASK_ULL(63, 32)	/* of newer kernels, too */
#define SPE_RETIRED	BIT_ULL(1)
#define SPE_MEAN_JITTER	127.5
/* PERF_IP_FLAG_BRANCH_MISS, which Linux 6.12 lacks */
#define FLAG_BRANCH_MISS	BIT(15)

/* IBS: registers in raw data, behind the u32 of their capabilities. */
enum { OP_CTL, OP_RIP, OP_DATA, OP_DATA2, OP_DATA3, NR_REGISTERS };
#define IBS_ZEN4	BIT(11)		/* of the capabilities */
#define CTL_COUNTS_OPS	BIT_ULL(19)	/* of OP_CTL, and of the event's config */
#define CTL_VALID	BIT_ULL(18)
#define CTL_L3_MISSES	BIT_ULL(16)
#define OP_MISPREDICTED	BIT_ULL(36)
#define OP_BRANCH	BIT_ULL(37)
#define OP_RIP_INVALID	BIT_ULL(38)
#define DATA3_LOAD	BIT_ULL(0)
#define DATA3_STORE	BIT_ULL(1)
#define DATA3_L1TLB	BIT_ULL(2)
#define DATA3_L2TLB	BIT_ULL(3)
#define DATA3_MISS	BIT_ULL(7)
#define DATA3_UNCACHED	BIT_ULL(14)
#define DATA3_NO_MAB	BIT_ULL(16)
#define DATA3_L2_MISS	BIT_ULL(20)
#define DATA3_PREFETCH	BIT_ULL(21)

/* Intel: MEM_TRANS_RETIRED.LOAD_LATENCY, and MEM_UOPS_RETIRED.LOAD_LATENCY of small cores. */
#define LOAD_LATENCY		0x1cd
#define ATOM_LOAD_LATENCY	0x5d0

enum kind { NONE, SPE, IBS, LOADS };

/* Levels of memory: hits of the first cache, which Linux 6.12 does not call L0, and no caches. */
#define NUMBERS_OF_HITS		(BIT(PERF_MEM_LVLNUM_L1) | BIT(7) | BIT(PERF_MEM_LVLNUM_UNC) | \
				 BIT(PERF_MEM_LVLNUM_IO))
#define NUMBERS_BEYOND_L3	(BIT(PERF_MEM_LVLNUM_L4) | BIT(PERF_MEM_LVLNUM_MSC) | \
				 BIT(PERF_MEM_LVLNUM_CXL) | BIT(PERF_MEM_LVLNUM_RAM) | \
				 BIT(PERF_MEM_LVLNUM_PMEM))

/* Modes of the CPU */
enum { USER = BIT(0), KERNEL = BIT(1) };

/* The operation at hand. */
struct operation {
	struct fn_row *row;	/* NULL: nobody wants to see it */
	u32 events;		/* bits */
	double latency, weight;
	/* SPE: its samples so far */
	u64 ip, time;
	u32 tid, cpu;
	unsigned int last;
	bool is_open, is_speculated;
};

struct fn_operations {
	struct fn_operations *next;
	enum kind kind;
	struct fn_set *set;
	int places[NR_EVENTS];		/* in the set, -1: not known */
	double weight;			/* 0: the period of a sample */
	bool is_decoded;		/* of AUX data at hand, which tell what has retired */
	bool is_mixed;			/* those that have not retired are among them */
	u32 modes;			/* those of other modes do not count */
	bool is_inherited;		/* each thread begins with a whole interval */
	bool is_zen3;			/* erratum 1293 */
	struct operation operation;
	const char *lacks;		/* operations, in words */
	u32 latency;			/* all of them take longer */
	u64 nr, nr_invalid;
};

static unsigned int find_spe_event(struct evsel *evsel)
{
	const char *name = evsel__name(evsel);
	unsigned int i = 0;

	while (i < ARRAY_SIZE(spe_events) && strcmp(spe_events[i].name, name))
		i++;
	return i;
}

/* Events of SPE's records are of type HARDWARE, whatever they count. */
static bool is_of_spe(struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const u64 has = PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_ADDR;

	return attr->type == PERF_TYPE_HARDWARE && attr->sample_period <= 1 && !attr->freq &&
	       !attr->precise_ip && (attr->sample_type & has) == has &&
	       !(attr->sample_type & PERF_SAMPLE_READ) &&
	       find_spe_event(evsel) < ARRAY_SIZE(spe_events);
}

static enum kind kind_of(struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const u16 number = attr->config;

	if (is_of_spe(evsel))
		return SPE;
	if (attr->sample_type & PERF_SAMPLE_DATA_SRC && attr->sample_period &&
	    (number == LOAD_LATENCY || number == ATOM_LOAD_LATENCY) &&
	    fn_cpu__vendor(evsel__env(evsel)->cpuid) == FN_VENDOR_INTEL)
		return LOADS;
	return strstarts(fn_evsel__pmu(evsel), "ibs_op") && attr->sample_period ? IBS : NONE;
}

bool fn_operations__are(struct evsel *evsel)
{
	return kind_of(evsel) != NONE;
}

static struct evsel *find_spe(struct evlist *evlist)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		if (strstarts(fn_evsel__pmu(evsel), "arm_spe"))
			return evsel;
	}
	return NULL;
}

/* What SPE's filters leave. */
static u32 begin_spe(struct fn_operations *own, struct fn_session *session)
{
	struct evlist *evlist = session->session->evlist;
	u32 known = BIT(LOAD) | BIT(LATENCY);
	struct evsel *spe = find_spe(evlist), *evsel;
	bool has_branches = own->is_decoded;
	const struct perf_event_attr *attr = spe ? &spe->core.attr : NULL;

	own->is_inherited = attr && attr->inherit;
	own->weight = attr ? fmax(attr->sample_period, 1) : 1;
	if (attr && attr->config & SPE_JITTER)
		own->weight += SPE_MEAN_JITTER;
	if (attr && (attr->config & SPE_ALL_FILTERS || attr->config1 & ~SPE_RETIRED ||
		     attr->config2 || attr->config3 || attr->config4))
		own->lacks = "that SPE's filters left";
	own->is_mixed = !own->is_decoded && !(attr && attr->config1 & SPE_RETIRED);
	evlist__for_each_entry(evlist, evsel) {
		if (!is_of_spe(evsel))
			continue;
		known |= spe_events[find_spe_event(evsel)].events;
		if (!strcmp(evsel__name(evsel), "branch")) {
			has_branches = true;
			/* A flag of samples that are made here; it is not written to files. */
			known |= own->is_decoded ? BIT(BRANCH_MISS) : 0;
		}
	}
	/* Linux 6.12 injects mispredicts, and no branches. */
	if (!has_branches)
		known &= ~BIT(BRANCH);
	if (attr && attr->config & SPE_FILTERS && !(attr->config & SPE_BRANCHES))
		known &= ~(BIT(BRANCH) | BIT(BRANCH_MISS));
	if (attr && (attr->config & SPE_FILTERS) == SPE_BRANCHES)
		known &= ~(OF_MEMORY | BIT(LOAD) | BIT(LATENCY));
	return known;
}

static u32 modes_of(const struct perf_event_attr *attr)
{
	return (attr->exclude_user ? 0 : USER) | (attr->exclude_kernel ? 0 : KERNEL);
}

static bool counts_instructions(struct fn_session *session, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	char *name = fn_event__name(attr, evsel__name(evsel),
				    fn_env__pmu(evsel__env(evsel), attr->type), session->cpu);
	const bool does = name && !strcmp(name, "instructions");

	free(name);
	return does;
}

/*
 * Lets operations count in the modes of the counters of instructions, or else of all counters: IBS
 * cannot leave out the kernel before Linux 6.17.
 */
static void match_modes(struct fn_operations *own, struct fn_session *session, struct evsel *evsel)
{
	const u32 modes = modes_of(&evsel->core.attr);
	u32 instructions = 0, counted = 0;
	struct evsel *other;

	evlist__for_each_entry(session->session->evlist, other) {
		const struct perf_event_attr *attr = &other->core.attr;

		if (attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_TRACEPOINT ||
		    fn_operations__are(other) || fn_evsel__is_of_aux(other))
			continue;
		counted |= modes_of(attr);
		if (counts_instructions(session, other))
			instructions |= modes_of(attr);
	}
	own->modes = (modes & (instructions ?: counted)) ?: modes;
	if (instructions & ~modes && !own->lacks)
		own->lacks = modes == USER ? "of user space, unlike instructions," :
					     "of the kernel, unlike instructions,";
}

static u32 begin_ibs(struct fn_operations *own, struct fn_session *session, struct evsel *evsel)
{
	const char *cpu = session->cpu;
	const u64 type = evsel->core.attr.sample_type;
	unsigned int family, model;

	own->is_inherited = evsel->core.attr.inherit;
	/* config1: ldlat, loads or stores */
	if (evsel->core.attr.config & CTL_L3_MISSES || evsel->core.attr.config1)
		own->lacks = "that IBS' filters left";
	own->is_zen3 = cpu && sscanf(cpu, "AuthenticAMD,%u,%u", &family, &model) == 2 &&
		       family == 0x19 && model < 0x10;
	if (type & PERF_SAMPLE_RAW)
		return GENMASK(NR_EVENTS - 1, 0);
	return BIT(OPERATION) | (type & PERF_SAMPLE_DATA_SRC ? OF_MEMORY | BIT(LOAD) : 0) |
	       (type & PERF_SAMPLE_DATA_SRC && type & PERF_SAMPLE_WEIGHT_TYPE ? BIT(LATENCY) : 0);
}

static const char *name_of(const struct fn_operations *own, unsigned int event)
{
	if (event == OPERATION && own->lacks)
		return FN_CHOSEN;
	/* IBS has the latency of misses. */
	if (own->kind == IBS && (event == LOAD || event == LATENCY))
		return event == LOAD ? "load-misses" : "miss-latency";
	return names[event];
}

static int make_set(struct fn_operations *own, struct fn_session *session, u32 known,
		    struct fn_group *group)
{
	struct fn_event events[NR_EVENTS];
	unsigned int nr = 0;

	for (unsigned int i = 0; i < NR_EVENTS; i++) {
		if (known & BIT(i))
			events[nr++] = (struct fn_event){
				.name = name_of(own, i), .is_precise = true, .scale = 1,
			};
	}
	own->set = fn_table__findnew_set(session->table, &fn_operations, group, events,
					 nr);
	if (!own->set)
		return -ENOMEM;
	for (unsigned int i = 0; i < NR_EVENTS; i++)
		own->places[i] = known & BIT(i) ? fn_set__find(own->set, name_of(own, i)) : -1;
	return 0;
}

int fn_operations__add(struct fn_session *session, struct evsel *evsel)
{
	struct fn_evsel *priv = evsel->priv;
	const struct perf_event_attr *attr = &evsel->core.attr;
	const enum kind kind = kind_of(evsel);
	struct fn_group group = fn_evsel__group(evsel);
	struct fn_operations *own;
	u32 known;

	if (kind == SPE)
		priv->event = find_spe_event(evsel);
	/* All events of SPE's records are of the same operations. */
	for (own = session->operations; own && kind == SPE; own = own->next) {
		if (own->kind == SPE) {
			priv->operations = own;
			return 0;
		}
	}
	own = zalloc(sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->next = session->operations;
	session->operations = own;
	priv->operations = own;
	own->kind = kind;
	own->is_decoded = session->session->auxtrace;
	if (kind == SPE) {
		known = begin_spe(own, session);
		group = (struct fn_group){ .period = own->weight };
	} else if (kind == IBS) {
		known = begin_ibs(own, session, evsel);
		/* The counter may be that of cycles. */
		group.window = !(attr->config & CTL_COUNTS_OPS);
	} else {
		own->lacks = "that load";
		own->latency = (u16)attr->config1;	/* ldlat */
		known = BIT(OPERATION) | OF_MEMORY | BIT(LOAD) |
			(attr->sample_type & PERF_SAMPLE_WEIGHT_TYPE ? BIT(LATENCY) : 0);
	}
	match_modes(own, session, evsel);
	if (!known)
		return fn_evsel__refuse(evsel,
					"has no operation that its filter leaves: the file is damaged, record again");
	return make_set(own, session, known, &group);
}

void fn_operations__delete(struct fn_operations *all)
{
	while (all) {
		struct fn_operations *next = all->next;

		free(all);
		all = next;
	}
}

/* Makes an observation of the operation at hand. */
static int observe(struct fn_operations *own, struct fn_session *session)
{
	const struct operation *operation = &own->operation;
	double counts[NR_EVENTS] = {};

	own->nr += !!operation->row;
	if (operation->is_speculated)
		return 0;
	for (unsigned int i = 0; i < NR_EVENTS; i++) {
		if (own->places[i] >= 0 && operation->events & BIT(i))
			counts[own->places[i]] = operation->weight *
						 (i == LATENCY ? operation->latency : 1);
	}
	fn_sums__observe(own->set, own->set->windows, counts, 1);
	if (!operation->row)
		return 0;
	return fn_set__observe(session->table, own->set, operation->row, counts, 1);
}

int fn_operations__end(struct fn_operations *all, struct fn_session *session)
{
	int err = 0;

	for (; !err && all; all = all->next) {
		if (all->operation.is_open)
			err = observe(all, session);
		all->operation.is_open = false;
	}
	return err;
}

/* Threads that end soon are sampled at the same places, as their first interval is not random. */
void fn_operations__mark(struct fn_operations *all, u64 nr_tasks)
{
	for (; all; all = all->next) {
		for (unsigned int i = 0; i < all->set->nr_events; i++)
			all->set->events[i].is_scarce |= all->is_inherited &&
							 all->nr < FN_FEW_PER_THREAD * nr_tasks;
	}
}

void fn_operations__throttle(struct fn_operations *own)
{
	for (unsigned int i = 0; i < own->set->nr_events; i++)
		own->set->events[i].is_throttled = true;
}

/* What a sample of memory says, without registers. */
static u32 of_data_src(u64 val)
{
	const union perf_mem_data_src src = { .val = val };
	const u64 level = src.mem_lvl;
	const u64 beyond = PERF_MEM_LVL_LOC_RAM | PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2 |
			   PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2;
	/* Newer levels have numbers alone. */
	const u32 number = BIT(src.mem_lvl_num);
	const bool is_beyond_l3 = number & NUMBERS_BEYOND_L3 ||
				  (number & BIT(PERF_MEM_LVLNUM_ANY_CACHE) && src.mem_remote);
	const bool is_l3 = level & PERF_MEM_LVL_L3 ||
			   (number & BIT(PERF_MEM_LVLNUM_L3) && !(level & beyond));
	const bool is_load = src.mem_op & PERF_MEM_OP_LOAD;
	u32 events = BIT(CACHE);

	if (!(src.mem_op & (PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE)))
		return 0;
	if (src.mem_dtlb & PERF_MEM_TLB_MISS && src.mem_dtlb & (PERF_MEM_TLB_L2 | PERF_MEM_TLB_WK))
		events |= BIT(TLB_MISS);
	if (is_load)
		events |= BIT(LOAD) | BIT(LATENCY);
	if (level & (PERF_MEM_LVL_UNC | PERF_MEM_LVL_IO) || !(level | src.mem_lvl_num) ||
	    ((level & PERF_MEM_LVL_L1 || number & NUMBERS_OF_HITS) && !(level & PERF_MEM_LVL_MISS)))
		return events;
	events |= BIT(CACHE_MISS);
	if (is_load && (is_beyond_l3 || is_l3 || level & beyond))
		events |= BIT(LAST);
	/* Zen 2 and 3 do not tell their own cache from that of the next cores: L3 and REM_CCE1. */
	if (is_load && (is_beyond_l3 || (is_l3 ? level & PERF_MEM_LVL_MISS : level & beyond)))
		events |= BIT(LAST_MISS);
	return events;
}

/* Whether the last-level cache had to ask another one, or memory. */
static bool is_beyond(u64 data2, bool is_zen4)
{
	const unsigned int source = (data2 & 7) | (is_zen4 ? (data2 >> 6 & 3) << 3 : 0);

	if (is_zen4)	/* 1: its own, 7: a device */
		return source > 1 && source != 7;
	return source == 3 || source == 4;
}

/* The registers of IBS. Returns -EINVAL if they are not valid. */
static int read_ibs(struct fn_operations *own, const struct perf_sample *sample)
{
	struct operation *operation = &own->operation;
	u64 regs[NR_REGISTERS], data3;
	u32 caps, events = BIT(OPERATION);

	if (sample->raw_size < sizeof(caps) + sizeof(regs))
		return -EINVAL;
	memcpy(&caps, sample->raw_data, sizeof(caps));
	memcpy(regs, sample->raw_data + sizeof(caps), sizeof(regs));
	if (!(regs[OP_CTL] & CTL_VALID) || regs[OP_DATA] & OP_RIP_INVALID)
		return -EINVAL;
	if (regs[OP_DATA] & OP_BRANCH)
		events |= BIT(BRANCH) |
			  (regs[OP_DATA] & OP_MISPREDICTED ? BIT(BRANCH_MISS) : 0);
	data3 = regs[OP_DATA3];
	if (data3 & (DATA3_LOAD | DATA3_STORE)) {
		events |= BIT(CACHE);
		if (data3 & DATA3_L1TLB && data3 & DATA3_L2TLB)
			events |= BIT(TLB_MISS);
	}
	if (events & BIT(CACHE) && data3 & DATA3_MISS && !(data3 & DATA3_UNCACHED)) {
		const bool is_known = !own->is_zen3 || !(data3 & (DATA3_NO_MAB | DATA3_PREFETCH));

		events |= BIT(CACHE_MISS);
		if (data3 & DATA3_LOAD) {
			events |= BIT(LOAD) | BIT(LATENCY);
			operation->latency = data3 >> 32 & 0xffff;
		}
		if (is_known && data3 & DATA3_LOAD && data3 & DATA3_L2_MISS) {
			events |= BIT(LAST);
			if (is_beyond(regs[OP_DATA2], caps & IBS_ZEN4))
				events |= BIT(LAST_MISS);
		}
	}
	operation->events = events;
	return 0;
}

/* An operation of one sample. */
static int take_whole(struct fn_operations *own, struct fn_session *session,
		      struct fn_sample *sample)
{
	const struct perf_sample *from = sample->sample;
	const struct perf_event_attr *attr = &sample->evsel->core.attr;

	own->operation = (struct operation){
		.row = sample->place.row, .weight = from->period ?: attr->sample_period,
		.events = BIT(OPERATION),
		/* A wider one is no latency. */
		.latency = (u32)from->weight,
	};
	if (attr->sample_type & PERF_SAMPLE_RAW && own->kind == IBS) {
		if (read_ibs(own, from)) {
			own->nr_invalid++;
			return 0;
		}
	} else if (attr->sample_type & PERF_SAMPLE_DATA_SRC) {
		own->operation.events |= of_data_src(from->data_src);
		if (own->kind == IBS && !(own->operation.events & BIT(CACHE_MISS)))
			own->operation.events &= ~(BIT(LOAD) | BIT(LATENCY));
	}
	return observe(own, session);
}

/* A part of an operation, or the first one of the next operation. */
static int take_part(struct fn_operations *own, struct fn_session *session,
		     struct fn_sample *sample)
{
	const struct perf_sample *from = sample->sample;
	const unsigned int event = sample->own->event;
	struct operation *operation = &own->operation;
	const union perf_mem_data_src src = { .val = from->data_src };
	int err = 0;

	if (operation->is_open &&
	    (event <= operation->last || operation->ip != from->ip ||
	     operation->time != from->time || operation->tid != from->tid ||
	     operation->cpu != from->cpu))
		err = fn_operations__end(own, session);
	if (!operation->is_open)
		*operation = (struct operation){
			.row = sample->place.row, .weight = own->weight, .ip = from->ip,
			.time = from->time, .tid = from->tid, .cpu = from->cpu, .is_open = true,
		};
	operation->last = event;
	operation->events |= spe_events[event].events;
	if (from->flags & PERF_IP_FLAG_BRANCH)
		operation->events |= BIT(BRANCH) |
				     (from->flags & FLAG_BRANCH_MISS ? BIT(BRANCH_MISS) : 0);
	if (src.mem_op & PERF_MEM_OP_LOAD) {
		operation->events |= BIT(LOAD) | BIT(LATENCY);
		operation->latency = (u32)from->weight;
	}
	operation->is_speculated |= own->is_decoded && !from->insn_cnt;
	return err;
}

static int take_sample(struct fn_session *session, struct fn_sample *sample)
{
	struct fn_operations *own = sample->own->operations;
	const bool is_of_kernel = sample->sample->cpumode == PERF_RECORD_MISC_KERNEL;

	if (sample->is_outside || sample->place.is_nowhere ||
	    !(own->modes & (is_of_kernel ? KERNEL : USER)))
		return 0;
	if (sample->place.is_filtered)
		sample->place.row = NULL;
	return own->kind == SPE ? take_part(own, session, sample) :
				  take_whole(own, session, sample);
}

void fn_operations__note(const struct fn_operations *own, const char *name)
{
	for (; own; own = own->next) {
		const u64 nr = own->nr + own->nr_invalid;
		char latency[40] = "";

		if (own->latency)
			scnprintf(latency, sizeof(latency), " for more than %u cycles",
				  own->latency);
		if (own->lacks && own->nr)
			fn_warn("%s: only operations %s%s were recorded, so their rates are per 1000 of these (KO), and tell no %%I",
				name, own->lacks, latency);
		if (own->is_mixed && own->nr)
			fn_warn("%s: operations that were speculated, and not executed to their end, may be among the others: report the recording itself, or record with event_filter=2",
				name);
		if (own->nr_invalid * 100 > nr)
			fn_warn("%s: %llu of %llu operations are left out, because IBS does not tell their address",
				name, (unsigned long long)own->nr_invalid, (unsigned long long)nr);
		if (own->set->groups->window && own->nr)
			fn_warn("%s: operations were chosen by cycles, so those that wait are chosen more often, and all values from them are weak: record with ibs_op/cnt_ctl=1/",
				name);
	}
}

/* A part of the operations is a binomial number, a mean is not. */
static void set_interval(const struct fn_pair *pair, struct fn_value *value)
{
	if (value->value > pair->scale)
		fn_value__ratio_interval(pair, value);
	else if (pair->x.squares > 0)
		fn_value__part_interval(value, pair->scale,
					pair->x.total * pair->x.total / pair->x.squares);
}

static const char *doubt(const struct fn_row *row __maybe_unused, const struct fn_set *set,
			 int y __maybe_unused, int x __maybe_unused)
{
	for (unsigned int i = 0; i < set->nr_groups; i++) {
		if (set->groups[i].window)
			return "cycles";
	}
	return NULL;
}

const struct fn_source fn_operations = {
	.name		= "operations",
	.title		= "operations",
	.bit		= 8,
	.is_joint	= true,
	.is_even	= true,
	.sample		= take_sample,
	.interval	= set_interval,
	.doubt		= doubt,
};
