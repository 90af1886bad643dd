// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the function of a sample, or the other row of a table that it belongs to: DSO, comm,
 * thread, process, CPU, PMU, line of source, call chain, cgroup.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../../addr_location.h"
#include "../../callchain.h"
#include "../../cgroup.h"
#include "../../dso.h"
#include "../../env.h"
#include "../../event.h"
#include "../../evsel.h"
#include "../../hashmap.h"
#include "../../machine.h"
#include "../../map.h"
#include "../../maps.h"
#include "../../sample.h"
#include "../../srcline.h"
#include "../../strbuf.h"
#include "../../symbol.h"
#include "../../thread.h"
#include "../../util.h"
#include "../../vdso.h"
#include "../text.h"
#include "../events.h"
#include "recorded-chain.h"
#include "resolve.h"
#include "windows.h"

/* An address in a call chain, and its function. */
struct frame_place {
	u64 ip;
	u64 thread;
	u8 cpumode;
	bool is_mapped;
	/* function_finder.nr_changes at the lookup. */
	u32 change;
	struct collect_function *function;
};

#define FRAMES_BITS	14

/* Follows the name of an inlined function. */
#define INLINED		" (inlined)"

/* A row of several keys, with one part per key. */
struct composed_row {
	struct collect_function *function;
	unsigned int nr;
	struct collect_function *parts[FUNCTION_BY_MAX];
};

struct function_finder {
	struct window_collector *metrics;
	enum function_by keys[FUNCTION_BY_MAX];
	unsigned int nr_keys;
	bool inlines;
	bool stitch_lbr;
	u64 nr_threads;
	/* With stitched LBRs: the threads whose last chain lacks callers, by number. */
	struct hashmap *cut;
	/* All rows that are not one symbol, by the kind of row and a text that identifies it. */
	struct hashmap *named;
	/* With several keys: all rows, by their parts. */
	struct hashmap *rows;
	struct strbuf key;
	struct strbuf identity;
	struct strbuf name;
	/* Frames of call chains by hash. */
	struct frame_place *frames;
	/* Number of changes of maps, from 1. */
	u32 nr_changes;
	/* The first process whose JIT has no map of its functions, 0 if there is none. */
	pid_t unmapped;
};

static size_t hash_text(long key, void *ctx __maybe_unused)
{
	return str_hash((const char *)key);
}

static bool equal_texts(long key1, long key2, void *ctx __maybe_unused)
{
	return !strcmp((const char *)key1, (const char *)key2);
}

static size_t hash_number(long key, void *ctx __maybe_unused)
{
	return key;
}

static bool equal_numbers(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

static size_t hash_parts(long key, void *ctx __maybe_unused)
{
	const struct composed_row *row = (const struct composed_row *)key;
	size_t hash = 0;

	for (unsigned int i = 0; i < row->nr; i++)
		hash = hash * 31 + hash_ptr(row->parts[i], 32);
	return hash;
}

static bool equal_parts(long key1, long key2, void *ctx __maybe_unused)
{
	const struct composed_row *a = (const struct composed_row *)key1;
	const struct composed_row *b = (const struct composed_row *)key2;

	return !memcmp(a->parts, b->parts, sizeof(a->parts));
}

/**
 * function_finder__new - begin to find functions
 * @metrics: the collector that gets them
 * @by: the keys of rows: names, separated by commas
 * @inlines: give inlined functions rows of their own
 * @stitch_lbr: lengthen call chains of LBRs by those of the samples before
 *
 * symbol_conf.priv_size is to be increased by the size of a pointer, before there
 * are symbols.
 *
 * Return: the finder, NULL without memory.
 */
struct function_finder *function_finder__new(struct window_collector *metrics, const char *by,
					     bool inlines, bool stitch_lbr)
{
	struct function_finder *finder = zalloc(sizeof(*finder));
	int nr_keys = finder ? function_by__parse(by, finder->keys) : -1;
	bool has_frames = nr_keys > 0 && finder->keys[0] == FUNCTION_BY_CHILDREN;

	if (nr_keys < 0) {
		free(finder);
		return NULL;
	}

	finder->metrics = metrics;
	finder->nr_keys = nr_keys;
	finder->inlines = inlines;
	finder->stitch_lbr = stitch_lbr;
	strbuf_init(&finder->key, 0);
	strbuf_init(&finder->identity, 0);
	strbuf_init(&finder->name, 0);
	finder->named = hashmap__new(hash_text, equal_texts, NULL);
	finder->rows = hashmap__new(hash_parts, equal_parts, NULL);
	finder->cut = hashmap__new(hash_number, equal_numbers, NULL);
	finder->nr_changes = 1;
	if (has_frames)
		finder->frames = calloc(1 << FRAMES_BITS, sizeof(*finder->frames));
	if (IS_ERR(finder->named) || IS_ERR(finder->rows) || IS_ERR(finder->cut) ||
	    (has_frames && !finder->frames)) {
		function_finder__delete(finder);
		return NULL;
	}

	/* Inlined functions of call chains, which take long to find. */
	symbol_conf.inline_name = inlines;
	/* The first thread names a process, and may end before the others. */
	symbol_conf.keep_exited_threads |= function_by__has(by, FUNCTION_BY_PROCESS);
	return finder;
}

static void delete_keys(struct hashmap *map)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (IS_ERR_OR_NULL(map))
		return;
	hashmap__for_each_entry(map, entry, bucket)
		free((void *)entry->pkey);
	hashmap__free(map);
}

