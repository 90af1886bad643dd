// SPDX-License-Identifier: GPL-2.0
/*
 * Which columns a table has: those of known rates and shares whose events are there, each from its
 * most exact source, then those of other events, and those that the user names.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "functions.h"

/* A million rows with 60 columns have as many values, of 4 GB. */
#define MOST_VALUES	60000000
/* More than all metrics of a CPU need; a crafted sums file has more. */
#define MOST_COLUMNS	500

/* Titles and meanings of what columns show: scale x event / per. */
static const struct {
	const char *title, *meaning, *event, *per;
	unsigned int scale, digits;
} known[] = {
	{ "CPI", "cycles per instruction", "cycles", "instructions", 1, 1 },
	{ "%RI", "speculated instructions that retired", "instructions", "inst_spec", 100, 1 },
	{ "BM/KI", "branch mispredicts per 1000 instructions", "branch-misses", "instructions",
	  1000, 1 },
	{ "%BMR", "branches that were mispredicted", "branch-misses", "branches", 100, 1 },
	{ "CM/KI", "cache misses per 1000 instructions", "cache-misses", "instructions", 1000, 1 },
	{ "%CM", "cache accesses that miss", "cache-misses", "cache-references", 100, 1 },
	{ "L1DM/KI", "L1D load misses per 1000 instructions", "L1-dcache-load-misses",
	  "instructions", 1000, 1 },
	{ "%L1DMR", "L1D loads that miss", "L1-dcache-load-misses", "L1-dcache-loads", 100, 1 },
	{ "TM/KI", "data TLB misses per 1000 instructions", "dTLB-load-misses", "instructions",
	  1000, 3 },
	{ "LLM/KI", "last-level cache misses of loads per 1000 instructions", "LLC-misses",
	  "instructions", 1000, 3 },
	{ "LAT", "cycles that a load takes", "load-latency", "loads", 1, 1 },
	{ "MLAT", "cycles that a load takes which misses L1D", "miss-latency", "load-misses", 1,
	  1 },
	{ "PF/KI", "page faults per 1000 instructions", "page-faults", "instructions", 1000, 3 },
	{ "MIN/KI", "minor page faults per 1000 instructions", "minor-faults", "instructions",
	  1000, 3 },
	{ "MAJ/KI", "major page faults per 1000 instructions", "major-faults", "instructions",
	  1000, 3 },
	{ "CS/KI", "context switches per 1000 instructions", "context-switches", "instructions",
	  1000, 3 },
	{ "MIG/KI", "migrations to another CPU per 1000 instructions", "cpu-migrations",
	  "instructions", 1000, 3 },
	{ "%CY", "share of the cycles", "cycles", FN_TOTAL, 100, 1 },
	{ "%I", "share of the instructions", "instructions", FN_TOTAL, 100, 1 },
	{ "%BM", "share of the branch mispredicts", "branch-misses", FN_TOTAL, 100, 1 },
	{ "%cache-references", "share of the cache accesses", "cache-references", FN_TOTAL, 100,
	  1 },
	{ "%cache-misses", "share of the cache misses", "cache-misses", FN_TOTAL, 100, 1 },
	{ "%L1DA", "share of the L1D loads", "L1-dcache-loads", FN_TOTAL, 100, 1 },
	{ "%L1DM", "share of the L1D load misses", "L1-dcache-load-misses", FN_TOTAL, 100, 1 },
	{ "%TM", "share of the data TLB misses", "dTLB-load-misses", FN_TOTAL, 100, 1 },
	{ "%LLM", "share of the last-level cache misses of loads", "LLC-misses", FN_TOTAL, 100,
	  1 },
	{ "%IS", "share of the speculated instructions", "inst_spec", FN_TOTAL, 100, 1 },
	{ "%CLK", "share of the CPU clock", "cpu-clock", FN_TOTAL, 100, 1 },
	{ "%TCLK", "share of the task clock", "task-clock", FN_TOTAL, 100, 1 },
	{ "%PF", "share of the page faults", "page-faults", FN_TOTAL, 100, 1 },
	{ "%MIN", "share of the minor page faults", "minor-faults", FN_TOTAL, 100, 1 },
	{ "%MAJ", "share of the major page faults", "major-faults", FN_TOTAL, 100, 1 },
	{ "%CS", "share of the context switches", "context-switches", FN_TOTAL, 100, 1 },
	{ "%MIG", "share of the migrations", "cpu-migrations", FN_TOTAL, 100, 1 },
};

