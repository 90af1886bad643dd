// SPDX-License-Identifier: GPL-2.0
/*
 * Gives each event one name, whatever the spelling: by these names the sums of different recordings
 * add up, and columns are found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/types.h>

#include "../text.h"
#include "events.h"

/* A pair of perf_event_attr.config and the event's name. */
struct number_name {
	u64 config;
	const char *name;
};

/* perf_event_attr.config of the events that the kernel names */
static const struct number_name hardware[] = {
	{ 0, "cycles" },
	{ 1, "instructions" },
	{ 2, "cache-references" },
	{ 3, "cache-misses" },
	{ 4, "branches" },
	{ 5, "branch-misses" },
	{ 6, "bus-cycles" },
	{ 7, "stalled-cycles-frontend" },
	{ 8, "stalled-cycles-backend" },
	{ 9, "ref-cycles" },
};

static const struct number_name software[] = {
	{ 0, "cpu-clock" },
	{ 1, "task-clock" },
	{ 2, "page-faults" },
	{ 3, "context-switches" },
	{ 4, "cpu-migrations" },
	{ 5, "minor-faults" },
	{ 6, "major-faults" },
	{ 7, "alignment-faults" },
	{ 8, "emulation-faults" },
	{ 9, "dummy" },
	{ 10, "bpf-output" },
	{ 11, "cgroup-switches" },
};

/* L1D, read; data TLB, read */
static const struct number_name hw_cache[] = {
	{ 0x00000, "L1-dcache-loads" },
	{ 0x10000, "L1-dcache-load-misses" },
	{ 0x10003, "dTLB-load-misses" },
};

/* The same on Arm: the counters of cache-references and cache-misses */
static const struct number_name arm_cache[] = {
	{ 0x00000, "cache-references" },
	{ 0x10000, "cache-misses" },
	{ 0x10003, "dTLB-load-misses" },
};

/* Event numbers of the Arm architecture (Arm ARM, "PMU events and event numbers") */
static const struct number_name arm[] = {
	{ 0x0003, "cache-misses" }, /* L1D_CACHE_REFILL */
	{ 0x0004, "cache-references" }, /* L1D_CACHE */
	{ 0x0005, "dTLB-load-misses" }, /* L1D_TLB_REFILL */
	{ 0x0008, "instructions" }, /* INST_RETIRED */
	{ 0x0010, "branch-misses" }, /* BR_MIS_PRED */
	{ 0x0011, "cycles" }, /* CPU_CYCLES */
	{ 0x001b, "inst_spec" }, /* INST_SPEC */
	{ 0x0022, "branch-misses" }, /* BR_MIS_PRED_RETIRED */
};

/* Event and umask of Intel's core PMUs. Events with the number 0 are those of fixed counters. */
static const struct number_name intel[] = {
	{ 0x003c, "cycles" }, /* CPU_CLK_UNHALTED.THREAD_P */
	{ 0x0200, "cycles" }, /* CPU_CLK_UNHALTED.THREAD */
	{ 0x00c0, "instructions" }, /* INST_RETIRED.ANY_P */
	{ 0x0100, "instructions" }, /* INST_RETIRED.PREC_DIST */
	{ 0x01c0, "instructions" }, /* INST_RETIRED.PREC_DIST, before Ice Lake */
	{ 0x0300, "ref-cycles" }, /* CPU_CLK_UNHALTED.REF_TSC */
	{ 0x00c4, "branches" }, /* BR_INST_RETIRED.ALL_BRANCHES */
	{ 0x00c5, "branch-misses" }, /* BR_MISP_RETIRED.ALL_BRANCHES */
	{ 0x4f2e, "cache-references" }, /* LONGEST_LAT_CACHE.REFERENCE */
	{ 0x412e, "cache-misses" }, /* LONGEST_LAT_CACHE.MISS */
};

/* Event and umask of AMD's core PMUs */
static const struct number_name amd[] = {
	{ 0x0076, "cycles" }, /* LS_NOT_HALTED_CYC */
	{ 0x00c0, "instructions" }, /* EX_RET_INSTR */
	{ 0x00c2, "branches" }, /* EX_RET_BRN */
	{ 0x00c3, "branch-misses" }, /* EX_RET_BRN_MISP */
	{ 0xff60, "cache-references" }, /* L2_REQUEST_G1 */
	{ 0x0964, "cache-misses" }, /* L2_CACHE_REQ_STAT */
};

/* Names of the same events, for PMUs whose numbers are unknown here */
static const char *const aliases[][2] = {
	{ "cpu-cycles", "cycles" },
	{ "cpu_cycles", "cycles" },
	{ "cpu_clk_unhalted.thread", "cycles" },
	{ "cpu_clk_unhalted.thread_p", "cycles" },
	{ "cpu_clk_unhalted.core", "cycles" },
	{ "cpu_clk_unhalted.core_p", "cycles" },
	{ "ls_not_halted_cyc", "cycles" },
	{ "inst_retired", "instructions" },
	{ "inst_retired.any", "instructions" },
	{ "inst_retired.any_p", "instructions" },
	{ "ex_ret_instr", "instructions" },
	{ "l1d_cache", "cache-references" },
	{ "l1-dcache-loads", "L1-dcache-loads" },
	{ "l1d_cache_refill", "cache-misses" },
	{ "l1-dcache-load-misses", "L1-dcache-load-misses" },
	{ "dtlb-load-misses", "dTLB-load-misses" },
	{ "l1d_tlb_refill", "dTLB-load-misses" },
	{ "br_mis_pred", "branch-misses" },
	{ "br_mis_pred_retired", "branch-misses" },
	{ "branch-instructions", "branches" },
	{ "faults", "page-faults" },
	{ "cs", "context-switches" },
	{ "migrations", "cpu-migrations" },
};