/**
 * function_finder__delete - free a finder
 * @finder: the finder, may be NULL
 */
void function_finder__delete(struct function_finder *finder)
{
	if (!finder)
		return;
	delete_keys(finder->named);
	delete_keys(finder->rows);
	hashmap__free(finder->cut);
	strbuf_release(&finder->key);
	strbuf_release(&finder->identity);
	strbuf_release(&finder->name);
	free(finder->frames);
	free(finder);
}

static bool has_key(const struct function_finder *finder, enum function_by key)
{
	for (unsigned int i = 0; i < finder->nr_keys; i++) {
		if (finder->keys[i] == key)
			return true;
	}
	return false;
}

/**
 * function_finder__needs_sample - say whether thread and address do not suffice
 * @finder: the finder
 *
 * Return: true or false.
 */
bool function_finder__needs_sample(const struct function_finder *finder)
{
	return has_key(finder, FUNCTION_BY_CPU) || has_key(finder, FUNCTION_BY_PMU) ||
	       has_key(finder, FUNCTION_BY_CALLCHAIN) || has_key(finder, FUNCTION_BY_CGROUP);
}

/**
 * function_finder__is_nowhere - say whether a sample does not tell its function
 * @finder: the finder
 * @sample: the sample
 *
 * Linux 7.3 writes address 0 into a sample of a user-space event whose interrupt
 * came in the kernel. The thread, its comm, its cgroup and the CPU are known nevertheless.
 * With FUNCTION_BY_CHILDREN the call chain tells the function.
 *
 * Return: true or false.
 */
bool function_finder__is_nowhere(const struct function_finder *finder,
				 const struct perf_sample *sample)
{
	return !sample->ip &&
	       (has_key(finder, FUNCTION_BY_SYMBOL) || has_key(finder, FUNCTION_BY_DSO) ||
		has_key(finder, FUNCTION_BY_SRCLINE) || has_key(finder, FUNCTION_BY_CALLCHAIN));
}

/**
 * function_finder__lacks - say which data of an event were not recorded
 * @finder: the finder
 * @evsel: the event
 *
 * Return: the missing option of perf record, NULL if nothing is missing.
 */
const char *function_finder__lacks(const struct function_finder *finder, struct evsel *evsel)
{
	if (has_key(finder, FUNCTION_BY_CPU) &&
	    !(evsel->core.attr.sample_type & PERF_SAMPLE_CPU))
		return "--sample-cpu";
	if (has_key(finder, FUNCTION_BY_CGROUP) &&
	    !(evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP))
		return "--all-cgroups";
	if (has_key(finder, FUNCTION_BY_CALLCHAIN) && !evsel__has_callchain(evsel))
		return "--call-graph fp,4";
	/* Without these, perf leaves the chains as they are, and says nothing. */
	if (finder->stitch_lbr)
		return evsel__has_branch_callstack(evsel) && evsel__has_branch_hw_idx(evsel) &&
		       evsel__env(evsel) && evsel__env(evsel)->max_branches ? NULL :
		       "--call-graph lbr";
	/* Other chains end with the copy of the stack or with the LBRs, and do not say so. */
	if (has_key(finder, FUNCTION_BY_CHILDREN) &&
	    (!evsel__has_callchain(evsel) || evsel__has_branch_callstack(evsel) ||
	     evsel->core.attr.sample_type & PERF_SAMPLE_STACK_USER))
		return "--call-graph fp";
	return NULL;
}

