// SPDX-License-Identifier: GPL-2.0
/* Prints tables as text and as values with separators. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <subcmd/pager.h>

#include "../color.h"
#include "../debug.h"
#include "../strbuf.h"
#include "../time-utils.h"
#include "functions.h"

#define LABEL_WIDTH	60
#define LEAST_LABEL	20
#define MOST_TIMES	1000

#define INTERVAL_NOTE	\
	"# 95 % intervals are about this run alone: compare several runs with --before and --after\n"

/* Returns the n-th character. */
static char *character(char *text, int n)
{
	while (*text && (n || (*text & 0xc0) == 0x80)) {
		n -= (*text & 0xc0) != 0x80;
		text++;
	}
	return text;
}

/* Cuts the middle out of a long text. */
static void shorten(char *text, int most)
{
	const int half = (most - 3) / 2, width = function_text__width(text);
	char *end;

	if (width <= most)
		return;
	end = character(text, width - half);
	text = character(text, half);
	memcpy(text, "...", 3);
	memmove(text + 3, end, strlen(end) + 1);
}

/*
 * Returns the name to print, with the DSO if several have the symbol: its short name if that is
 * unique, else the path.
 */
static char *label_row(const struct fn_row *row, unsigned int nr_dsos, bool has_own_short_name,
		       int most)
{
	const bool has_symbol = *row->symbol;
	const char *dso = row->dso;
	char address[32] = "", *label, *printable;
	bool has_dso;

	if (row->has_address)
		scnprintf(address, sizeof(address), "%s0x%llx", has_symbol ? " " : "",
			  (unsigned long long)row->address);
	if (!has_symbol || has_own_short_name)
		dso = function_text__base_name(dso);
	/* dso__synthesize_symbol() names a function without a name by its range. */
	has_dso = !has_symbol || nr_dsos > 1 || (*dso && strstarts(row->symbol, "0x"));
	if (asprintf(&label, has_dso ? "%s%s [%s]" : "%s%s", row->symbol, address,
		     *dso ? dso : "unknown") < 0)
		return NULL;
	printable = function_text__printable(label);
	free(label);
	if (printable)
		shorten(printable, most);
	return printable;
}

static int compare_short_names(const void *one, const void *other)
{
	return strcmp(function_text__base_name(*(const char *const *)one),
		      function_text__base_name(*(const char *const *)other));
}

/* Returns true if the short name is unique among the sorted paths. */
static bool is_short_unique(const char *const *paths, unsigned int nr, const char *path)
{
	const char *const *found = bsearch(&path, paths, nr, sizeof(*paths), compare_short_names);

	return (found == paths || compare_short_names(found - 1, found)) &&
	       (found == paths + nr - 1 || compare_short_names(found, found + 1));
}

/* Sets the labels of the rows of one symbol: the table is sorted by symbol, then by DSO. */
static int label_symbol(const struct fn_table *table, size_t from, size_t to, int most)
{
	const char **paths = calloc(to - from, sizeof(*paths));
	unsigned int nr = 0;
	int err = paths ? 0 : -ENOMEM;

	for (size_t i = from; !err && i < to; i++) {
		if (!nr || strcmp(paths[nr - 1], table->rows[i]->dso))
			paths[nr++] = table->rows[i]->dso;
	}
	if (!err)
		qsort(paths, nr, sizeof(*paths), compare_short_names);
	for (size_t i = from; !err && i < to; i++) {
		struct fn_row *row = table->rows[i];

		free(row->label);
		row->label = label_row(row, nr, is_short_unique(paths, nr, row->dso), most);
		err = row->label ? 0 : -ENOMEM;
	}
	free(paths);
	return err;
}

int fn_table__set_labels(const struct fn_table *table, int most)
{
	int err = 0;

	for (size_t i = 0, next; !err && i < table->nr_rows; i = next) {
		next = i + 1;
		while (next < table->nr_rows &&
		       !strcmp(table->rows[i]->symbol, table->rows[next]->symbol))
			next++;
		err = label_symbol(table, i, next, most ?: LABEL_WIDTH);
	}
	return err;
}

/*
 * Formats a number with the digits that its column has. From 10^16 on, where a double has no more
 * digits, a number has an exponent.
 */
