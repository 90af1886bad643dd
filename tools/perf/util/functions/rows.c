// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the row of a sample: its function, or DSO, comm, thread, process, CPU, PMU, line of source,
 * call chain or cgroup, or several of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../addr_location.h"
#include "../callchain.h"
#include "../cgroup.h"
#include "../dso.h"
#include "../env.h"
#include "../event.h"
#include "../evsel.h"
#include "../expr.h"
#include "../hashmap.h"
#include "../machine.h"
#include "../map.h"
#include "../maps.h"
#include "../sample.h"
#include "../srcline.h"
#include "../strbuf.h"
#include "../symbol.h"
#include "../thread.h"
#include "../util.h"
#include "../vdso.h"
#include "functions.h"

/* Follows the name of an inlined function. */
#define INLINED		" (inlined)"

struct fn_rows {
	struct fn_table *table;
	enum fn_key keys[FN_NR_KEYS];
	unsigned int nr_keys;
	u32 has;		/* bits by key */
	bool inlines;
	u64 nr_threads;
	/* All rows that are not one symbol, by the kind of row and a text that identifies it. */
	struct hashmap *named;
	struct strbuf key, identity, name;
};

static const char *const key_names[FN_NR_KEYS] = {
	"symbol", "dso", "comm", "thread", "process", "cpu", "pmu", "srcline", "callchain",
	"cgroup", "children",
};

const char *fn_key__name(enum fn_key key)
{
	return key_names[key];
}

static int find_key(const char *word, int length)
{
	for (int key = 0; key < FN_NR_KEYS; key++) {
		if (!strncmp(word, key_names[key], length) && !key_names[key][length])
			return key;
	}
	/* As perf report has it. */
	return length == 3 && strstarts(word, "pid") ? FN_BY_PROCESS : -1;
}

int fn_by__parse(const char *by, enum fn_key keys[FN_NR_KEYS], char wrong[32])
{
	bool is_there[FN_NR_KEYS] = {};
	int nr = 0;

	for (const char *end;; by = end + 1) {
		int key;

		end = strchrnul(by, ',');
		key = find_key(by, end - by);
		if (key < 0 || is_there[key] || (key == FN_BY_CHILDREN && (nr || *end))) {
			if (wrong)
				scnprintf(wrong, 32, "%.*s", (int)(end - by), by);
			return -1;
		}
		is_there[key] = true;
		keys[nr++] = key;
		if (!*end)
			return nr;
	}
}

bool fn_by__has(const char *by, enum fn_key key)
{
	enum fn_key keys[FN_NR_KEYS];
	int nr = fn_by__parse(by, keys, NULL);

	while (nr > 0 && keys[nr - 1] != key)
		nr--;
	return nr > 0;
}

bool fn_by__is(const char *by, enum fn_key key)
{
	return !strcmp(by, key_names[key]);
}

struct fn_rows *fn_rows__new(struct fn_table *table, const char *by, bool inlines)
{
	struct fn_rows *rows = zalloc(sizeof(*rows));
	int nr = rows ? fn_by__parse(by, rows->keys, NULL) : -1;

	if (nr < 0) {
		free(rows);
		return NULL;
	}
	rows->table = table;
	rows->nr_keys = nr;
	for (int i = 0; i < nr; i++)
		rows->has |= BIT(rows->keys[i]);
	rows->inlines = inlines;
	strbuf_init(&rows->key, 0);
	strbuf_init(&rows->identity, 0);
	strbuf_init(&rows->name, 0);
	rows->named = ids__new();
	if (!rows->named) {
		fn_rows__delete(rows);
		return NULL;
	}
	/* Inlined functions of call chains, which take long to find. */
	symbol_conf.inline_name = inlines;
	/* The first thread names a process, and may end before the others. */
	symbol_conf.keep_exited_threads |= !!(rows->has & BIT(FN_BY_PROCESS));
	return rows;
}

void fn_rows__delete(struct fn_rows *rows)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (!rows)
		return;
	if (rows->named) {
		hashmap__for_each_entry(rows->named, entry, bucket)
			free((void *)entry->pkey);
	}
	hashmap__free(rows->named);
	strbuf_release(&rows->key);
	strbuf_release(&rows->identity);
	strbuf_release(&rows->name);
	free(rows);
}

bool fn_rows__needs_sample(const struct fn_rows *rows)
{
	return rows->has & (BIT(FN_BY_CPU) | BIT(FN_BY_PMU) | BIT(FN_BY_CALLCHAIN) |
			    BIT(FN_BY_CGROUP));
}

