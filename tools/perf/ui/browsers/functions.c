// SPDX-License-Identifier: GPL-2.0
/* A browser for a table of functions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ttydefaults.h>
#include <linux/kernel.h>

#include "../../util/functions/functions.h"
#include "../browser.h"
#include "../keysyms.h"
#include "../util.h"

#define INTERVAL_TITLE	"95 %"
#define INTERVAL_NOTE	"95 % intervals are about this run alone; '?' shows the keys"

/* A column on the screen: the values of a field, or their intervals. */
struct shown {
	unsigned int column;
	bool is_interval;
	int width;		/* without the mark */
};

struct functions_browser {
	struct ui_browser b;
	struct fn_view *view;
	struct shown *columns;
	int label_width;
	const struct fn_row **rows;	/* those with the filter in their labels */
	char filter[64];
	const char *notes;
};

static const char help[] =
	"h/?/F1        Show this window\n"
	"UP/DOWN/PGUP\n"
	"PGDN/SPACE\n"
	"LEFT/RIGHT    Navigate\n"
	"n             Show again what was said about the data\n"
	"s             Sort by another column: the title of that has a *\n"
	"/             Show rows with this text in their names only\n"
	"q/ESC/CTRL+C  Exit browser";

static struct functions_browser *to_functions_browser(struct ui_browser *b)
{
	return container_of(b, struct functions_browser, b);
}

static const struct fn_value *value_of(const struct functions_browser *browser,
				       const struct fn_row *row, const struct shown *shown)
{
	return fn_columns__value(browser->view->columns, row, shown->column);
}

static const char *cell_of(const struct functions_browser *browser, const struct fn_row *row,
			   const struct shown *shown, char buf[2 * FN_CELL_SIZE])
{
	const struct fn_column *column = &browser->view->columns->columns[shown->column];
	const struct fn_value *value = value_of(browser, row, shown);

	return shown->is_interval ? fn_view__interval(column, value, buf) :
				    fn_view__cell(column, value, buf);
}

static const char *title_of(const struct functions_browser *browser, const struct shown *shown)
{
	return shown->is_interval ? INTERVAL_TITLE :
				    browser->view->columns->columns[shown->column].title;
}

/* Numbers stand below each other, and a mark behind them. */
static int width_of(const char *cell)
{
	const int width = function_text__width(cell);

	return width && cell[strlen(cell) - 1] == '?' ? width - 1 : width;
}

static void write_cell(struct ui_browser *b, const struct shown *shown, const char *cell,
		       const char *mark)
{
	const int width = width_of(cell);

	ui_browser__printf(b, "%*s%s%s", 1 + shown->width - width, "", cell,
			   width < function_text__width(cell) ? "" : mark);
}

static void write_label(struct functions_browser *browser, const char *label, const char *mark)
{
	const int width = function_text__width(label) + strlen(mark);

	ui_browser__printf(&browser->b, "%s%s%*s", label, mark,
			   max(browser->label_width - width, 0), "");
}

static void fill_line(struct functions_browser *browser)
{
	int used = browser->label_width;

	for (unsigned int i = browser->b.horiz_scroll; i < browser->b.columns; i++)
		used += browser->columns[i].width + 2;
	if (used < browser->b.width)
		ui_browser__write_nstring(&browser->b, "", browser->b.width - used);
}

static void write_titles(struct functions_browser *browser)
{
	const struct fn_view *view = browser->view;
	struct ui_browser *b = &browser->b;

	ui_browser__gotorc_title(b, 0, 0);
	ui_browser__set_color(b, HE_COLORSET_ROOT);
	write_label(browser, view->table->by, view->sort < 0 ? "*" : "");
	for (unsigned int i = b->horiz_scroll; i < b->columns; i++) {
		const struct shown *shown = &browser->columns[i];
		bool is_sorted = !shown->is_interval && (int)shown->column == view->sort;

		write_cell(b, shown, title_of(browser, shown), is_sorted ? "*" : " ");
	}
	fill_line(browser);
}

static unsigned int functions_browser__refresh(struct ui_browser *b)
{
	write_titles(to_functions_browser(b));
	return ui_browser__argv_refresh(b);
}