/**
 * function_finder__thread - number the threads: their tids may be used again
 * @finder: the finder
 * @thread: the thread
 *
 * Return: its number, from 1.
 */
u64 function_finder__thread(struct function_finder *finder, struct thread *thread)
{
	if (!thread__db_id(thread))
		thread__set_db_id(thread, ++finder->nr_threads);
	return thread__db_id(thread);
}

/**
 * function_dso__is_jit - say whether a DSO has the code of a JIT
 * @dso: the DSO
 *
 * That is memory without a file, or a file that perf inject --jit has made of one function. Both
 * have the PID in their names.
 *
 * Return: true or false.
 */
bool function_dso__is_jit(const struct dso *dso)
{
	const char *path = dso__long_name(dso), *name = function_text__base_name(path);
	int length = 0;

	if (is_perf_pid_map_name(path) || is_anon_memory(path) || is_no_dso_memory(path))
		return true;
	return sscanf(name, "jitted-%*u-%*u.so%n", &length) == 0 && length && !name[length];
}

static const char *dso_name(const struct dso *dso)
{
	return function_dso__is_jit(dso) ? FUNCTION_JIT : dso__short_name(dso);
}

/* perf's copy of the vdso has another path each time. */
static const char *dso_path(struct dso *dso)
{
	if (function_dso__is_jit(dso) || dso__is_vdso(dso))
		return dso_name(dso);
	return dso__long_name(dso);
}

/* Returns the function of this kind with this identity, which other kinds may have, too. */
static struct collect_function *named_function(struct function_finder *finder,
					       enum function_by kind, const char *identity,
					       const char *name, const char *dso, u64 address)
{
	struct collect_function *function;
	char *key;

	strbuf_setlen(&finder->key, 0);
	if (strbuf_addch(&finder->key, 'A' + kind) < 0 ||
	    strbuf_addstr(&finder->key, identity) < 0)
		return NULL;
	if (hashmap__find(finder->named, finder->key.buf, &function))
		return function;

	function = window_collector__add_function(finder->metrics, name, dso, address);
	key = strdup(finder->key.buf);
	if (!function || !key || hashmap__add(finder->named, key, function)) {
		free(key);
		return NULL;
	}
	return function;
}

/* Frames, of the same kind, have another identity: it has a space. */
static struct collect_function *unmapped_function(struct function_finder *finder, u64 ip)
{
	char identity[32];

	scnprintf(identity, sizeof(identity), "%llx", (unsigned long long)ip);
	return named_function(finder, FUNCTION_BY_SYMBOL, identity, "", "", ip);
}

/* Use the memory next to the symbol; symbol__priv() is for its annotation. */
static struct collect_function **symbol_place(struct symbol *sym)
{
	return (void *)sym - sizeof(struct collect_function *);
}

/* Returns a symbol of the file, not one that symbol_function() has made for another key. */
static struct symbol *file_symbol(struct symbol *sym)
{
	return sym && *sym->name && !strstarts(sym->name, "0x") ? sym : NULL;
}

/*
 * Returns the function of a JIT. Its name identifies it: processes compile it to different
 * addresses, and anew. Without a name, the address would not tell more in the next run.
 */
static struct collect_function *jit_function(struct function_finder *finder, struct dso *dso,
					     const struct symbol *sym)
{
	const char *name = sym ? sym->name : FUNCTION_UNNAMED;
	int pid;

	if (!finder->unmapped && !dso__has_symbols(dso) &&
	    perf_pid_map_tid(dso__long_name(dso), &pid) && access(dso__long_name(dso), F_OK))
		finder->unmapped = pid;
	strbuf_setlen(&finder->identity, 0);
	if (strbuf_addf(&finder->identity, FUNCTION_JIT " %s", name) < 0)
		return NULL;
	return named_function(finder, FUNCTION_BY_SYMBOL, finder->identity.buf, name, FUNCTION_JIT,
			      0);
}