/* Beginnings of terms that do not change the counted event. */
static const char *const ignored_terms[] = {
	"period", "alt-period", "freq", "name=", "time", "call-graph", "stack-size", "inherit",
	"no-inherit", "max-", "overwrite", "no-overwrite", "branch_type", "percore", "aux-",
	"metric-id=",
};

static const char *find_number(const struct number_name *names, size_t nr, u64 config)
{
	for (size_t i = 0; i < nr; i++) {
		if (names[i].config == config)
			return names[i].name;
	}
	return NULL;
}

static const char *find_name(const struct number_name *names, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(names[i].name, name))
			return names[i].name;
	}
	return NULL;
}

static const char *find_alias(const char *lower)
{
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (!strcmp(aliases[i][0], lower))
			return aliases[i][1];
	}
	return NULL;
}

static bool is_generic_name(const char *name)
{
	char *lower = function_text__lower(name);
	bool is_generic = lower && (find_alias(lower) ||
				    find_name(hardware, ARRAY_SIZE(hardware), name) ||
				    find_name(software, ARRAY_SIZE(software), name));

	free(lower);
	return is_generic;
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

	if (!colon || !colon[1])
		return;
	for (char *c = colon + 1; *c; c++) {
		if (!isalpha(*c))
			return;
	}
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

	if (!*terms || is_generic_name(name))
		return name;
	*pmu = name;
	return choose_event(name, terms) ? terms : name;
}

/**
 * function_cpu_vendor - say whose events a CPU counts
 * @cpu: the CPU as perf_env__describe_cpu() gives it, or NULL
 *
 * Return: the vendor, or FUNCTION_VENDOR_UNKNOWN.
 */
enum function_vendor function_cpu_vendor(const char *cpu)
{
	if (!cpu)
		return FUNCTION_VENDOR_UNKNOWN;
	if (strstarts(cpu, "GenuineIntel"))
		return FUNCTION_VENDOR_INTEL;
	if (strstarts(cpu, "AuthenticAMD") || strstarts(cpu, "HygonGenuine"))
		return FUNCTION_VENDOR_AMD;
	/* A MIDR. Apple (0x61) has the architecture's instructions and other events. */
	if (strstarts(cpu, "0x") && strspn(cpu + 2, "0123456789abcdef") == 16 &&
	    (!cpu[18] || cpu[18] == ' ') && strncmp(cpu + 10, "61", 2))
		return FUNCTION_VENDOR_ARM;
	return FUNCTION_VENDOR_UNKNOWN;
}

/**
 * function_vendor__name - name a vendor
 * @vendor: the vendor
 *
 * Return: its name.
 */
const char *function_vendor__name(enum function_vendor vendor)
{
	static const char *const names[] = { "unknown", "Arm", "Intel", "AMD" };

	return names[vendor];
}

/* Returns whose numbers those of a PMU are. An empty name means the CPU's PMU. */
static enum function_vendor vendor_of(const struct perf_event_attr *attr, const char *pmu,
				      const char *cpu)
{
	enum function_vendor vendor = function_cpu_vendor(cpu);

	/* armv8_pmuv3_0, armv8_cortex_a72, ... */
	if (strstarts(pmu, "armv") && isdigit(pmu[4]))
		return FUNCTION_VENDOR_ARM;
	if (vendor == FUNCTION_VENDOR_ARM)
		return *pmu ? FUNCTION_VENDOR_UNKNOWN : vendor;
	if (!strcmp(pmu, "cpu") || !strcmp(pmu, "cpu_core") || !strcmp(pmu, "cpu_atom") ||
	    (!*pmu && attr->type == PERF_TYPE_RAW))
		return vendor;
	return FUNCTION_VENDOR_UNKNOWN;
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

/* Returns the event that a vendor's number means, or NULL. */
static const char *name_of_number(enum function_vendor vendor, u64 config)
{
	switch (vendor) {
	case FUNCTION_VENDOR_ARM:
		return find_number(arm, ARRAY_SIZE(arm), config);
	case FUNCTION_VENDOR_INTEL:
		return find_number(intel, ARRAY_SIZE(intel), config);
	case FUNCTION_VENDOR_AMD:
		return find_number(amd, ARRAY_SIZE(amd), config);
	case FUNCTION_VENDOR_UNKNOWN:
	default:
		return NULL;
	}
}

/* Returns the event that the attr names, NULL if only the name does. */
static const char *name_of_attr(const struct perf_event_attr *attr, const char *pmu,
				const char *cpu)
{
	u64 config = number(attr);

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		return find_number(hardware, ARRAY_SIZE(hardware), config);
	case PERF_TYPE_HW_CACHE:
		return function_cpu_vendor(cpu) == FUNCTION_VENDOR_ARM ?
		       find_number(arm_cache, ARRAY_SIZE(arm_cache), config) :
		       find_number(hw_cache, ARRAY_SIZE(hw_cache), config);
	case PERF_TYPE_SOFTWARE:
		return find_number(software, ARRAY_SIZE(software), config);
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return NULL;
	default:
		return name_of_number(vendor_of(attr, pmu, cpu), config);
	}
}

