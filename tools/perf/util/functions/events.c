// SPDX-License-Identifier: GPL-2.0
/*
 * Gives each event one name, by what it counts and not by what somebody called it: by these names
 * the sums of different recordings add up, and columns are found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/types.h>

#include "../../pmu-events/pmu-events.h"
#include "../evsel.h"
#include "../header.h"
#include "functions.h"

#define HEX	"0123456789abcdef"
/* Letters behind the colon of an event, as perf record has them. */
#define MODIFIERS	"ukhpPGHSDIWebRX"

/* Parts of an Arm CPU's identification (MIDR) that its tables do not depend on. */
#define MIDR_VARIANT_REVISION	0xf0000fULL

/* Numbers of the events that columns know: event and umask. Intel's fixed counters have event 0. */
static const struct {
	enum fn_vendor vendor;
	u64 config;
	const char *name;
	const char *vendor_name;	/* for recordings that do not tell the CPU; or NULL */
} generic[] = {
	{ FN_VENDOR_ARM, 0x0003, "cache-misses", NULL }, /* L1D_CACHE_REFILL */
	{ FN_VENDOR_ARM, 0x0004, "cache-references", NULL }, /* L1D_CACHE */
	{ FN_VENDOR_ARM, 0x0005, "dTLB-load-misses", NULL }, /* L1D_TLB_REFILL */
	{ FN_VENDOR_ARM, 0x0008, "instructions", "inst_retired" },
	{ FN_VENDOR_ARM, 0x0010, "branch-misses", NULL }, /* BR_MIS_PRED */
	{ FN_VENDOR_ARM, 0x0011, "cycles", "cpu_cycles" },
	{ FN_VENDOR_ARM, 0x001b, "inst_spec", NULL }, /* INST_SPEC */
	{ FN_VENDOR_ARM, 0x0022, "branch-misses", NULL }, /* BR_MIS_PRED_RETIRED */
	{ FN_VENDOR_INTEL, 0x003c, "cycles", "cpu_clk_unhalted.thread_p" },
	{ FN_VENDOR_INTEL, 0x0200, "cycles", "cpu_clk_unhalted.thread" },
	{ FN_VENDOR_INTEL, 0x0200, "cycles", "cpu_clk_unhalted.core" },
	{ FN_VENDOR_INTEL, 0x00c0, "instructions", "inst_retired.any_p" },
	{ FN_VENDOR_INTEL, 0x0100, "instructions", "inst_retired.any" }, /* PREC_DIST, too */
	{ FN_VENDOR_INTEL, 0x01c0, "instructions", NULL }, /* PREC_DIST before Ice Lake */
	{ FN_VENDOR_INTEL, 0x0300, "ref-cycles", NULL }, /* CPU_CLK_UNHALTED.REF_TSC */
	{ FN_VENDOR_INTEL, 0x00c4, "branches", NULL }, /* BR_INST_RETIRED.ALL_BRANCHES */
	{ FN_VENDOR_INTEL, 0x00c5, "branch-misses", NULL }, /* BR_MISP_RETIRED.ALL_BRANCHES */
	{ FN_VENDOR_INTEL, 0x4f2e, "cache-references", NULL }, /* LONGEST_LAT_CACHE.REFERENCE */
	{ FN_VENDOR_INTEL, 0x412e, "cache-misses", NULL }, /* LONGEST_LAT_CACHE.MISS */
	{ FN_VENDOR_AMD, 0x0076, "cycles", "ls_not_halted_cyc" },
	{ FN_VENDOR_AMD, 0x00c0, "instructions", "ex_ret_instr" },
	{ FN_VENDOR_AMD, 0x00c2, "branches", NULL }, /* EX_RET_BRN */
	{ FN_VENDOR_AMD, 0x00c3, "branch-misses", NULL }, /* EX_RET_BRN_MISP */
	{ FN_VENDOR_AMD, 0xff60, "cache-references", NULL }, /* L2_REQUEST_G1 */
	{ FN_VENDOR_AMD, 0x0964, "cache-misses", NULL }, /* L2_CACHE_REQ_STAT */
};

/* Beginnings of terms that do not change the counted event. */
static const char *const ignored_terms[] = {
	"period", "alt-period", "freq", "name=", "time", "call-graph", "stack-size", "inherit",
	"no-inherit", "max-", "overwrite", "no-overwrite", "branch_type", "percore", "aux-",
	"metric-id=",
};

static bool is_generic(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		if (!strcmp(generic[i].name, name))
			return true;
	}
	return false;
}