/* The thread, its comm, its cgroup and the CPU are known nevertheless, and so is a call chain. */
bool fn_rows__is_nowhere(const struct fn_rows *rows, const struct perf_sample *sample)
{
	return !sample->ip && rows->has & (BIT(FN_BY_SYMBOL) | BIT(FN_BY_DSO) |
					   BIT(FN_BY_SRCLINE) | BIT(FN_BY_CALLCHAIN));
}

const char *fn_rows__lacks(const struct fn_rows *rows, struct evsel *evsel)
{
	if (rows->has & BIT(FN_BY_CPU) && !(evsel->core.attr.sample_type & PERF_SAMPLE_CPU))
		return "--sample-cpu";
	if (rows->has & BIT(FN_BY_CGROUP) &&
	    !(evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP))
		return "--all-cgroups";
	if (rows->has & BIT(FN_BY_CALLCHAIN) && !evsel__has_callchain(evsel))
		return "--call-graph fp,4";
	return NULL;
}

/* Numbers the threads, because their tids may be used again. */
u64 fn_rows__thread(struct fn_rows *rows, struct thread *thread)
{
	if (!thread__db_id(thread))
		thread__set_db_id(thread, ++rows->nr_threads);
	return thread__db_id(thread);
}

/*
 * Memory without a file (.NET has its code in a memfd), or a file that perf inject --jit has made
 * of one function. Both have the PID in their names.
 */
bool fn_dso__is_jit(const struct dso *dso)
{
	const char *path = dso__long_name(dso), *name = function_text__base_name(path);
	int length = 0;

	if (is_perf_pid_map_name(path) || is_anon_memory(path) || is_no_dso_memory(path) ||
	    strstarts(path, "/memfd:"))
		return true;
	return sscanf(name, "jitted-%*u-%*u.so%n", &length) == 0 && length && !name[length];
}

static const char *dso_name(const struct dso *dso)
{
	return fn_dso__is_jit(dso) ? FN_JIT : dso__short_name(dso);
}

/* perf's copy of the vdso has another path each time. */
static const char *dso_path(struct dso *dso)
{
	return fn_dso__is_jit(dso) || dso__is_vdso(dso) ? dso_name(dso) : dso__long_name(dso);
}

/* Returns the row of this kind with this identity, which other kinds may have, too. */
static struct fn_row *find_named(struct fn_rows *rows, enum fn_key kind, const char *identity,
				 const char *name, const char *dso, const u64 *address)
{
	struct fn_row *row;
	char *key;

	strbuf_setlen(&rows->key, 0);
	if (strbuf_addch(&rows->key, 'A' + kind) < 0 || strbuf_addstr(&rows->key, identity) < 0)
		return NULL;
	if (hashmap__find(rows->named, rows->key.buf, &row))
		return row;
	row = fn_table__new_row(rows->table, name, dso, address);
	key = strdup(rows->key.buf);
	if (!row || !key || hashmap__add(rows->named, key, row)) {
		free(key);
		return NULL;
	}
	return row;
}

struct fn_row *fn_rows__named(struct fn_rows *rows, enum fn_key kind, const char *name)
{
	return find_named(rows, kind, name, name, "", NULL);
}

/* Frames, of the same kind, have another identity: it has a space. */
static struct fn_row *unmapped_row(struct fn_rows *rows, u64 ip)
{
	char identity[32];

	scnprintf(identity, sizeof(identity), "%llx", (unsigned long long)ip);
	return find_named(rows, FN_BY_SYMBOL, identity, "", "", &ip);
}

/* Returns a symbol of the file, not one that fn_rows__function() has made for another key. */
static struct symbol *file_symbol(struct symbol *sym)
{
	return sym && *sym->name && !strstarts(sym->name, "0x") ? sym : NULL;
}

/*
 * Returns the row of a JIT's function. Its name identifies it: processes compile it to different
 * addresses, and anew. Without a name, the address would not tell more in the next run.
 */
static struct fn_row *jit_row(struct fn_rows *rows, struct dso *dso, const struct symbol *sym)
{
	const char *name = sym ? sym->name : FN_UNNAMED;
	int pid;

	if (!rows->table->unmapped && !dso__has_symbols(dso) &&
	    perf_pid_map_tid(dso__long_name(dso), &pid) && access(dso__long_name(dso), F_OK))
		rows->table->unmapped = pid;
	strbuf_setlen(&rows->identity, 0);
	if (strbuf_addf(&rows->identity, FN_JIT " %s", name) < 0)
		return NULL;
	return find_named(rows, FN_BY_SYMBOL, rows->identity.buf, name, FN_JIT, NULL);
}

