// SPDX-License-Identifier: GPL-2.0
/* A browser for a table of functions and their annotated code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ttydefaults.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../../util/functions/estimate/columns.h"
#include "../../util/functions/show/print.h"
#include "../../util/functions/collect/sums.h"
#include "../../util/functions/text.h"
#include "../browser.h"
#include "../helpline.h"
#include "../keysyms.h"
#include "../ui.h"
#include "../util.h"
#include "functions.h"

struct functions_browser {
	struct ui_browser b;
	struct function_layout layout;
	/* The rows that are shown. */
	const struct function_row **rows;
	char title[128];
	char *notes;
};

static const char help[] =
	"h/?/F1        Show this window\n"
	"UP/DOWN/PGUP\n"
	"PGDN/SPACE\n"
	"LEFT/RIGHT    Navigate\n"
	"ENTER/a       Annotate the current function\n"
	"n             Show again what was said about the data\n"
	"s             Sort by another column\n"
	"/             Show rows with this text in their names only\n"
	"q/ESC/CTRL+C  Exit browser";

static struct functions_browser *to_functions_browser(struct ui_browser *b)
{
	return container_of(b, struct functions_browser, b);
}

static void fill_line(struct ui_browser *b, int used)
{
	if (used < b->width)
		ui_browser__write_nstring(b, "", b->width - used);
}

static void write_title(struct functions_browser *browser)
{
	const struct function_layout *layout = &browser->layout;
	struct ui_browser *b = &browser->b;
	int used = layout->key_width;

	ui_browser__gotorc_title(b, 0, 0);
	ui_browser__set_color(b, HE_COLORSET_ROOT);
	ui_browser__printf(b, "%-*s", layout->key_width, layout->key);
	for (unsigned int i = b->horiz_scroll; i < layout->print->nr_fields; i++) {
		const char *name = function_layout__title(layout, i);

		ui_browser__printf(b, " %*s%s", layout->widths[i] - function_text__width(name), "",
				   name);
		used += 1 + layout->widths[i];
		if (layout->interval_widths[i]) {
			ui_browser__printf(b, " %*s", layout->interval_widths[i],
					   FUNCTION_INTERVAL_TITLE);
			used += 1 + layout->interval_widths[i];
		}
	}
	fill_line(b, used - 1);
}

static unsigned int functions_browser__refresh(struct ui_browser *b)
{
	write_title(to_functions_browser(b));
	return ui_browser__argv_refresh(b);
}

static void functions_browser__write(struct ui_browser *b, void *entry, int line)
{
	const struct functions_browser *browser = to_functions_browser(b);
	const struct function_layout *layout = &browser->layout;
	const struct function_print *print = layout->print;
	const struct function_row *row = *(const struct function_row **)entry;
	const char *label = function_layout__label(layout, row);
	bool is_current = ui_browser__is_current_entry(b, line);
	int color = is_current ? HE_COLORSET_SELECTED : HE_COLORSET_NORMAL;
	int used = layout->key_width;
	char buf[FUNCTION_INTERVAL_SIZE];

	ui_browser__set_color(b, color);
	/* Sorting may show rows that --limit left out when the widths were set. */
	ui_browser__printf(b, "%s%*s", label,
			   max(layout->key_width - function_text__width(label), 0), "");
	for (unsigned int i = b->horiz_scroll; i < print->nr_fields; i++) {
		const struct function_value *value = &row->values[print->fields[i]];

		if (value->is_weak && !is_current)
			ui_browser__set_color(b, HE_COLORSET_WEAK);
		else if (value->is_defined &&
			 function_column__is_share(&print->columns->columns[print->fields[i]]))
			ui_browser__set_percent_color(b, value->value, is_current);
		else
			ui_browser__set_color(b, color);
		ui_browser__printf(b, " %*s", layout->widths[i],
				   function_print__cell(print, row, i, buf));
		used += 1 + layout->widths[i];
		if (layout->interval_widths[i]) {
			ui_browser__set_color(b, color);
			ui_browser__printf(b, " %*s", layout->interval_widths[i],
					   function_print__interval(print, row, i, buf));
			used += 1 + layout->interval_widths[i];
		}
	}
	ui_browser__set_color(b, color);
	fill_line(b, used);
}

/* Show the rows with this text in their names, if there are any. */
static bool show_rows(struct functions_browser *browser, const char *text)
{
	const struct function_print *print = browser->layout.print;
	unsigned int nr = 0;

	for (int pass = 0; pass < 2; pass++) {
		unsigned int found = 0;

		for (size_t r = 0; r < print->nr_rows; r++) {
			const struct function_row *row = &print->columns->rows[r];

			if (!strstr(function_layout__label(&browser->layout, row), text))
				continue;
			if (pass)
				browser->rows[found] = row;
			found++;
		}
		if (!found)
			return false;
		nr = found;
	}
	browser->b.nr_entries = nr;
	browser->b.top = NULL;
	ui_browser__reset_index(&browser->b);
	return true;
}