const char *fn_number(const struct fn_column *column, double value, bool sign,
		      char buf[FN_CELL_SIZE])
{
	bool has_exponent = fabs(value) >= 1e16 && !column->is_count;

	/* A cell has room for marks. */
	scnprintf(buf, FN_CELL_SIZE - 2, has_exponent ? "%s%.*e" : "%s%.*f",
		  sign && !signbit(value) ? "+" : "", column->digits, value);
	return buf;
}

const char *fn_view__cell(const struct fn_column *column, const struct fn_value *value,
			  char buf[FN_CELL_SIZE])
{
	if (!fn_value__is_defined(value))
		return memcpy(buf, "-", sizeof("-"));
	*buf = '~';
	fn_number(column, value->value, /*sign=*/false, buf + (value->mark == FN_ROUGH));
	return value->mark == FN_WEAK ? strcat(buf, "?") : buf;
}

/* Formats as few digits as give the same number when they are read: mostly the first try. */
const char *fn_shortest(double value, char buf[FN_CELL_SIZE])
{
	if (value == rint(value) && fabs(value) < 1e15) {
		scnprintf(buf, FN_CELL_SIZE, "%.0f", value);
		return buf;
	}
	scnprintf(buf, FN_CELL_SIZE, "%.15g", value);
	if (strtod(buf, NULL) != value)
		scnprintf(buf, FN_CELL_SIZE, "%.17g", value);
	return buf;
}

void fn_text__exit(struct fn_text *text)
{
	for (size_t i = 0; i < text->nr; i++)
		free(text->cells[i].text);
	free(text->cells);
	free(text->widths);
	free(text->marked);
}

static bool has_mark(const char *cell)
{
	const size_t length = strlen(cell);

	return length > 1 && (cell[length - 1] == '?' || cell[length - 1] == '*');
}

void fn_text__cell(struct fn_text *text, enum fn_color color, const char *fmt, ...)
{
	struct fn_cell *cells = text->cells, cell = { .color = color };
	va_list values;

	if (text->nr == text->allocated) {
		const size_t most = 2 * text->allocated + 64;

		cells = realloc(text->cells, most * sizeof(*cells));
		if (cells) {
			text->cells = cells;
			text->allocated = most;
		}
	}
	va_start(values, fmt);
	if (!cells || vasprintf(&cell.text, fmt, values) < 0)
		text->has_failed = true;
	else
		cells[text->nr++] = cell;
	va_end(values);
}

void fn_text__number(struct fn_text *text, double number)
{
	char buf[FN_CELL_SIZE];

	fn_text__cell(text, FN_PLAIN, "%s", isnan(number) ? "-" : fn_shortest(number, buf));
}

void fn_text__interval(struct fn_text *text, const struct fn_column *column,
		       const struct fn_value *value, bool sign)
{
	char low[FN_CELL_SIZE], high[FN_CELL_SIZE];

	fn_text__cell(text, FN_PLAIN, fn_value__has_interval(value) ? "%s..%s" : "-",
		      fn_number(column, value->low, sign, low),
		      fn_number(column, value->high, sign, high));
}

void fn_text__names(struct fn_text *text, const struct fn_row *row)
{
	fn_text__cell(text, FN_PLAIN, row->has_address ? "%s%s0x%llx" : "%s", row->symbol,
		      *row->symbol ? " " : "", (unsigned long long)row->address);
	fn_text__cell(text, FN_PLAIN, "%s", row->dso);
}

int fn_text__lay_out(struct fn_text *text)
{
	text->widths = calloc(text->nr_columns, sizeof(*text->widths));
	text->marked = calloc(text->nr_columns, sizeof(*text->marked));
	if (text->has_failed || !text->widths || !text->marked)
		return -ENOMEM;
	for (size_t i = 0; i < text->nr; i++) {
		const unsigned int column = i % text->nr_columns;
		const bool is_marked = column && has_mark(text->cells[i].text);
		const int width = function_text__width(text->cells[i].text) - is_marked;

		text->marked[column] |= is_marked;
		text->widths[column] = max(text->widths[column], width);
	}
	return 0;
}