static bool is_ignored_term(const char *term)
{
	for (size_t i = 0; i < ARRAY_SIZE(ignored_terms); i++) {
		if (strstarts(term, ignored_terms[i]))
			return true;
	}
	return !*term;
}

/* Removes modifiers (:u) from a name. */
static void cut_modifiers(char *name)
{
	char *colon = strrchr(name, ':');

	if (colon && colon[1] && !colon[1 + strspn(colon + 1, MODIFIERS)])
		*colon = '\0';
}

/* Returns true if terms say which event of a PMU is counted, which may have one event only. */
static bool choose_event(const char *pmu, const char *terms)
{
	for (const char *term = terms; term; term = strchr(term, ',')) {
		term += *term == ',';
		if (strcspn(term, "=") >= strcspn(term, ",") || strstarts(term, "event") ||
		    strstarts(term, "config"))
			return !strstarts(pmu, "ibs_");
	}
	return false;
}

/*
 * Splits perf's name of an event, which may be pmu/terms/modifiers, name/terms/modifiers or
 * name:modifiers. Returns the event's own name and sets pmu to the PMU's name, or to "". Both are
 * parts of name, which is overwritten. An event without a name has that of its PMU.
 */
static char *bare_name(char *name, const char **pmu)
{
	char *terms = strchr(name, '/'), *from, *term, *to;

	*pmu = "";
	if (!terms) {
		cut_modifiers(name);
		return name;
	}

	*terms++ = '\0';
	terms[strcspn(terms, "/")] = '\0';
	from = terms;
	to = terms;
	while ((term = strsep(&from, ",")) != NULL) {
		size_t length = strlen(term);

		if (is_ignored_term(term))
			continue;
		if (to != terms)
			*to++ = ',';
		memmove(to, term, length);
		to += length;
	}
	*to = '\0';

	if (!*terms)
		return name;
	*pmu = name;
	return choose_event(name, terms) ? terms : name;
}

enum fn_vendor fn_cpu__vendor(const char *cpu)
{
	if (!cpu)
		return FN_VENDOR_UNKNOWN;
	if (strstarts(cpu, "GenuineIntel"))
		return FN_VENDOR_INTEL;
	if (strstarts(cpu, "AuthenticAMD") || strstarts(cpu, "HygonGenuine"))
		return FN_VENDOR_AMD;
	/* A MIDR. Apple (0x61) has the architecture's instructions and other events. */
	if (strstarts(cpu, "0x") && strspn(cpu + 2, HEX) == 16 &&
	    (!cpu[18] || cpu[18] == ' ') && strncmp(cpu + 10, "61", 2))
		return FN_VENDOR_ARM;
	return FN_VENDOR_UNKNOWN;
}

/* Returns whose numbers those of a PMU are. An empty name means the CPU's PMU. */
static enum fn_vendor vendor_of(const struct perf_event_attr *attr, const char *pmu,
				const char *cpu)
{
	enum fn_vendor vendor = fn_cpu__vendor(cpu);

	/* armv8_pmuv3_0, armv8_cortex_a72, ... */
	if (strstarts(pmu, "armv") && isdigit(pmu[4]))
		return FN_VENDOR_ARM;
	if (vendor == FN_VENDOR_ARM)
		return *pmu ? FN_VENDOR_UNKNOWN : vendor;
	if (!strcmp(pmu, "cpu") || strstarts(pmu, "cpu_") ||
	    (!*pmu && attr->type == PERF_TYPE_RAW))
		return vendor;
	return FN_VENDOR_UNKNOWN;
}

const struct pmu_events_table *fn_cpu__events(struct fn_cpu *id, const char *cpu)
{
	const struct pmu_events_table *events;
	unsigned int family, model, stepping;
	char maker[32], *dash;

	scnprintf(id->full, sizeof(id->full), "%.*s", (int)strcspn(cpu, " "), cpu);
	if (strstarts(cpu, "0x"))
		id->arch = id->full[2 + strspn(id->full + 2, HEX)] ? "riscv" : "arm64";
	else if (sscanf(id->full, "%31[A-Za-z],%u,%u,%u", maker, &family, &model, &stepping) == 4)
		id->arch = "x86";
	else
		id->arch = strchr(id->full, '-') ? "x86" : strstarts(cpu, "IBM") ? "s390" :
			   "powerpc";
	if (!strcmp(id->arch, "x86") && strchr(id->full, ','))
		scnprintf(id->full, sizeof(id->full), "%s-%u-%X-%X", maker, family, model,
			  stepping);
	memcpy(id->id, id->full, sizeof(id->id));
	if (!strcmp(id->arch, "arm64"))
		scnprintf(id->id, sizeof(id->id), "0x%016llx",
			  strtoull(cpu, NULL, 16) & ~MIDR_VARIANT_REVISION);

	/* perf on arm64 takes all CPUs of other architectures for the same. */
	if (find_core_events_table(id->arch, "none-0-0-0"))
		return NULL;
	events = find_core_events_table(id->arch, id->id);
	/* x86: with the stepping or without */
	dash = strrchr(id->id, '-');
	if (!events && dash && !strcmp(id->arch, "x86")) {
		*dash = '\0';
		events = find_core_events_table(id->arch, id->id);
	}
	return events;
}