/* The kernel's cache-references and cache-misses are of another cache on each vendor's CPUs. */
static const struct {
	enum fn_vendor vendor;
	const char *column, *title, *meaning;
} caches[] = {
	{ FN_VENDOR_ARM, "CM/KI", "CM/KI", "L1D misses per 1000 instructions" },
	{ FN_VENDOR_ARM, "%cache-references", "%L1DA", "share of the L1D accesses" },
	{ FN_VENDOR_ARM, "%cache-misses", "%L1DM", "share of the L1D misses" },
	{ FN_VENDOR_INTEL, "CM/KI", "CM/KI", "last-level cache misses per 1000 instructions" },
	{ FN_VENDOR_INTEL, "%cache-references", "%LLA",
	  "share of the accesses to the last-level cache" },
	{ FN_VENDOR_INTEL, "%cache-misses", "%LLM", "share of the last-level cache misses" },
	{ FN_VENDOR_AMD, "CM/KI", "CM/KI", "L2 misses per 1000 instructions" },
	{ FN_VENDOR_AMD, "%cache-references", "%L2A", "share of the L2 accesses" },
	{ FN_VENDOR_AMD, "%cache-misses", "%L2M", "share of the L2 misses" },
};

static void free_column(struct fn_column *column)
{
	free((char *)column->title);
	free((char *)column->meaning);
	free(column->values);
}

static int add_column(struct fn_columns *columns, const struct fn_column *column)
{
	const size_t nr_rows = columns->table->nr_rows;
	struct fn_column *all, own = *column;

	if (nr_rows * (columns->nr + 1) > MOST_VALUES)
		return -E2BIG;
	all = realloc(columns->columns, (columns->nr + 1) * sizeof(*all));
	columns->columns = all ?: columns->columns;
	own.title = strdup(column->title);
	own.meaning = strdup(column->meaning);
	own.values = calloc(nr_rows + 1, sizeof(*own.values));
	if (!all || !own.title || !own.meaning || !own.values) {
		free_column(&own);
		return -ENOMEM;
	}
	all[columns->nr++] = own;
	return 0;
}

/* Operations stand for instructions; of cycles, there are samples. */
static bool suit_operations(const struct fn_table *table, struct fn_column *column)
{
	const char *base = fn_operations__base(table);
	const bool is_share = fn_column__is_share(column);
	const struct fn_column samples = { .event = "cycles", .per = FN_TOTAL };

	if (!strcmp(is_share ? column->event : column->per, "instructions")) {
		if (!base || (strcmp(base, FN_OPERATIONS) &&
			      (is_share || !strcmp(column->event, "cycles"))))
			return false;
		*(is_share ? &column->event : &column->per) = base;
	}
	column->source = &fn_operations;
	if (fn_column__has_values(table, &fn_operations, column))
		return true;
	/* Not all inputs may have operations. */
	if (table->is_partial || strcmp(column->event, "cycles") || column->per != base ||
	    !fn_column__has_values(table, &fn_samples, &samples))
		return false;
	column->source = &fn_samples;
	column->per_source = &fn_operations;
	return true;
}

/* Makes rates per operation those per instruction, as far as these were counted beside them. */
static void convert(const struct fn_table *table, struct fn_column *column)
{
	const double factor = fn_operations__per_instruction(table);
	char *title = (char *)column->title, *at = strstr(column->meaning, "instruction");

	if (strcmp(column->per, FN_OPERATIONS) && strcmp(column->per, FN_CHOSEN))
		return;
	if (!strcmp(column->per, FN_OPERATIONS) && !isnan(factor)) {
		column->scale *= factor;
		return;
	}
	/* CPO, or per KO */
	title[strlen(title) - 1] = 'O';
	if (column->unit)
		column->unit = "1/KO";
	if (at) {
		const char *rest = at + strlen("instruction");

		at = stpcpy(at, "operation");
		memmove(at, rest, strlen(rest) + 1);
	}
}

/* Finds the most exact source that has what a column needs. */
static bool find_source(const struct fn_table *table, struct fn_column *column)
{
	for (int i = 0; fn_sources[i]; i++) {
		struct fn_column own = *column;

		if (!fn_table__has_source(table, fn_sources[i], NULL))
			continue;
		own.source = fn_sources[i];
		if (own.source == &fn_operations ? suit_operations(table, &own) :
						   fn_column__has_values(table, own.source, &own)) {
			*column = own;
			return true;
		}
	}
	return false;
}