/* Returns how many columns fit on the screen, and cuts names to the room that they leave. */
static unsigned int fit(struct fn_text *text, int screen)
{
	const int least = min(text->widths[0], LEAST_LABEL);
	unsigned int nr = 1;

	if (!screen)
		return text->nr_columns;
	for (screen -= least; nr < text->nr_columns; nr++) {
		const int width = 1 + text->widths[nr] + text->marked[nr];

		if (width > screen)
			break;
		screen -= width;
	}
	text->widths[0] = min(text->widths[0], least + max(screen, 0));
	for (size_t i = 0; i < text->nr; i += text->nr_columns)
		shorten(text->cells[i].text, text->widths[0]);
	return nr;
}

void fn_text__align(const struct fn_text *text, unsigned int column, const struct fn_cell *cell,
		    int *before, int *after)
{
	const int pad = text->widths[column] - function_text__width(cell->text);
	const bool is_marked = column && has_mark(cell->text);

	*before = column ? 1 + pad + is_marked : 0;
	*after = column ? text->marked[column] && !is_marked : pad;
}

int fn_text__print(struct fn_text *text, int width, FILE *fp)
{
	static const char *const colors[] = {
		[FN_PLAIN] = PERF_COLOR_NORMAL, [FN_GREY] = "\033[90m",
		[FN_GREEN] = PERF_COLOR_GREEN, [FN_RED] = PERF_COLOR_RED,
		[FN_BOLD] = PERF_COLOR_BOLD,
	};
	unsigned int nr;

	if (fn_text__lay_out(text))
		return -ENOMEM;
	nr = fit(text, width);
	for (size_t i = 0; i < text->nr; i++) {
		const unsigned int column = i % text->nr_columns;
		const struct fn_cell *cell = &text->cells[i];
		const bool is_last = column + 1 == nr;
		int before, after;

		if (column >= nr)
			continue;
		fn_text__align(text, column, cell, &before, &after);
		if (*cell->text || !is_last)
			color_fprintf(fp, colors[cell->color], "%*s%s", before, "", cell->text);
		if (is_last)
			fputc('\n', fp);
		else
			fprintf(fp, "%*s", after, "");
	}
	return 0;
}

static enum fn_color color_of(const struct fn_column *column, const struct fn_value *value)
{
	if (!fn_value__is_defined(value))
		return FN_PLAIN;
	if (value->mark == FN_WEAK)
		return FN_GREY;
	if (!fn_column__is_share(column) || value->value <= MIN_GREEN)
		return FN_PLAIN;
	return value->value >= MIN_RED ? FN_RED : FN_GREEN;
}

static bool has_interval(const struct fn_view *view, unsigned int field)
{
	return view->with_ci && !view->columns->columns[view->fields[field]].is_count;
}

/* On a screen, the title of the column that sorts has a mark. */
static void add_title(const struct fn_view *view, struct fn_text *text, int column)
{
	fn_text__cell(text, FN_PLAIN, "%s%s",
		      column < 0 ? view->table->by : view->columns->columns[column].title,
		      view->width && column == view->sort ? "*" : "");
}

int fn_view__add_text(const struct fn_view *view, struct fn_text *text)
{
	char buf[FN_CELL_SIZE];

	if (fn_table__set_labels(view->table, 0))
		return -ENOMEM;
	add_title(view, text, -1);
	for (unsigned int i = 0; i < view->nr_fields; i++) {
		add_title(view, text, view->fields[i]);
		if (has_interval(view, i))
			fn_text__cell(text, FN_PLAIN, "95 %%");
	}
	text->nr_columns = text->nr;
	for (size_t r = 0; r < view->nr_rows; r++) {
		fn_text__cell(text, FN_PLAIN, "%s", view->rows[r]->label);
		for (unsigned int i = 0; i < view->nr_fields; i++) {
			const unsigned int c = view->fields[i];
			const struct fn_column *column = &view->columns->columns[c];
			const struct fn_value *value = fn_columns__value(view->columns,
									 view->rows[r], c);

			fn_text__cell(text, color_of(column, value), "%s",
				      fn_view__cell(column, value, buf));
			if (has_interval(view, i))
				fn_text__interval(text, column, value, /*sign=*/false);
		}
	}
	return 0;
}