/* Returns true if the address is in a guest about which perf knows nothing. */
static bool is_in_guest(u8 cpumode)
{
	return !perf_guest && (cpumode == PERF_RECORD_MISC_GUEST_KERNEL ||
			       cpumode == PERF_RECORD_MISC_GUEST_USER);
}

static struct collect_function *guest_function(struct function_finder *finder, u8 cpumode)
{
	const char *name = cpumode == PERF_RECORD_MISC_GUEST_KERNEL ? "[guest kernel]" : "[guest]";

	return named_function(finder, FUNCTION_BY_SYMBOL, name, name, "", 0);
}

static struct collect_function *symbol_function(struct function_finder *finder,
						struct addr_location *al, u64 ip)
{
	struct collect_function **function;
	struct dso *dso;

	if (!al->map)
		return unmapped_function(finder, ip);

	dso = map__dso(al->map);
	if (!al->sym && function_dso__is_jit(dso))
		return jit_function(finder, dso, NULL);
	if (!al->sym) {
		/* The next lookup finds the symbol; it has no name if it covers one address. */
		al->sym = dso__synthesize_symbol(dso, maps__machine(thread__maps(al->thread)),
						 al->addr, "");
		if (!al->sym)
			return NULL;
	}

	function = symbol_place(al->sym);
	if (!*function && function_dso__is_jit(dso)) {
		*function = jit_function(finder, dso, al->sym);
	} else if (!*function) {
		*function = window_collector__add_function(finder->metrics, al->sym->name,
							   dso_path(dso), al->sym->start);
	}
	return *function;
}

static struct collect_function *dso_function(struct function_finder *finder,
					     struct addr_location *al)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;

	if (!dso)
		return named_function(finder, FUNCTION_BY_DSO, "", "[unknown]", "", 0);
	return named_function(finder, FUNCTION_BY_DSO, dso_path(dso), dso_name(dso), dso_path(dso),
			      0);
}

static struct collect_function *comm_function(struct function_finder *finder,
					      struct addr_location *al)
{
	const char *comm = thread__comm_str(al->thread);

	return named_function(finder, FUNCTION_BY_COMM, comm, comm, "", 0);
}

/* A thread, or a process by its first thread, has the last of its names. */
static struct collect_function *thread_function(struct function_finder *finder,
						enum function_by kind, struct thread *thread)
{
	struct collect_function *function;
	char identity[32];

	strbuf_setlen(&finder->name, 0);
	if (strbuf_addf(&finder->name, "%d:%s", thread__tid(thread), thread__comm_str(thread)) < 0)
		return NULL;
	scnprintf(identity, sizeof(identity), "%llu",
		  (unsigned long long)function_finder__thread(finder, thread));
	function = named_function(finder, kind, identity, finder->name.buf, "", 0);
	return function && !collect_function__rename(function, finder->name.buf) ? function : NULL;
}

static struct collect_function *process_function(struct function_finder *finder,
						 struct addr_location *al)
{
	const pid_t pid = thread__pid(al->thread);
	struct thread *first = machine__findnew_thread(maps__machine(thread__maps(al->thread)),
						       pid, pid);
	struct collect_function *function = NULL;

	if (first)
		function = thread_function(finder, FUNCTION_BY_PROCESS, first);
	thread__put(first);
	return function;
}

/* Returns the PMU of an event, which is that of a kind of cores if there are several. */
static struct collect_function *pmu_function(struct function_finder *finder, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const struct perf_env *env = evsel__env(evsel);
	const char *mapping = env ? env->pmu_mappings : NULL;
	u32 core = fn_event__core(attr), type = core ?: attr->type;
	char name[32], *colon;

	/* The kernel chooses the PMU of the cores, whose number is that of raw events on x86. */
	if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE)
		type = PERF_TYPE_RAW;
	for (int i = 0; mapping && i < env->nr_pmu_mappings; i++) {
		unsigned long number = strtoul(mapping, &colon, 10);

		mapping = *colon ? colon + 1 : colon;
		if (number == type)
			return named_function(finder, FUNCTION_BY_PMU, mapping, mapping, "", 0);
		mapping += strlen(mapping) + 1;
	}
	if (type == PERF_TYPE_RAW && !core)
		scnprintf(name, sizeof(name), "cpu");
	else
		scnprintf(name, sizeof(name), "pmu=%u", type);
	return named_function(finder, FUNCTION_BY_PMU, name, name, "", 0);
}