/* Says of which cache the column of an event is. */
static void name_cache(const struct fn_table *table, struct fn_column *column)
{
	/* Operations tell of the first cache, as on Arm. */
	const enum fn_vendor vendor = column->source == &fn_operations ?
				      FN_VENDOR_ARM : fn_table__vendor(table);

	for (size_t i = 0; strstarts(column->event, "cache-") && i < ARRAY_SIZE(caches); i++) {
		if (caches[i].vendor == vendor && !strcmp(caches[i].column, column->title)) {
			column->title = caches[i].title;
			column->meaning = caches[i].meaning;
			break;
		}
	}
}

/* Adds a column if a source has what it needs. */
static int add_recorded(struct fn_columns *columns, struct fn_column *column)
{
	int err;

	if (!find_source(columns->table, column))
		return 0;
	name_cache(columns->table, column);
	/* On Arm, cache-misses are L1-dcache-load-misses. */
	if (fn_columns__find(columns, column->title) >= 0)
		return 0;
	err = add_column(columns, column);
	if (!err)
		convert(columns->table, &columns->columns[columns->nr - 1]);
	return err;
}

static bool is_known_event(const struct fn_columns *columns, const char *event, bool is_share)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		const struct fn_column *column = &columns->columns[i];

		/* Operations stand for instructions. */
		if (column->event && column->source == &fn_operations &&
		    !strcmp(column->event, FN_OPERATIONS) && !strcmp(event, "instructions"))
			return true;
		if (column->event && !strcmp(column->event, event) &&
		    (!is_share || fn_column__is_share(column)))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		/* Unless another event has its title */
		if (!strcmp(known[i].event, event) &&
		    (!is_share || !strcmp(known[i].per, FN_TOTAL)) &&
		    fn_columns__find(columns, known[i].title) < 0)
			return true;
	}
	return false;
}

char *fn_columns__new_title(const struct fn_columns *columns, const char *prefix,
			    const char *format, const char *name)
{
	char *title, *longer;

	if (asprintf(&title, format, name) < 0)
		return NULL;
	while (title && fn_columns__find(columns, title) >= 0) {
		if (asprintf(&longer, "%s:%s", prefix, title) < 0)
			longer = NULL;
		free(title);
		title = longer;
	}
	return title;
}

static struct fn_value count_value(const struct fn_column *column, const struct fn_table *table,
				   const struct fn_row *row)
{
	struct fn_value value = fn_undefined;

	value.value = fn_row__events(table, row, column->event).value;
	return value;
}