static void ask_for_text(struct functions_browser *browser)
{
	char text[64] = "";

	if (ui_browser__input_window("Name to show",
				     "Please enter the name of the rows you want to see.\n"
				     "To show all rows, press ENTER on an empty line.",
				     text, "ENTER: OK, ESC: Cancel", 0) != K_ENTER)
		return;
	if (!show_rows(browser, text))
		ui_browser__warning(&browser->b, 0, "No row has %s in its name", text);
}

static void ask_for_column(struct functions_browser *browser, struct function_columns *columns)
{
	const struct function_print *print = browser->layout.print;
	char **names = calloc(print->nr_fields ?: 1, sizeof(*names));
	int choice;

	if (!names)
		return;
	for (unsigned int i = 0; i < print->nr_fields; i++)
		names[i] = (char *)columns->columns[print->fields[i]].name;
	choice = ui__popup_menu(print->nr_fields, names, NULL);
	free(names);
	if (choice < 0 || (unsigned int)choice >= print->nr_fields)
		return;
	function_columns__sort(columns, print->fields[choice]);
	show_rows(browser, "");
}

static void functions_browser__annotate(struct functions_browser *browser,
					function_annotate_t annotate, void *data)
{
	const struct function_row *row = browser->rows[browser->b.index];
	const char *reason = annotate(data, row->sums[0]);

	if (reason)
		ui_browser__warning(&browser->b, 0, "%s: %s",
				    function_layout__label(&browser->layout, row), reason);
	/* The size of the screen may have changed in the other browser. */
	browser->b.refresh_dimensions(&browser->b);
	ui_browser__show_title(&browser->b, browser->title);
	ui_helpline__puts(browser->b.helpline);
}

/* Formats messages for a window: without the command's name, in short lines. */
static char *wrap(const char *messages, int width)
{
	static const char command[] = "perf functions: ";
	char *copy = strdup(messages), *found = copy, *begin = copy, *blank = NULL;

	if (!copy)
		return NULL;
	while ((found = strstr(found, command)) != NULL)
		memmove(found, found + strlen(command), strlen(found + strlen(command)) + 1);
	for (char *c = copy; *c; c++) {
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
	if (browser->notes && *browser->notes)
		ui_browser__warning(&browser->b, 0, "%s", browser->notes);
}

static void functions_browser__run(struct functions_browser *browser,
				   struct function_columns *columns, function_annotate_t annotate,
				   void *data)
{
	while (true) {
		int key = ui_browser__run(&browser->b, 0);

		switch (key) {
		case K_ENTER:
		case 'a':
			functions_browser__annotate(browser, annotate, data);
			break;
		case 's':
			ask_for_column(browser, columns);
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

/**
 * function_print__browse - let the user browse a table
 * @print: the output
 * @columns: its columns, which the user may sort
 * @notes: lines of messages about the data, may be NULL
 * @annotate: shows the code of a function, or returns the reason why it cannot
 * @data: for @annotate
 *
 * Return: 0, or -ENOMEM.
 */
int function_print__browse(const struct function_print *print, struct function_columns *columns,
			   const char *notes, function_annotate_t annotate, void *data)
{
	struct functions_browser browser = {
		.b = {
			.refresh	   = functions_browser__refresh,
			.seek		   = ui_browser__argv_seek,
			.write		   = functions_browser__write,
			.extra_title_lines = 1,
			.columns	   = print->nr_fields,
		},
	};
	int ret = -ENOMEM;

	if (function_layout__init(&browser.layout, print, /*fp=*/NULL))
		return -ENOMEM;
	browser.rows = calloc(print->nr_rows, sizeof(*browser.rows));
	if (!browser.rows)
		goto out;

	browser.b.entries = browser.rows;
	show_rows(&browser, "");
	scnprintf(browser.title, sizeof(browser.title), "Metrics of %zu functions", print->nr_rows);
	if (!function_by__is(print->table->by, FUNCTION_BY_SYMBOL))
		scnprintf(browser.title, sizeof(browser.title), "Metrics by %s: %zu rows",
			  browser.layout.key, print->nr_rows);
	if (ui_browser__show(&browser.b, browser.title, "%s%s",
			     print->intervals ? FUNCTION_INTERVAL_NOTE :
						"Press '?' for help on key bindings",
			     print->intervals ? "; '?' shows the keys" : "") < 0)
		goto out;
	browser.notes = wrap(notes ?: "", browser.b.width - 4);
	show_notes(&browser);
	functions_browser__run(&browser, columns, annotate, data);
	ui_browser__hide(&browser.b);
	ret = 0;
out:
	free(browser.notes);
	free(browser.rows);
	function_layout__exit(&browser.layout);
	return ret;
}