/* Terms such as event=0xd1,umask=0x8; returns false if there is more to it than a number. */
bool fn_event__config(const char *terms, enum fn_vendor vendor, u64 *config)
{
	static const struct {
		const char *name;
		int shift;
	} fields[] = {
		{ "event=", 0 }, { "umask=", 8 }, { "edge=", 18 }, { "any=", 21 },
		{ "inv=", 23 }, { "cmask=", 24 },
	};

	*config = 0;
	for (const char *term = terms; term && *term; term = strchr(term, ',')) {
		bool is_known;
		u64 value;

		term += *term == ',';
		is_known = strstarts(term, "period=");
		for (size_t i = 0; !is_known && i < ARRAY_SIZE(fields); i++) {
			if (!strstarts(term, fields[i].name))
				continue;
			is_known = true;
			value = strtoull(strchr(term, '=') + 1, NULL, 0);
			/* AMD's events have 12 bits, in two parts. */
			if (!i && vendor == FN_VENDOR_AMD)
				value = (value & 0xff) | (value & 0xf00) << 24;
			*config |= value << fields[i].shift;
		}
		if (!is_known)
			return false;
	}
	return true;
}

/* An event in the tables, by its number. */
struct found {
	const char *pmu;
	enum fn_vendor vendor;
	u64 config;
	const char *name;
};

/* Of several names the first one in the order of letters is taken. */
static int compare_event(const struct pmu_event *event,
			 const struct pmu_events_table *table __maybe_unused, void *data)
{
	struct found *found = data;
	u64 config;

	if (event->event && event->name && !event->deprecated &&
	    (!strcmp(event->pmu, "default_core") || !strcmp(event->pmu, found->pmu)) &&
	    fn_event__config(event->event, found->vendor, &config) && config == found->config &&
	    (!found->name || strcmp(event->name, found->name) < 0))
		found->name = event->name;
	return 0;
}

/* Returns the event that a vendor's number means, or NULL. */
static const char *name_of_number(enum fn_vendor vendor, const char *pmu, u64 config,
				  const char *cpu)
{
	const struct pmu_events_table *table;
	struct fn_cpu id;
	struct found found = { .pmu = pmu, .vendor = vendor, .config = config };

	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		if (generic[i].vendor == vendor && generic[i].config == config)
			return generic[i].name;
	}
	table = cpu && vendor != FN_VENDOR_UNKNOWN ? fn_cpu__events(&id, cpu) : NULL;
	if (table)
		pmu_events_table__for_each_event(table, NULL, compare_event, &found);
	return found.name;
}

static const char *name_of_vendor_name(const char *lower)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic); i++) {
		if (generic[i].vendor_name && !strcmp(generic[i].vendor_name, lower))
			return generic[i].name;
	}
	return NULL;
}

/* Returns true if the kernel maps the event to one of the PMU. */
static bool is_mapped(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE;
}

/* Returns the event number. If the kernel maps it, the upper half may be the number of a PMU. */
static u64 number(const struct perf_event_attr *attr)
{
	return is_mapped(attr) ? attr->config & 0xffffffff : attr->config;
}

/* Sets @name to a name of perf for an event of the caches. */
static const char *name_of_cache(u64 config, const char *cpu, char *name, size_t size)
{
	/* Counters of cache-references and cache-misses on Arm, and not of loads alone. */
	if (fn_cpu__vendor(cpu) == FN_VENDOR_ARM && !(config & 0xffff))
		return config ? "cache-misses" : "cache-references";
	if ((config & 0xff) >= PERF_COUNT_HW_CACHE_MAX ||
	    (config >> 8 & 0xff) >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    config >> 16 >= PERF_COUNT_HW_CACHE_RESULT_MAX)
		return NULL;
	__evsel__hw_cache_type_op_res_name(config, config >> 8, config >> 16, name, size);
	return name;
}