/**
 * function_event_is_reserved - say whether no event may have a name
 * @name: the name
 *
 * Return: true or false.
 */
bool function_event_is_reserved(const char *name)
{
	return !strcmp(name, FUNCTION_SAMPLES) || !strcmp(name, FUNCTION_MATCHED) ||
	       !strcmp(name, FUNCTION_DISCARDED) || !strcmp(name, FUNCTION_TOTAL);
}

/**
 * function_event_name - say what an event counts
 * @attr: its attr, which decides where it can, for the name may be the user's
 * @name: the name that perf has for it
 * @cpu: the CPU as perf_env__describe_cpu() gives it, or NULL
 *
 * Return: a name, to be freed: one that the columns know, if there is one, else
 * @name without what does not say what is counted, and not a reserved one. NULL
 * without memory.
 */
char *function_event_name(const struct perf_event_attr *attr, const char *name,
			  const char *cpu)
{
	char *copy = strdup(name), *bare, *lower, *result = NULL;
	const char *known, *pmu;
	bool is_other;

	if (!copy)
		return NULL;

	bare = bare_name(copy, &pmu);
	lower = function_text__lower(bare);
	known = name_of_attr(attr, pmu, cpu);
	if (!known && lower && attr->type != PERF_TYPE_HW_CACHE) {
		known = find_alias(lower) ?:
			find_name(hardware, ARRAY_SIZE(hardware), lower) ?:
			find_name(software, ARRAY_SIZE(software), lower);
		if (!known && !strcmp(lower, "inst_spec"))
			known = "inst_spec";
	}
	/* The number of another event. */
	is_other = known && !*pmu && attr->type >= PERF_TYPE_RAW &&
		   attr->type != PERF_TYPE_BREAKPOINT && !name_of_attr(attr, pmu, cpu) &&
		   vendor_of(attr, pmu, cpu) != FUNCTION_VENDOR_UNKNOWN;
	known = known && !is_other ? known : bare;
	if (lower && asprintf(&result, is_other || function_event_is_reserved(known) ?
			      "event:%s" : "%s", known) < 0)
		result = NULL;
	free(lower);
	free(copy);
	return result;
}

/**
 * function_event_is_branch - say whether an event happens at branches
 * @name: its name in perf, or at Arm, Intel and AMD
 *
 * Return: true or false.
 */
bool function_event_is_branch(const char *name)
{
	return strstarts(name, "branch") || strstarts(name, "br_") || strstarts(name, "ex_ret_br");
}

/**
 * function_event_differs - say whether two events of one name count different things
 * @attr: attr of the one
 * @other: attr of the other
 * @cpu: the CPU as perf_env__describe_cpu() gives it, or NULL
 *
 * Two numbers are two events: mispredicts that retired, say, and all of them. Those
 * of the kernel's events are not known here, but its cache-misses are those of L1D
 * on Arm and those of the last level elsewhere.
 *
 * Return: true if they do; false, too, if it cannot be said.
 */
bool function_event_differs(const struct perf_event_attr *attr,
			    const struct perf_event_attr *other, const char *cpu)
{
	if (is_mapped(attr) != is_mapped(other))
		return false;
	if (attr->type == other->type || !is_mapped(attr))
		return number(attr) != number(other);
	return function_cpu_vendor(cpu) != FUNCTION_VENDOR_ARM;
}

/**
 * function_event_is_portable - say whether an event means the same on all CPUs
 * @name: the name of function_event_name()
 *
 * Return: true or false; false for an event that only its name describes.
 */
bool function_event_is_portable(const char *name)
{
	static const char *const portable[] = {
		"cycles", "instructions", "branches", "branch-misses", "ref-cycles",
		FUNCTION_SAMPLES, FUNCTION_MATCHED, FUNCTION_DISCARDED, FUNCTION_TOTAL,
	};

	for (size_t i = 0; i < ARRAY_SIZE(portable); i++) {
		if (!strcmp(portable[i], name))
			return true;
	}
	/* A name with a colon is one of a tracepoint. */
	return strchr(name, ':') || find_name(software, ARRAY_SIZE(software), name);
}

/**
 * function_event_core - tell PMUs of several kinds of cores apart
 * @attr: attr of an event
 *
 * Return: the number of the PMU that the attr names besides the event, as those of
 * hybrid CPUs do; 0 if it names none.
 */
u32 function_event_core(const struct perf_event_attr *attr)
{
	return is_mapped(attr) ? attr->config >> 32 : 0;
}