static void set_color(struct functions_browser *browser, const struct fn_row *row,
		      const struct shown *shown, bool is_current)
{
	const struct fn_value *value = value_of(browser, row, shown);
	struct ui_browser *b = &browser->b;

	if (value->mark == FN_WEAK && !shown->is_interval && !is_current)
		ui_browser__set_color(b, HE_COLORSET_WEAK);
	else if (!shown->is_interval && fn_value__is_defined(value) &&
		 fn_column__is_share(&browser->view->columns->columns[shown->column]))
		ui_browser__set_percent_color(b, value->value, is_current);
	else
		ui_browser__set_color(b, is_current ? HE_COLORSET_SELECTED : HE_COLORSET_NORMAL);
}

static void functions_browser__write(struct ui_browser *b, void *entry, int line)
{
	struct functions_browser *browser = to_functions_browser(b);
	const struct fn_row *row = *(const struct fn_row **)entry;
	const bool is_current = ui_browser__is_current_entry(b, line);
	const int color = is_current ? HE_COLORSET_SELECTED : HE_COLORSET_NORMAL;
	char buf[2 * FN_CELL_SIZE];

	ui_browser__set_color(b, color);
	write_label(browser, row->label, "");
	for (unsigned int i = b->horiz_scroll; i < b->columns; i++) {
		const struct shown *shown = &browser->columns[i];

		set_color(browser, row, shown, is_current);
		write_cell(b, shown, cell_of(browser, row, shown, buf), " ");
	}
	ui_browser__set_color(b, color);
	fill_line(browser);
}

/* Returns the number of rows with a text in their labels; sets them if that is wanted. */
static size_t find_rows(struct functions_browser *browser, const char *text,
			const struct fn_row **rows)
{
	const struct fn_view *view = browser->view;
	size_t nr = 0;

	for (size_t r = 0; r < view->nr_rows; r++) {
		if (!strstr(view->rows[r]->label, text))
			continue;
		if (rows)
			rows[nr] = view->rows[r];
		nr++;
	}
	return nr;
}

/* Shows the rows that the filter leaves, and says how many there are. */
static int show_rows(struct functions_browser *browser)
{
	const struct fn_view *view = browser->view;
	const char *what = fn_by__is(view->table->by, FN_BY_SYMBOL) ? "functions" : "rows";
	const size_t nr = find_rows(browser, browser->filter, browser->rows);
	char title[256];
	int length = scnprintf(title, sizeof(title), "Metrics of ");

	if (*browser->filter)
		length += scnprintf(title + length, sizeof(title) - length, "%zu of ", nr);
	length += scnprintf(title + length, sizeof(title) - length, "%zu %s", view->nr_rows, what);
	if (*browser->filter)
		scnprintf(title + length, sizeof(title) - length, ": those with %s in their names",
			  browser->filter);
	browser->b.nr_entries = nr;
	browser->b.top = NULL;
	ui_browser__reset_index(&browser->b);
	return ui_browser__show(&browser->b, title, "%s", view->with_ci ? INTERVAL_NOTE :
				"Press '?' for help on key bindings");
}

static void ask_for_text(struct functions_browser *browser)
{
	char text[sizeof(browser->filter)] = "";

	if (ui_browser__input_window("Name to show",
				     "Please enter the name of the rows you want to see.\n"
				     "To show all rows, press ENTER on an empty line.",
				     text, "ENTER: OK, ESC: Cancel", 0) != K_ENTER)
		return;
	if (!find_rows(browser, text, NULL)) {
		ui_browser__warning(&browser->b, 0, "No row has %s in its name", text);
		return;
	}
	scnprintf(browser->filter, sizeof(browser->filter), "%s", text);
	show_rows(browser);
}