/* Says where values come from. */
static void print_sources(const struct fn_view *view, FILE *fp)
{
	const char *begin = "# source: ";
	bool is_recorded = false;

	fn_table__for_each_set(view->table, set)
		is_recorded |= set->source == &fn_samples && set->is_recorded;
	for (int s = 0; fn_sources[s]; s++) {
		struct strbuf titles = STRBUF_INIT;
		bool is_only = true;

		for (unsigned int i = 0; i < view->nr_fields; i++) {
			const struct fn_column *column = &view->columns->columns[view->fields[i]];

			is_only &= !column->source ||
				   (column->source == fn_sources[s] && !column->per_source);
			if (column->source == fn_sources[s])
				strbuf_addf(&titles, "%s%s%s", titles.len ? ", " : ": ",
					    column->title,
					    column->per_source ? " (over operations)" : "");
		}
		if (titles.len) {
			fprintf(fp, "%s%s%s%s", begin, fn_sources[s]->title,
				is_only ? "" : titles.buf,
				fn_sources[s] == &fn_samples && is_recorded ?
				", each in the function of the last branch record" : "");
			begin = "; ";
		}
		strbuf_release(&titles);
	}
	if (*begin == ';')
		fputc('\n', fp);
}

/* Says which cycles before a sample count. Recordings that are added up may differ. */
static void print_horizons(const struct fn_view *view, FILE *fp)
{
	const char *begin = "# CPI of branch records: from the ";

	fn_table__for_each_set(view->table, set) {
		for (unsigned int j = 0; j < set->nr_groups; j++) {
			if (set->source != &fn_branches || !set->groups[j].window)
				continue;
			fprintf(fp, "%s%llu cycles that end %u before the overflow", begin,
				(unsigned long long)set->groups[j].window, set->groups[j].burst);
			begin = ", or the ";
		}
	}
	if (*begin == ',')
		fputs("; nearly all samples have them\n", fp);
}

/* Says how long to record for +-10 % of the first rate and the first share of the first row. */
static void print_length(const struct fn_view *view, FILE *fp)
{
	double times = 0;
	bool has_kind[2] = {};

	for (unsigned int i = 0; view->nr_rows && i < view->nr_fields; i++) {
		const struct fn_column *column = &view->columns->columns[view->fields[i]];
		const struct fn_value *value = fn_columns__value(view->columns, view->rows[0],
								 view->fields[i]);
		bool *const has = &has_kind[fn_column__is_share(column)];

		/* Others may be of rare events, which hardly matter. */
		if (column->is_count || column->value || *has)
			continue;
		*has = true;
		if (fn_value__has_interval(value) && value->value)
			times = fmax(times, pow(fn_value__half_width(value) /
						(0.1 * value->value), 2));
	}
	if (times <= 1.05)
		return;
	fprintf(fp, "# for +-10 %% in the first row, record %s%.*f times as long\n",
		times > MOST_TIMES ? "more than " : "", times < 10, fmin(times, MOST_TIMES));
}

static int print_text(const struct fn_view *view, FILE *fp)
{
	struct fn_text text = {};
	int err = fn_view__add_text(view, &text);

	if (!err && view->time)
		fprintf(fp, "# --time %s\n", view->time);
	if (!err && view->with_ci)
		fputs(INTERVAL_NOTE, fp);
	err = err ?: fn_text__print(&text, view->width, fp);
	if (!err) {
		if (view->nr_rows)
			print_sources(view, fp);
		print_horizons(view, fp);
		print_length(view, fp);
	}
	fn_text__exit(&text);
	return err;
}

static void print_quoted(const char *text, FILE *fp)
{
	fputc('"', fp);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', fp);
		fputc(*text, fp);
	}
	fputc('"', fp);
}

int fn_text__print_csv(const struct fn_text *text, size_t first, const char *separator, FILE *fp)
{
	for (size_t i = first; i < text->nr && !text->has_failed; i++) {
		char *printable = function_text__printable(text->cells[i].text);

		if (!printable)
			return -ENOMEM;
		if (strstr(printable, separator) || strpbrk(printable, "\"\r\n"))
			print_quoted(printable, fp);
		else
			fputs(printable, fp);
		fputs((i + 1) % text->nr_columns ? separator : "\n", fp);
		free(printable);
	}
	return text->has_failed ? -ENOMEM : 0;
}