static struct collect_function *cpu_function(struct function_finder *finder,
					     const struct perf_sample *sample)
{
	char name[16];

	scnprintf(name, sizeof(name), "%03u", sample->cpu);
	return named_function(finder, FUNCTION_BY_CPU, name, name, "", 0);
}

/* Cgroups have paths, which may be reused. */
static struct collect_function *cgroup_function(struct function_finder *finder,
						const struct perf_sample *sample,
						struct addr_location *al)
{
	struct machine *machine = maps__machine(thread__maps(al->thread));
	/* Guests have none. */
	struct cgroup *cgroup = machine->env ? cgroup__find(machine->env, sample->cgroup) : NULL;
	const char *name = cgroup ? cgroup->name : "[unknown]";

	return named_function(finder, FUNCTION_BY_CGROUP, name, name, "", 0);
}

static struct collect_function *srcline_function(struct function_finder *finder,
						 struct addr_location *al)
{
	char *srcline = SRCLINE_UNKNOWN;
	struct dso *dso;

	if (al->map) {
		dso = map__dso(al->map);
		if (!al->sym && function_dso__is_jit(dso))
			return jit_function(finder, dso, NULL);
		srcline = srcline__tree_find(dso__srclines(dso), al->addr);
		if (!srcline) {
			srcline = map__srcline(al->map, al->addr, file_symbol(al->sym));
			srcline__tree_insert(dso__srclines(dso), al->addr, srcline);
		}
	}
	return named_function(finder, FUNCTION_BY_SRCLINE, srcline, srcline, "", 0);
}

/* Adds a frame, callees first, to the name and to the identity. */
static int add_frame(struct function_finder *finder, const struct map *map,
		     const struct symbol *sym, bool is_inlined, u64 address)
{
	const struct dso *dso = map ? map__dso(map) : NULL;
	const bool is_jit = dso && function_dso__is_jit(dso);
	const char *symbol = sym ? sym->name : is_jit ? FUNCTION_UNNAMED : NULL;
	size_t begin;
	int err;

	if (is_jit)
		err = strbuf_addf(&finder->identity, FUNCTION_JIT " %s;", symbol);
	else
		err = strbuf_addf(&finder->identity, "%p %llx %s;", dso,
				  (unsigned long long)(sym ? sym->start : address), symbol ?: "");
	if (err < 0)
		return -1;
	if (finder->name.len && strbuf_addch(&finder->name, ';') < 0)
		return -1;
	begin = finder->name.len;
	if (symbol)
		err = strbuf_addf(&finder->name, "%s%s", symbol, is_inlined ? INLINED : "");
	else
		err = strbuf_addf(&finder->name, "0x%llx [%s]", (unsigned long long)address,
				  dso ? dso__short_name(dso) : "unknown");
	/* Names, for example of Rust or Java, must not contain the separator of frames. */
	if (err >= 0)
		strreplace(finder->name.buf + begin, ';', ':');
	return err;
}

static void begin_frames(struct function_finder *finder)
{
	strbuf_setlen(&finder->identity, 0);
	strbuf_setlen(&finder->name, 0);
}

/* Returns the function that the frames make up, in the DSO of the sample. */
static struct collect_function *frames_function(struct function_finder *finder,
						enum function_by kind, struct addr_location *al,
						u64 ip)
{
	u64 address;

	if (!al->map)
		return named_function(finder, kind, finder->identity.buf, finder->name.buf, "", ip);
	if (function_dso__is_jit(map__dso(al->map)))
		address = 0;
	else
		address = al->sym ? al->sym->start : al->addr;
	return named_function(finder, kind, finder->identity.buf, finder->name.buf,
			      dso_path(map__dso(al->map)), address);
}

/* Returns NULL without debug information. */
static struct inline_node *find_inlines(struct addr_location *al, u64 ip)
{
	struct dso *dso = map__dso(al->map);
	u64 address = map__rip_2objdump(al->map, map__dso_map_ip(al->map, ip));
	struct inline_node *node = inlines__tree_find(dso__inlined_nodes(dso), address);

	if (!node) {
		node = dso__parse_addr_inlines(dso, address, al->sym);
		if (node)
			inlines__tree_insert(dso__inlined_nodes(dso), node);
	}
	return node;
}

static struct collect_function *inlined_function(struct function_finder *finder,
						 struct addr_location *al, u64 ip)
{
	struct inline_node *node = NULL;
	struct inline_list *entry;