/* Returns an address of the linker, as nm and objdump print it. */
static u64 linker_address(const struct dso *dso, u64 address)
{
	return dso__kernel(dso) ? address : address + dso__text_offset(dso);
}

struct fn_row *fn_rows__function(struct fn_rows *rows, struct addr_location *al, u64 ip)
{
	struct fn_row **row;
	struct dso *dso;
	u64 address;

	if (!al->map)
		return unmapped_row(rows, ip);
	dso = map__dso(al->map);
	if (!al->sym && fn_dso__is_jit(dso))
		return jit_row(rows, dso, NULL);
	if (!al->sym) {
		/* The next lookup finds the symbol; it has no name if it covers one address. */
		al->sym = dso__synthesize_symbol(dso, maps__machine(thread__maps(al->thread)),
						 al->addr, "");
		if (!al->sym)
			return NULL;
	}
	row = symbol__priv(al->sym);
	address = linker_address(dso, al->sym->start);
	if (!*row && fn_dso__is_jit(dso))
		*row = jit_row(rows, dso, al->sym);
	else if (!*row)
		*row = fn_table__new_row(rows->table, al->sym->name, dso_path(dso), &address);
	return *row;
}

static struct fn_row *dso_row(struct fn_rows *rows, struct addr_location *al)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;

	if (!dso)
		return find_named(rows, FN_BY_DSO, "", "[unknown]", "", NULL);
	return find_named(rows, FN_BY_DSO, dso_path(dso), dso_name(dso), dso_path(dso), NULL);
}

static int rename_row(struct fn_row *row, const char *symbol)
{
	char *own;

	if (!strcmp(row->symbol, symbol))
		return 0;
	own = strdup(symbol);
	if (!own)
		return -ENOMEM;
	free(row->symbol);
	row->symbol = own;
	return 0;
}

/* A thread, or a process by its first thread, has the last of its names. */
static struct fn_row *thread_row(struct fn_rows *rows, enum fn_key kind, struct thread *thread)
{
	struct fn_row *row;
	char identity[32];

	strbuf_setlen(&rows->name, 0);
	if (strbuf_addf(&rows->name, "%d:%s", thread__tid(thread), thread__comm_str(thread)) < 0)
		return NULL;
	scnprintf(identity, sizeof(identity), "%llu",
		  (unsigned long long)fn_rows__thread(rows, thread));
	row = find_named(rows, kind, identity, rows->name.buf, "", NULL);
	return row && !rename_row(row, rows->name.buf) ? row : NULL;
}

static struct fn_row *process_row(struct fn_rows *rows, struct addr_location *al)
{
	const pid_t pid = thread__pid(al->thread);
	struct thread *first = machine__findnew_thread(maps__machine(thread__maps(al->thread)),
						       pid, pid);
	struct fn_row *row = first ? thread_row(rows, FN_BY_PROCESS, first) : NULL;

	thread__put(first);
	return row;
}

/* Returns the PMU of a group's leader, which is that of a kind of cores if there are several. */
static struct fn_row *pmu_row(struct fn_rows *rows, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel__leader(evsel)->core.attr;
	u32 core = fn_event__core(attr), type = core ?: attr->type;
	const char *name;
	char number[32];

	/* The kernel chooses the PMU of the cores, whose number is that of raw events on x86. */
	if (type == PERF_TYPE_HARDWARE || type == PERF_TYPE_HW_CACHE)
		type = PERF_TYPE_RAW;
	name = fn_env__pmu(evsel__env(evsel), type);
	if (!name && type == PERF_TYPE_RAW && !core)
		name = "cpu";
	scnprintf(number, sizeof(number), "pmu=%u", type);
	return fn_rows__named(rows, FN_BY_PMU, name ?: number);
}

static struct fn_row *cpu_row(struct fn_rows *rows, const struct perf_sample *sample)
{
	char name[16];

	scnprintf(name, sizeof(name), "%03u", sample->cpu);
	return fn_rows__named(rows, FN_BY_CPU, name);
}

/* Cgroups have paths, which may be reused. Guests have none. */
static struct fn_row *cgroup_row(struct fn_rows *rows, const struct perf_sample *sample,
				 struct addr_location *al)
{
	struct machine *machine = maps__machine(thread__maps(al->thread));
	struct cgroup *cgroup = machine->env ? cgroup__find(machine->env, sample->cgroup) : NULL;

	return fn_rows__named(rows, FN_BY_CGROUP, cgroup ? cgroup->name : "[unknown]");
}

static struct fn_row *srcline_row(struct fn_rows *rows, struct addr_location *al)
{
	char *srcline = SRCLINE_UNKNOWN;
	struct dso *dso;