static void add_csv_titles(const struct fn_view *view, struct fn_text *text)
{
	if (view->time)
		fn_text__cell(text, FN_PLAIN, "time");
	fn_text__cell(text, FN_PLAIN, "%s", view->table->by);
	fn_text__cell(text, FN_PLAIN, fn_by__is(view->table->by, FN_BY_DSO) ? "path" : "dso");
	for (unsigned int i = 0; i < view->nr_fields; i++) {
		const char *title = view->columns->columns[view->fields[i]].title;

		fn_text__cell(text, FN_PLAIN, "%s", title);
		if (!has_interval(view, i))
			continue;
		fn_text__cell(text, FN_PLAIN, "%s low", title);
		fn_text__cell(text, FN_PLAIN, "%s high", title);
	}
	fn_text__cell(text, FN_PLAIN, "weak");
	fn_text__cell(text, FN_PLAIN, "rough");
	text->nr_columns = text->nr;
}

/* Adds the names of the values with a mark, with semicolons between them. */
static void add_marks(const struct fn_view *view, struct fn_text *text, const struct fn_row *row,
		      enum fn_mark mark)
{
	struct strbuf names = STRBUF_INIT;

	for (unsigned int i = 0; i < view->nr_fields; i++) {
		if (fn_columns__value(view->columns, row, view->fields[i])->mark == mark)
			strbuf_addf(&names, "%s%s", names.len ? ";" : "",
				    view->columns->columns[view->fields[i]].title);
	}
	fn_text__cell(text, FN_PLAIN, "%s", names.buf);
	strbuf_release(&names);
}

/* Returns true if a text has the titles of another one. */
static bool is_continued(const struct fn_text *text, const struct fn_text *before)
{
	for (unsigned int i = 0; i < text->nr_columns; i++) {
		if (before->nr_columns != text->nr_columns ||
		    strcmp(text->cells[i].text, before->cells[i].text))
			return false;
	}
	return true;
}

static int print_csv(const struct fn_view *view, struct fn_report *report, FILE *fp)
{
	struct fn_text text = {};
	int err;

	add_csv_titles(view, &text);
	for (size_t r = 0; r < view->nr_rows; r++) {
		const struct fn_row *row = view->rows[r];

		if (view->time)
			fn_text__cell(&text, FN_PLAIN, "%.*s", (int)strcspn(view->time, ","),
				      view->time);
		fn_text__names(&text, row);
		for (unsigned int i = 0; i < view->nr_fields; i++) {
			const struct fn_value *value = fn_columns__value(view->columns, row,
									 view->fields[i]);

			fn_text__number(&text, value->value);
			if (!has_interval(view, i))
				continue;
			fn_text__number(&text, value->low);
			fn_text__number(&text, value->high);
		}
		add_marks(view, &text, row, FN_WEAK);
		add_marks(view, &text, row, FN_ROUGH);
	}
	err = fn_text__print_csv(&text, is_continued(&text, &report->before) ? text.nr_columns : 0,
				 report->separator, fp);
	fn_text__exit(&report->before);
	report->before = text;
	return err;
}