/*
 * Returns a name, to be freed: one that the columns know, if there is one, else that of perf's
 * tables for the CPU, else perf's @name of the event without what does not say what is counted. The
 * attr decides where it can, for the name may be the user's. @own_pmu is its PMU, NULL: not known.
 */
char *fn_event__name(const struct perf_event_attr *attr, const char *name, const char *own_pmu,
		     const char *cpu)
{
	char *copy = strdup(name), cache[64], *lower, *result = NULL;
	const char *known = NULL, *pmu;
	u64 config = number(attr);
	enum fn_vendor vendor;
	bool is_other;

	if (!copy)
		return NULL;
	lower = function_text__lower(bare_name(copy, &pmu));
	if (!*pmu && own_pmu)
		pmu = own_pmu;
	vendor = vendor_of(attr, pmu, cpu);
	if (attr->type == PERF_TYPE_HARDWARE && config < PERF_COUNT_HW_MAX)
		known = evsel__hw_names[config];
	else if (attr->type == PERF_TYPE_SOFTWARE && config < PERF_COUNT_SW_MAX)
		known = evsel__sw_names[config];
	else if (attr->type == PERF_TYPE_HW_CACHE)
		known = name_of_cache(config, cpu, cache, sizeof(cache));
	else if ((attr->type == PERF_TYPE_RAW || attr->type >= PERF_TYPE_MAX) &&
		 !attr->config1 && !attr->config2)
		known = vendor == FN_VENDOR_UNKNOWN && lower ? name_of_vendor_name(lower) :
			name_of_number(vendor, pmu, config, cpu);
	/* The number of another event. */
	is_other = !known && lower && is_generic(lower) && attr->type >= PERF_TYPE_RAW &&
		   attr->type != PERF_TYPE_BREAKPOINT &&
		   (vendor != FN_VENDOR_UNKNOWN || fn_cpu__vendor(cpu) != FN_VENDOR_UNKNOWN);
	known = known ?: lower;
	if (lower && asprintf(&result, is_other || !strcmp(known, FN_TOTAL) ?
			      "event:%s" : "%s", known) < 0)
		result = NULL;
	free(lower);
	free(copy);
	return result;
}

bool fn_event__is_branch(const char *name)
{
	static const char *const beginnings[] = {
		"branch", "br_", "ex_ret_br", "ex_ret_cond", "ex_ret_ind_br", "ex_ret_near_ret",
		"ex_ret_uncond_br",
	};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (strstarts(name, beginnings[i]))
			return true;
	}
	return false;
}

bool fn_event__is_clock(const char *name)
{
	return !strcmp(name, "cpu-clock") || !strcmp(name, "task-clock");
}

bool fn_event__is_time(const char *name)
{
	return !strcmp(name, "cycles") || fn_event__is_clock(name);
}

/*
 * Returns true if two events of one name are known to count different things. Two numbers are two
 * events: mispredicts that retired, say, and all of them. Those of the kernel's events are not
 * known here, but its cache-misses are those of L1D on Arm and those of the last level elsewhere.
 */
bool fn_event__differs(const struct perf_event_attr *attr, const struct perf_event_attr *other,
		       const char *cpu)
{
	if (is_mapped(attr) != is_mapped(other))
		return false;
	if (attr->type == other->type || !is_mapped(attr))
		return number(attr) != number(other);
	return fn_cpu__vendor(cpu) != FN_VENDOR_ARM;
}

/* Returns false for an event that means something else on CPUs of other vendors. */
bool fn_event__is_portable(const char *name)
{
	static const char *const portable[] = {
		"cycles", "instructions", "branches", "branch-misses", "ref-cycles",
		FN_TOTAL,
	};

	for (size_t i = 0; i < ARRAY_SIZE(portable); i++) {
		if (!strcmp(portable[i], name))
			return true;
	}
	for (int i = 0; i < PERF_COUNT_SW_MAX; i++) {
		if (evsel__sw_names[i] && !strcmp(evsel__sw_names[i], name))
			return true;
	}
	/* A name with a colon is one of a tracepoint. */
	return strchr(name, ':');
}

/* Returns the number of the PMU that the attr names besides the event; 0 if it names none. */
u32 fn_event__core(const struct perf_event_attr *attr)
{
	return is_mapped(attr) ? attr->config >> 32 : 0;
}