	if (al->map) {
		dso = map__dso(al->map);
		if (!al->sym && fn_dso__is_jit(dso))
			return jit_row(rows, dso, NULL);
		srcline = srcline__tree_find(dso__srclines(dso), al->addr);
		if (!srcline) {
			srcline = map__srcline(al->map, al->addr, file_symbol(al->sym));
			srcline__tree_insert(dso__srclines(dso), al->addr, srcline);
		}
	}
	return fn_rows__named(rows, FN_BY_SRCLINE, srcline);
}

/* Adds a part or a frame to the name of a row. Without a symbol, its address tells it. */
static int add_name(struct fn_rows *rows, const char *symbol, const char *suffix, u64 address,
		    const char *dso, bool has_frames)
{
	size_t begin;
	int err;

	if (rows->name.len && strbuf_addch(&rows->name, ';') < 0)
		return -1;
	begin = rows->name.len;
	if (*symbol)
		err = strbuf_addf(&rows->name, "%s%s", symbol, suffix);
	else
		err = strbuf_addf(&rows->name, "0x%llx [%s]", (unsigned long long)address, dso);
	/* Names, for example of Rust or Java, must not contain the separator. */
	if (err >= 0 && !has_frames)
		strreplace(rows->name.buf + begin, ';', ':');
	return err;
}

/* Adds a frame, callees first, to the name and to the identity. */
static int add_frame(struct fn_rows *rows, const struct map *map, const struct symbol *sym,
		     bool is_inlined, u64 address)
{
	const struct dso *dso = map ? map__dso(map) : NULL;
	const bool is_jit = dso && fn_dso__is_jit(dso);
	const char *symbol = sym ? sym->name : is_jit ? FN_UNNAMED : "";
	int err;

	if (is_jit)
		err = strbuf_addf(&rows->identity, FN_JIT " %s;", symbol);
	else
		err = strbuf_addf(&rows->identity, "%p %llx %s;", dso,
				  (unsigned long long)(sym ? sym->start : address), symbol);
	return err < 0 ? err : add_name(rows, symbol, is_inlined ? INLINED : "",
					dso ? linker_address(dso, address) : address,
					dso ? dso__short_name(dso) : "unknown",
					/*has_frames=*/false);
}

static void begin_frames(struct fn_rows *rows)
{
	strbuf_setlen(&rows->identity, 0);
	strbuf_setlen(&rows->name, 0);
}

/* Returns the row that the frames make up, in the DSO of the sample. */
static struct fn_row *frames_row(struct fn_rows *rows, enum fn_key kind, struct addr_location *al,
				 u64 ip)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;
	u64 address = ip;

	if (dso)
		address = linker_address(dso, al->sym ? al->sym->start : al->addr);
	return find_named(rows, kind, rows->identity.buf, rows->name.buf,
			  dso ? dso_path(dso) : "", dso && fn_dso__is_jit(dso) ? NULL : &address);
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

static struct fn_row *inlined_row(struct fn_rows *rows, struct addr_location *al, u64 ip)
{
	struct inline_node *node = NULL;
	struct inline_list *entry;

	if (al->map && al->sym && *al->sym->name)
		node = find_inlines(al, ip);
	if (!node || list_empty(&node->val) || list_is_singular(&node->val))
		return fn_rows__function(rows, al, ip);
	begin_frames(rows);
	list_for_each_entry(entry, &node->val, list) {
		/* The last one is the function itself, whatever the debug information calls it. */
		bool is_inlined = !list_is_last(&entry->list, &node->val);

		if (add_frame(rows, al->map, is_inlined ? entry->symbol : al->sym, is_inlined,
			      0) < 0)
			return NULL;
	}
	return frames_row(rows, FN_BY_SYMBOL, al, ip);
}

static struct fn_row *callchain_row(struct fn_rows *rows, struct evsel *evsel,
				    struct perf_sample *sample, struct addr_location *al)
{
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	struct callchain_cursor_node *node;

	begin_frames(rows);
	if (thread__resolve_sample_callchain(al->thread, cursor, evsel, sample,
					     PERF_MAX_STACK_DEPTH))
		return NULL;
	callchain_cursor_commit(cursor);
	while ((node = callchain_cursor_current(cursor)) != NULL) {
		u64 address = node->ms.map ? map__map_ip(node->ms.map, node->ip) : node->ip;
		struct symbol *sym = file_symbol(node->ms.sym);

		if (add_frame(rows, node->ms.map, sym, sym && symbol__inlined(sym), address) < 0)
			return NULL;
		callchain_cursor_advance(cursor);
	}
	/* If only the chain was cut, the address of the sample is still known. */
	if (!rows->name.len && add_frame(rows, al->map, file_symbol(al->sym), false,
					 al->map ? al->addr : sample->ip) < 0)
		return NULL;
	return frames_row(rows, FN_BY_CALLCHAIN, al, sample->ip);
}