static void ask_for_column(struct functions_browser *browser)
{
	struct fn_view *view = browser->view;
	char **titles = calloc(1 + view->nr_fields, sizeof(*titles));
	int choice;

	if (!titles)
		return;
	titles[0] = (char *)view->table->by;
	for (unsigned int i = 0; i < view->nr_fields; i++)
		titles[1 + i] = (char *)view->columns->columns[view->fields[i]].title;
	choice = ui__popup_menu(1 + view->nr_fields, titles, NULL);
	free(titles);
	if (choice < 0 || (unsigned int)choice > view->nr_fields)
		return;
	fn_view__sort(view, choice ? view->fields[choice - 1] : -1);
	show_rows(browser);
}

/* Formats messages for a window: without the command's name, in short lines. */
static char *wrap(const char *messages, int width)
{
	static const char command[] = "perf functions: ";
	char *copy = strdup(messages), *found = copy, *begin = copy, *blank = NULL;

	while (found && (found = strstr(found, command)))
		memmove(found, found + strlen(command), strlen(found + strlen(command)) + 1);
	for (char *c = copy; c && *c; c++) {
		if (c - begin >= width && blank) {
			*blank = '\n';
			begin = blank + 1;
			blank = NULL;
		}
		if (*c == '\n') {
			begin = c + 1;
			blank = NULL;
		} else if (*c == ' ') {
			blank = c;
		}
	}
	return copy;
}

static void show_notes(struct functions_browser *browser)
{
	int key = K_RESIZE;

	while (*browser->notes && key == K_RESIZE) {
		char *text = wrap(browser->notes, browser->b.width - 4);

		key = text ? ui__question_window("Warning!", text, "Press any key...", 0) : K_ERROR;
		free(text);
		if (key == K_RESIZE)
			ui_browser__handle_resize(&browser->b);
	}
}

static void run(struct functions_browser *browser)
{
	while (true) {
		switch (ui_browser__run(&browser->b, 0)) {
		case 's':
			ask_for_column(browser);
			break;
		case 'n':
			show_notes(browser);
			break;
		case '/':
			ask_for_text(browser);
			break;
		case K_F1:
		case 'h':
		case '?':
			ui_browser__help_window(&browser->b, help);
			break;
		case K_ESC:
		case 'q':
		case CTRL('c'):
			return;
		default:
			break;
		}
	}
}

/* Chooses the columns on the screen, and their widths. */
static void lay_out(struct functions_browser *browser)
{
	const struct fn_view *view = browser->view;
	struct ui_browser *b = &browser->b;
	char buf[2 * FN_CELL_SIZE];

	for (unsigned int i = 0; i < view->nr_fields; i++) {
		const unsigned int column = view->fields[i];

		browser->columns[b->columns++] = (struct shown){ .column = column };
		if (view->with_ci && !view->columns->columns[column].is_count)
			browser->columns[b->columns++] =
				(struct shown){ .column = column, .is_interval = true };
	}
	browser->label_width = strlen(view->table->by) + 1;
	for (size_t r = 0; r < view->nr_rows; r++)
		browser->label_width = max(browser->label_width,
					   function_text__width(view->rows[r]->label));
	for (unsigned int i = 0; i < b->columns; i++) {
		struct shown *shown = &browser->columns[i];

		shown->width = function_text__width(title_of(browser, shown));
		for (size_t r = 0; r < view->nr_rows; r++)
			shown->width = max(shown->width, width_of(cell_of(browser, view->rows[r],
									  shown, buf)));
	}
}

int fn_view__browse(struct fn_view *view, const char *notes)
{
	struct functions_browser browser = {
		.b = {
			.refresh = functions_browser__refresh,
			.seek	 = ui_browser__argv_seek,
			.write	 = functions_browser__write,
			.extra_title_lines = 1,
		},
		.view = view, .notes = notes ?: "",
		.rows	 = calloc(view->nr_rows, sizeof(*browser.rows)),
		.columns = calloc(2 * view->nr_fields, sizeof(*browser.columns)),
	};
	int err = -ENOMEM;

	if (!browser.rows || !browser.columns || fn_table__set_labels(view->table, 0))
		goto out;
	browser.b.entries = browser.rows;
	lay_out(&browser);
	err = show_rows(&browser);
	if (err)
		goto out;
	show_notes(&browser);
	run(&browser);
	ui_browser__hide(&browser.b);
out:
	free(browser.rows);
	free(browser.columns);
	return err;
}