	if (al->map && al->sym && *al->sym->name)
		node = find_inlines(al, ip);
	if (!node || list_empty(&node->val) || list_is_singular(&node->val))
		return symbol_function(finder, al, ip);

	begin_frames(finder);
	list_for_each_entry(entry, &node->val, list) {
		/*
		 * The last one is the function itself, whatever its name in the debug information.
		 */
		bool is_inlined = !list_is_last(&entry->list, &node->val);

		if (add_frame(finder, al->map, is_inlined ? entry->symbol : al->sym, is_inlined,
			      0) < 0)
			return NULL;
	}
	return frames_function(finder, FUNCTION_BY_SYMBOL, al, ip);
}

static struct collect_function *callchain_function(struct function_finder *finder,
						   struct evsel *evsel,
						   struct perf_sample *sample,
						   struct addr_location *al)
{
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	struct callchain_cursor_node *node;

	begin_frames(finder);
	if (thread__resolve_sample_callchain(al->thread, cursor, evsel, sample,
					     PERF_MAX_STACK_DEPTH))
		return NULL;

	callchain_cursor_commit(cursor);
	while ((node = callchain_cursor_current(cursor)) != NULL) {
		u64 address = node->ms.map ? map__map_ip(node->ms.map, node->ip) : node->ip;
		struct symbol *sym = file_symbol(node->ms.sym);

		if (add_frame(finder, node->ms.map, sym, sym && symbol__inlined(sym), address) < 0)
			return NULL;
		callchain_cursor_advance(cursor);
	}
	/* If only the chain was cut, the address of the sample is still known. */
	if (!finder->name.len &&
	    add_frame(finder, al->map, file_symbol(al->sym), false,
		      al->map ? al->addr : sample->ip) < 0)
		return NULL;
	return frames_function(finder, FUNCTION_BY_CALLCHAIN, al, sample->ip);
}

/* Returns the part of one key for a sample. */
static struct collect_function *key_function(struct function_finder *finder, enum function_by key,
					     struct evsel *evsel, struct perf_sample *sample,
					     struct addr_location *al)
{
	const bool is_of_code = key == FUNCTION_BY_SYMBOL || key == FUNCTION_BY_DSO ||
				key == FUNCTION_BY_SRCLINE || key == FUNCTION_BY_CALLCHAIN ||
				key == FUNCTION_BY_CHILDREN;

	if (is_of_code && is_in_guest(sample->cpumode))
		return guest_function(finder, sample->cpumode);

	switch (key) {
	case FUNCTION_BY_DSO:
		return dso_function(finder, al);
	case FUNCTION_BY_COMM:
		return comm_function(finder, al);
	case FUNCTION_BY_THREAD:
		return thread_function(finder, key, al->thread);
	case FUNCTION_BY_PROCESS:
		return process_function(finder, al);
	case FUNCTION_BY_CPU:
		return cpu_function(finder, sample);
	case FUNCTION_BY_PMU:
		return pmu_function(finder, evsel);
	case FUNCTION_BY_CGROUP:
		return cgroup_function(finder, sample, al);
	case FUNCTION_BY_SRCLINE:
		return srcline_function(finder, al);
	case FUNCTION_BY_CALLCHAIN:
		return callchain_function(finder, evsel, sample, al);
	case FUNCTION_BY_SYMBOL:
	case FUNCTION_BY_CHILDREN:
	case FUNCTION_BY_MAX:
	default:
		return finder->inlines ? inlined_function(finder, al, sample->ip) :
					 symbol_function(finder, al, sample->ip);
	}
}

/* Returns a row of several keys, which gets its name at the end. */
static struct collect_function *composed_function(struct function_finder *finder,
						  const struct composed_row *parts)
{
	const char *dso = "";
	u64 address = 0;
	struct composed_row *row;

	if (hashmap__find(finder->rows, parts, &row))
		return row->function;

	/* All parts that are in a DSO are in the same one. */
	for (unsigned int i = 0; i < parts->nr; i++) {
		struct function_name name = collect_function__name(parts->parts[i]);

		dso = *name.dso ? name.dso : dso;
		address = name.address ?: address;
	}
	row = memdup(parts, sizeof(*parts));
	if (!row)
		return NULL;
	row->function = window_collector__add_function(finder->metrics, "", dso, address);
	if (!row->function || hashmap__add(finder->rows, row, row)) {
		free(row);
		return NULL;
	}
	return row->function;
}