bool fn_sample__is_in_guest(const struct perf_sample *sample)
{
	return !perf_guest && (sample->cpumode == PERF_RECORD_MISC_GUEST_KERNEL ||
			       sample->cpumode == PERF_RECORD_MISC_GUEST_USER);
}

/* Returns the row of a guest about which perf knows nothing, NULL if the sample is in none. */
static struct fn_row *guest_row(struct fn_rows *rows, const struct perf_sample *sample)
{
	if (!fn_sample__is_in_guest(sample))
		return NULL;
	return fn_rows__named(rows, FN_BY_SYMBOL,
			      sample->cpumode == PERF_RECORD_MISC_GUEST_KERNEL ?
			      "[guest kernel]" : "[guest]");
}

/* Returns the part of one key for a sample. */
static struct fn_row *key_row(struct fn_rows *rows, enum fn_key key, struct evsel *evsel,
			      struct perf_sample *sample, struct addr_location *al)
{
	struct fn_row *guest = guest_row(rows, sample);

	switch (key) {
	case FN_BY_COMM:
		return fn_rows__named(rows, key, thread__comm_str(al->thread));
	case FN_BY_THREAD:
		return thread_row(rows, key, al->thread);
	case FN_BY_PROCESS:
		return process_row(rows, al);
	case FN_BY_CPU:
		return cpu_row(rows, sample);
	case FN_BY_PMU:
		return pmu_row(rows, evsel);
	case FN_BY_CGROUP:
		return cgroup_row(rows, sample, al);
	case FN_BY_DSO:
		return guest ?: dso_row(rows, al);
	case FN_BY_SRCLINE:
		return guest ?: srcline_row(rows, al);
	case FN_BY_CALLCHAIN:
		return guest ?: callchain_row(rows, evsel, sample, al);
	case FN_BY_SYMBOL:
	case FN_BY_CHILDREN:
	case FN_NR_KEYS:
	default:
		return guest ?: rows->inlines ? inlined_row(rows, al, sample->ip) :
						fn_rows__function(rows, al, sample->ip);
	}
}

/* Returns a row of several keys, which gets its name at the end. */
static struct fn_row *composed_row(struct fn_rows *rows, struct fn_row *const *parts)
{
	const u64 *address = NULL;
	const char *dso = "";
	struct fn_row *row;

	strbuf_setlen(&rows->identity, 0);
	/* All parts that are in a DSO are in the same one. */
	for (unsigned int i = 0; i < rows->nr_keys; i++) {
		if (strbuf_addf(&rows->identity, "%p ", parts[i]) < 0)
			return NULL;
		dso = *parts[i]->dso ? parts[i]->dso : dso;
		address = parts[i]->has_address ? &parts[i]->address : address;
	}
	row = find_named(rows, FN_NR_KEYS, rows->identity.buf, "", dso, address);
	if (row && !row->parts)
		row->parts = memdup(parts, rows->nr_keys * sizeof(*parts));
	return row && row->parts ? row : NULL;
}

struct fn_row *fn_rows__find(struct fn_rows *rows, struct evsel *evsel, struct perf_sample *sample,
			     struct addr_location *al)
{
	struct fn_row *parts[FN_NR_KEYS];

	for (unsigned int i = 0; i < rows->nr_keys; i++) {
		parts[i] = key_row(rows, rows->keys[i], evsel, sample, al);
		if (!parts[i])
			return NULL;
	}
	return rows->nr_keys == 1 ? parts[0] : composed_row(rows, parts);
}

/* Adds the part of one key to a row's name, which has a ; only between parts or frames. */
static int add_part(struct fn_rows *rows, enum fn_key key, const struct fn_row *part)
{
	bool has_frames = key == FN_BY_CALLCHAIN ||
			  (rows->inlines && strstr(part->symbol, INLINED ";"));
	const char *dso = function_text__base_name(part->dso);

	return add_name(rows, part->symbol, "", part->address, *dso ? dso : "unknown", has_frames);
}

int fn_rows__finish(struct fn_rows *rows)
{
	fn_table__for_each_row(rows->table, row) {
		strbuf_setlen(&rows->name, 0);
		for (unsigned int j = 0; row->parts && j < rows->nr_keys; j++) {
			if (add_part(rows, rows->keys[j], row->parts[j]) < 0)
				return -ENOMEM;
		}
		if (row->parts && rename_row(row, rows->name.buf))
			return -ENOMEM;
	}
	return 0;
}