/* Whether a list of titles has one, which may have commas. */
static bool is_in(const char *titles, const char *title)
{
	const size_t length = strlen(title);

	for (const char *at = titles; at && (at = strcasestr(at, title)); at++) {
		if ((at == titles || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

/* A column of an event: its share, its rate, or its number. */
static int add_event_column(struct fn_columns *columns, const char *event, const char *per)
{
	const bool is_share = per && !strcmp(per, FN_TOTAL);
	const char *title_format = is_share ? "%%%s" : per ? "%s/KI" : "%s";
	const char *format = is_share ? "share of %s" :
			     per ? "%s per 1000 instructions" : "number of %s";
	struct fn_column column = {
		.event = event, .per = per, .scale = is_share ? FN_PERCENT : 1000,
		.digits = is_share ? 1 : 3, .unit = is_share ? "%" : "1/KI",
	};
	char *printable = function_text__printable(event), *title = NULL, *meaning = NULL;
	int err = printable ? 0 : -ENOMEM;

	/* The user names the events whose numbers are columns. */
	if (!err && !per && ((!is_in(columns->fields, printable) &&
			      !is_in(columns->sort, printable)) ||
			     fn_columns__find(columns, printable) >= 0))
		goto out;
	if (columns->nr >= MOST_COLUMNS)
		err = -EOVERFLOW;
	if (!err)
		title = fn_columns__new_title(columns, "event", title_format, printable);
	if (!err && (!title || asprintf(&meaning, format, printable) < 0))
		err = -ENOMEM;
	column.title = title;
	column.meaning = meaning;
	if (!err && per) {
		err = add_recorded(columns, &column);
	} else if (!err) {
		column.value = count_value;
		column.is_count = true;
		column.digits = 0;
		column.unit = NULL;
		err = add_column(columns, &column);
	}
out:
	free(printable);
	free(title);
	free(meaning);
	return err;
}

/*
 * Adds columns of all events that have none: shares only of events that sample themselves; without
 * @per, numbers.
 */
static int add_event_columns(struct fn_columns *columns, const char *per)
{
	const bool is_share = per && !strcmp(per, FN_TOTAL);
	const struct fn_table *table = columns->table;
	int err = 0;

	fn_table__for_each_set(table, set) {
		for (unsigned int j = 0; !err && !set->is_hidden && j < set->nr_events; j++) {
			const char *event = set->events[j].name;

			if (!per || (!is_known_event(columns, event, is_share) &&
				     set->source != &fn_operations &&
				     (!is_share || set->source == &fn_samples)))
				err = add_event_column(columns, event, per);
		}
	}
	return err;
}

static int add_columns(struct fn_columns *columns)
{
	static const struct fn_column number = {
		.title = "#", .meaning = "observations behind the least certain value",
		.scale = 1, .is_count = true,
	}, discarded = {
		.title = "DIS", .meaning = "windows that began elsewhere", .scale = FN_PERCENT,
		.digits = 1, .unit = "%", .source = &fn_windows, .value = fn_windows__discarded,
		.is_count = true,
	};
	bool has_windows = false;
	int err = add_column(columns, &number);

	for (size_t i = 0; !err && i < ARRAY_SIZE(known); i++) {
		struct fn_column column = {
			.title = known[i].title, .meaning = known[i].meaning,
			.event = known[i].event, .per = known[i].per, .scale = known[i].scale,
			.digits = known[i].digits,
			.unit = known[i].scale == 100 ? "%" :
				known[i].scale == 1000 ? "1/KI" : NULL,
		};

		err = add_recorded(columns, &column);
	}
	err = err ?: add_event_columns(columns, "instructions");
	err = err ?: add_event_columns(columns, FN_TOTAL);
	for (unsigned int i = 0; i < columns->nr; i++)
		has_windows |= columns->columns[i].source == &fn_windows;
	if (!err && has_windows)
		err = add_column(columns, &discarded);
	return err ?: add_event_columns(columns, NULL);
}

/* Sets #: the observations behind the least certain value of each row that is printed. */
static void set_numbers(struct fn_columns *columns)
{
	bool is_chosen = false;

	for (unsigned int j = 1; j < columns->nr; j++)
		is_chosen |= !columns->columns[j].is_count &&
			     is_in(columns->fields, columns->columns[j].title);
	fn_table__for_each_row(columns->table, row) {
		struct fn_value *number = fn_columns__value(columns, row, 0);
		double widest = -1;

		*number = fn_undefined;
		number->value = 0;
		for (unsigned int j = 1; j < columns->nr; j++) {
			const struct fn_value *value = fn_columns__value(columns, row, j);
			const struct fn_column *column = &columns->columns[j];
			double width;

			/* A share of nothing has no observations here. */
			if (column->is_count || column->value || !fn_value__is_defined(value) ||
			    (fn_column__is_share(column) && !value->value) ||
			    (is_chosen && !is_in(columns->fields, column->title)))
				continue;
			width = value->value ?
				fn_value__half_width(value) / fabs(value->value) : INFINITY;
			if (!(width <= widest)) {
				widest = width;
				number->value = value->samples;
			}
		}
		if (widest < 0)
			number->value = fn_table__number(columns->table, row, NULL);
	}
}

int fn_columns__init(struct fn_columns *columns, const struct fn_table *table, const char *fields,
		     const char *sort)
{
	int err;

	*columns = (struct fn_columns){ .table = table, .fields = fields, .sort = sort };
	err = add_columns(columns);
	err = err ?: fn_columns__set_values(columns, 1);
	if (!err)
		set_numbers(columns);
	return err;
}

void fn_columns__exit(struct fn_columns *columns)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		fn_metric__delete(columns->columns[i].metric);
		free_column(&columns->columns[i]);
	}
	free(columns->columns);
	memset(columns, 0, sizeof(*columns));
}

int fn_columns__add(struct fn_columns *columns, const struct fn_column *column)
{
	return add_column(columns, column) ?: fn_columns__set_values(columns, columns->nr - 1);
}

int fn_columns__find(const struct fn_columns *columns, const char *title)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		if (!strcasecmp(columns->columns[i].title, title))
			return i;
	}
	return -1;
}

int fn_columns__default_sort(const struct fn_columns *columns)
{
	static const char *const shares[] = { "%CY", "%CLK", "%TCLK", "%I" };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		int column = fn_columns__find(columns, shares[i]);

		if (column >= 0)
			return column;
	}
	for (unsigned int i = 0; i < columns->nr; i++) {
		if (fn_column__is_share(&columns->columns[i]))
			return i;
	}
	return 0;
}