/**
 * function_finder__find - find the function of a sample
 * @finder: the finder
 * @evsel: the event of the sample
 * @sample: the sample
 * @al: the location of its address, with its thread
 *
 * Return: the function, NULL without memory.
 */
struct collect_function *function_finder__find(struct function_finder *finder, struct evsel *evsel,
					       struct perf_sample *sample,
					       struct addr_location *al)
{
	struct composed_row row = { .nr = finder->nr_keys };

	for (unsigned int i = 0; i < row.nr; i++) {
		row.parts[i] = key_function(finder, finder->keys[i], evsel, sample, al);
		if (!row.parts[i])
			return NULL;
	}
	return row.nr == 1 ? row.parts[0] : composed_function(finder, &row);
}

/* Adds the part of one key to a row's name, which has a ; only between parts or frames. */
static int resolve_add_part(struct function_finder *finder, enum function_by key,
			    const struct collect_function *part)
{
	struct function_name name = collect_function__name(part);
	bool has_frames = key == FUNCTION_BY_CALLCHAIN ||
			  (finder->inlines && strstr(name.symbol, INLINED ";"));
	const char *dso = function_text__base_name(name.dso);
	size_t begin;
	int err;

	if (finder->name.len && strbuf_addch(&finder->name, ';') < 0)
		return -1;
	begin = finder->name.len;
	if (*name.symbol)
		err = strbuf_addstr(&finder->name, name.symbol);
	else
		err = strbuf_addf(&finder->name, "0x%llx [%s]", (unsigned long long)name.address,
				  *dso ? dso : "unknown");
	if (err >= 0 && !has_frames)
		strreplace(finder->name.buf + begin, ';', ':');
	return err;
}

/**
 * function_finder__name_rows - name the rows of several keys
 * @finder: the finder
 *
 * Call it after the last sample, because threads may change their names.
 *
 * Return: 0, or -ENOMEM.
 */
int function_finder__name_rows(struct function_finder *finder)
{
	struct hashmap_entry *entry;
	size_t bucket;

	hashmap__for_each_entry(finder->rows, entry, bucket) {
		struct composed_row *row = entry->pvalue;

		strbuf_setlen(&finder->name, 0);
		for (unsigned int i = 0; i < row->nr; i++) {
			if (resolve_add_part(finder, finder->keys[i], row->parts[i]) < 0)
				return -ENOMEM;
		}
		if (collect_function__rename(row->function, finder->name.buf))
			return -ENOMEM;
	}
	return 0;
}

/* Looks up an address of a call chain, NULL without memory. */
static const struct frame_place *find_frame(struct function_finder *finder,
					    const struct perf_sample *sample,
					    struct machine *machine, u64 thread, u8 cpumode, u64 ip)
{
	struct frame_place *place = &finder->frames[hash_64(ip ^ thread, FRAMES_BITS)];
	struct addr_location al;
	struct thread *owner;

	if (place->change == finder->nr_changes && place->ip == ip && place->thread == thread &&
	    place->cpumode == cpumode)
		return place;

	*place = (struct frame_place){
		.ip		= ip,
		.thread		= thread,
		.cpumode	= cpumode,
	};
	addr_location__init(&al);
	owner = machine__findnew_thread(machine, sample->pid, sample->tid);
	if (owner) {
		thread__find_symbol(owner, cpumode, ip, &al);
		place->is_mapped = al.map;
		place->function = symbol_function(finder, &al, ip);
		thread__put(owner);
	}
	addr_location__exit(&al);
	if (!place->function)
		return NULL;
	place->change = finder->nr_changes;
	return place;
}

static void reverse(struct function_chain *chain)
{
	for (unsigned int i = 0, j = chain->nr; i + 1 < j; i++) {
		struct function_frame frame = chain->frames[i];

		chain->frames[i] = chain->frames[--j];
		chain->frames[j] = frame;
	}
}

/*
 * Adds the frames of an LBR call stack, which perf lengthens by that of the sample before. Sets
 * @is_cut if callers are missing: the LBRs are full, and no sample since the thread began tells
 * what was in them before. Returns 0, or -ENOMEM.
 */