/* The rows of a table are sorted by name. */
static int compare_rows(const void *one, const void *other, void *data)
{
	const struct fn_row *a = *(const struct fn_row *const *)one;
	const struct fn_row *b = *(const struct fn_row *const *)other;
	const struct fn_view *view = data;

	if (view->sort >= 0) {
		const struct fn_value *x = fn_columns__value(view->columns, a, view->sort);
		const struct fn_value *y = fn_columns__value(view->columns, b, view->sort);
		const bool has_x = fn_value__is_defined(x), has_y = fn_value__is_defined(y);

		if (has_x != has_y)
			return has_x ? -1 : 1;
		if (has_x && x->value != y->value)
			return x->value > y->value ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

/*
 * Rows with a smaller share are left out: of the column that rows are sorted by if nothing else is
 * asked for, or where that has no shares, of the observations.
 */
bool fn_columns__is_small(const struct fn_columns *columns, const struct fn_row *row,
			  double percent)
{
	const int column = fn_columns__default_sort(columns);
	double whole = 100, own = fn_columns__value(columns, row, column)->value;

	if (!fn_column__is_share(&columns->columns[column])) {
		whole = fn_table__number(columns->table, NULL, NULL);
		own = fn_table__number(columns->table, row, NULL);
	}
	return !(100 * own >= percent * whole);
}

void fn_view__sort(struct fn_view *view, int sort)
{
	view->sort = sort;
	qsort_r(view->rows, view->nr_rows, sizeof(*view->rows), compare_rows, view);
}

static int init_rows(struct fn_view *view, int sort, double percent_limit, size_t limit)
{
	view->rows = calloc(view->table->nr_rows ?: 1, sizeof(*view->rows));
	view->nr_rows = 0;
	if (!view->rows)
		return -ENOMEM;
	fn_table__for_each_row(view->table, row) {
		if (!percent_limit || !fn_columns__is_small(view->columns, row, percent_limit))
			view->rows[view->nr_rows++] = row;
	}
	fn_view__sort(view, sort);
	if (limit)
		view->nr_rows = min(view->nr_rows, limit);
	return 0;
}

static void print_no_column(const struct fn_columns *columns, const char *name, int length)
{
	pr_err("perf functions: no column %.*s in this recording, there are: %s", length, name,
	       columns->table->by);
	for (unsigned int i = 0; i < columns->nr; i++)
		pr_err(" %s", columns->columns[i].title);
	pr_err("\n");
}

/* Returns the column at the beginning of a list of titles, -1 if none. A title may have commas. */
static int find_field(const struct fn_columns *columns, const char *names, size_t *length)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		const char *title = columns->columns[i].title;

		*length = strlen(title);
		if (!strncasecmp(names, title, *length) &&
		    (!names[*length] || names[*length] == ','))
			return i;
	}
	return -1;
}

bool fn_fields__is_key(const struct fn_columns *columns, const char *name, size_t length)
{
	const char *by = columns->table->by;

	return (length == 6 && !strncasecmp(name, "symbol", 6)) ||
	       (!strncmp(by, name, length) && !by[length]);
}

static bool has_field(const int *fields, unsigned int nr, int field)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (fields[i] == field)
			return true;
	}
	return false;
}

int *fn_fields__find(const struct fn_columns *columns, const char *names, bool has_metrics,
		     bool may_lack, unsigned int *nr_fields)
{
	int *fields = calloc((names ? strlen(names) : columns->nr) + 2, sizeof(*fields));
	size_t length;

	*nr_fields = 0;
	if (!fields)
		return NULL;
	if (!names && has_metrics)
		fields[(*nr_fields)++] = 0;
	for (unsigned int i = 0; !names && i < columns->nr; i++) {
		if (!has_metrics || columns->columns[i].metric)
			fields[(*nr_fields)++] = i;
	}
	while (names && *names) {
		int field = find_field(columns, names, &length);

		if (field < 0)
			length = strcspn(names, ",");
		/* The key is there anyway. */
		if (field < 0 && !may_lack && !fn_fields__is_key(columns, names, length)) {
			print_no_column(columns, names, length);
			free(fields);
			return NULL;
		}
		/* Take each column once: an object has no two members of one name. */
		if (field >= 0 && !has_field(fields, *nr_fields, field))
			fields[(*nr_fields)++] = field;
		names += length + (names[length] == ',');
	}
	if (!*nr_fields)
		fields[(*nr_fields)++] = 0;
	return fields;
}

int fn_sort__find(const struct fn_columns *columns, const char *name, bool may_lack)
{
	int column;

	if (!name)
		return fn_columns__default_sort(columns);
	if (fn_fields__is_key(columns, name, strlen(name)))
		return -1;
	column = fn_columns__find(columns, name);
	if (column >= 0)
		return column;
	if (may_lack)
		return fn_columns__default_sort(columns);
	print_no_column(columns, name, strlen(name));
	return -EINVAL;
}

int fn_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fn_err("cannot write the table: %s: send the output elsewhere", strerror(errno));
	return -EIO;
}

/*
 * Reports
 */

void fn_report__exit(struct fn_report *report)
{
	free(report->inputs);
	free(report->fail_on);
	fn_text__exit(&report->before);
	free(report->messages);
	perf_cpu_map__put(report->options.cpus);
}

void fn_report__hold_messages(struct fn_report *report)
{
	report->held = open_memstream(&report->messages, &report->messages_size);
	if (report->held)
		debug_set_file(report->held);
}

const char *fn_report__release_messages(struct fn_report *report)
{
	if (!report->held)
		return "";
	debug_set_file(stderr);
	fclose(report->held);
	report->held = NULL;
	return report->messages ?: "";
}

int fn_explain(int err)
{
	if (err == -EOVERFLOW)
		fn_err("more events than a table can have columns: record fewer");
	else if (err == -E2BIG)
		fn_err("too many rows for their columns (--by dso has fewer): report fewer files at once");
	else if (err == -ENOMEM)
		fn_err("not enough memory: report fewer files at once");
	return err;
}

int fn_report__init_columns(const struct fn_report *report, const struct fn_table *table,
			    struct fn_columns *columns, bool is_silent)
{
	int err = fn_columns__init(columns, table, report->fields, report->sort);

	if (!err && report->metrics)
		err = fn_metrics__add(columns, report->metrics, is_silent);
	return err;
}

static int print_view(struct fn_report *report, struct fn_view *view)
{
	FILE *fp = report->fp ?: stdout;

	if (report->json)
		return fn_view__print_json(view, fp);
	if (report->separator)
		return print_csv(view, report, fp);
	if (report->nr_tables && !view->width)
		fputc('\n', fp);
	return print_text(view, fp);
}

int fn_report__print(struct fn_report *report, const struct fn_table *table)
{
	/* A part may have no sample of some groups, and then lacks their columns. */
	const bool is_part = report->time || report->fp;
	const bool may_lack = is_part && report->nr_tables;
	struct fn_columns columns;
	struct fn_view view = {
		.table = table, .columns = &columns, .with_ci = report->with_ci,
		.time = report->time, .width = report->width,
	};
	/* The same warnings were printed for the previous table. */
	int err = fn_report__init_columns(report, table, &columns, report->nr_tables), sort;
	unsigned int limit = report->limit;
	int *fields = NULL;

	if (err)
		goto out;
	err = -EINVAL;
	sort = fn_sort__find(&columns, report->sort, may_lack);
	fields = sort < -1 ? NULL : fn_fields__find(&columns, report->fields, report->metrics,
						    may_lack, &view.nr_fields);
	if (!fields)
		goto out;
	view.fields = fields;
	if (report->nr_lines)
		limit = limit ? min(limit, report->nr_lines) : report->nr_lines;
	err = init_rows(&view, sort, report->percent_limit, limit);
	if (err)
		goto out;
	if (!view.nr_rows && table->nr_rows && !is_part) {
		fn_err("no row has a share of %g %%: take a smaller --percent-limit",
		       report->percent_limit);
		err = -EINVAL;
		goto out;
	}
	if (!is_part) {
		/* With --interval, the notes about all are printed at the end. */
		fn_notes__print("", &columns, &report->options);
		fputs(fn_report__release_messages(report), stderr);
		if (!report->browse)
			setup_pager();
	}
	/* Without rows, there is nothing to browse. */
	err = report->browse && view.nr_rows ? report->browse(&view, report->messages) :
					       print_view(report, &view);
	report->nr_tables++;
	if (!err && !report->fp)
		err = fn_flush();
out:
	free(view.rows);
	free(fields);
	fn_columns__exit(&columns);
	return fn_explain(err);
}

int fn_report__print_span(void *data, struct fn_table *table, u64 begin, u64 end)
{
	struct fn_report *report = data;
	sighandler_t before = SIG_IGN;
	char time[64], *at = time;
	int err;

	at += timestamp__scnprintf_nsec(begin, time, sizeof(time));
	*at++ = ',';
	timestamp__scnprintf_nsec(end, at, time + sizeof(time) - at);
	report->time = time;
	/* perf ignores SIGPIPE for addr2line, but `| head` must end the command. */
	if (!report->fp)
		before = signal(SIGPIPE, SIG_DFL);
	err = fn_report__print(report, table);
	if (!report->fp)
		signal(SIGPIPE, before);
	report->time = NULL;
	return err;
}