static int add_stitched(struct function_finder *finder, struct evsel *evsel,
			struct perf_sample *sample, struct machine *machine, u64 thread,
			struct function_chain *chain, bool *is_cut)
{
	struct thread *owner = machine__findnew_thread(machine, sample->pid, sample->tid);
	const u64 nr = sample->branch_stack ? sample->branch_stack->nr : 0;
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	struct callchain_cursor_node *node;
	u64 nr_user = 0;
	int err = -ENOMEM;

	if (!owner)
		return err;
	thread__set_lbr_stitch_enable(owner, true);
	if (!cursor || thread__resolve_sample_callchain(owner, cursor, evsel, sample,
							PERF_MAX_STACK_DEPTH))
		goto out;
	for (callchain_cursor_commit(cursor); (node = callchain_cursor_current(cursor)) != NULL;
	     callchain_cursor_advance(cursor)) {
		struct addr_location al = {
			.thread	= owner,
			.map	= node->ms.map,
			.sym	= node->ms.sym,
			.addr	= node->ms.map ? map__map_ip(node->ms.map, node->ip) : node->ip,
		};
		struct collect_function *function = symbol_function(finder, &al, node->ip);

		if (!function || function_chain__add(chain, function, node->ip))
			goto out;
		/* Only x86 has LBRs. */
		nr_user += !(node->ip >> 63);
	}
	/* A chain that is longer than the LBRs ends as the one before. */
	*is_cut = nr >= evsel__env(evsel)->max_branches &&
		  (nr_user <= nr + 1 || hashmap__find(finder->cut, thread, NULL));
	err = 0;
	if (*is_cut)
		err = hashmap__set(finder->cut, thread, 1, NULL, NULL);
	else
		hashmap__delete(finder->cut, thread, NULL, NULL);
out:
	thread__put(owner);
	return err;
}

/**
 * function_finder__chain - find the functions of a sample's call chain
 * @finder: the finder
 * @evsel: the event of the sample
 * @sample: the sample
 * @machine: where it was taken
 * @thread: number of its thread
 * @function: the function that it was taken in, for a sample without frames
 * @chain: set to the frames, below FUNCTION_ALL; or FUNCTION_CUT alone, if there are more
 *	   frames than the recording has
 *
 * Return: 0, or -ENOMEM.
 */
int function_finder__chain(struct function_finder *finder, struct evsel *evsel,
			   struct perf_sample *sample, struct machine *machine, u64 thread,
			   struct collect_function *function, struct function_chain *chain)
{
	const struct frame_place *place;
	const char *name = FUNCTION_ALL;
	struct collect_function *root;
	struct recorded_chain frames;
	bool is_cut = false;

	chain->nr = 0;
	recorded_chain__begin(&frames, evsel, sample);
	if (finder->stitch_lbr && !is_in_guest(sample->cpumode) &&
	    add_stitched(finder, evsel, sample, machine, thread, chain, &is_cut))
		return -ENOMEM;
	/* A guest is one row. */
	while (!finder->stitch_lbr && !is_in_guest(sample->cpumode) &&
	       recorded_chain__next(&frames)) {
		place = find_frame(finder, sample, machine, thread, frames.cpumode, frames.ip);
		if (!place)
			return -ENOMEM;
		if (frames.is_register && !place->is_mapped)
			continue;
		if (function_chain__add(chain, place->function, frames.ip))
			return -ENOMEM;
	}
	if (!chain->nr && sample->ip && function_chain__add(chain, function, sample->ip))
		return -ENOMEM;

	if (is_cut || recorded_chain__is_cut(&frames)) {
		chain->nr = 0;
		name = FUNCTION_CUT;
	}
	root = named_function(finder, FUNCTION_BY_CHILDREN, name, name, "", 0);
	if (!root || function_chain__add(chain, root, 0))
		return -ENOMEM;
	reverse(chain);
	return 0;
}

/**
 * function_finder__unmapped - find a JIT whose map of functions is missing
 * @finder: the finder
 *
 * Return: the PID of the first one, 0 if there is none.
 */
pid_t function_finder__unmapped(const struct function_finder *finder)
{
	return finder->unmapped;
}

/**
 * function_finder__forget - forget places, because maps have changed
 * @finder: the finder
 */
void function_finder__forget(struct function_finder *finder)
{
	finder->nr_changes++;
}
