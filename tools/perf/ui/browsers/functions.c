// SPDX-License-Identifier: GPL-2.0
/* A browser for a table of functions. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ttydefaults.h>
#include <linux/kernel.h>

#include "../../util/functions/functions.h"
#include "../browser.h"
#include "../keysyms.h"
#include "../util.h"

#define INTERVAL_NOTE	"95 % intervals are about this run alone; '?' shows the keys"

struct functions_browser {
	struct ui_browser b;
	struct fn_view *view;
	struct fn_text text;
	const struct fn_cell **lines;	/* those with the filter in their labels */
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

/* Writes a line in a color, or with -1 each cell in its own. */
static void write_line(struct functions_browser *browser, const struct fn_cell *line, int color)
{
	static const int colors[] = {
		[FN_PLAIN] = HE_COLORSET_NORMAL, [FN_GREY] = HE_COLORSET_WEAK,
		[FN_GREEN] = HE_COLORSET_MEDIUM, [FN_RED] = HE_COLORSET_TOP,
	};
	const struct fn_text *text = &browser->text;
	struct ui_browser *b = &browser->b;
	int before, after, used = 0;

	for (unsigned int i = 0; i < text->nr_columns; i++) {
		if (i && i <= b->horiz_scroll)
			continue;
		fn_text__align(text, i, &line[i], &before, &after);
		ui_browser__set_color(b, color < 0 ? colors[line[i].color] : color);
		ui_browser__printf(b, "%*s%s%*s", before, "", line[i].text, after, "");
		used += before + function_text__width(line[i].text) + after;
	}
	ui_browser__set_color(b, color < 0 ? HE_COLORSET_NORMAL : color);
	if (used < b->width)
		ui_browser__write_nstring(b, "", b->width - used);
}

static unsigned int functions_browser__refresh(struct ui_browser *b)
{
	struct functions_browser *browser = to_functions_browser(b);

	ui_browser__gotorc_title(b, 0, 0);
	write_line(browser, browser->text.cells, HE_COLORSET_ROOT);
	return ui_browser__argv_refresh(b);
}

static void functions_browser__write(struct ui_browser *b, void *entry, int line)
{
	write_line(to_functions_browser(b), *(const struct fn_cell **)entry,
		   ui_browser__is_current_entry(b, line) ? HE_COLORSET_SELECTED : -1);
}

/* Returns the number of lines with a text in their labels; sets them if that is wanted. */
static size_t find_lines(const struct functions_browser *browser, const char *wanted,
			 const struct fn_cell **lines)
{
	const struct fn_text *text = &browser->text;
	size_t nr = 0;

	for (size_t i = text->nr_columns; i < text->nr; i += text->nr_columns) {
		if (!strstr(text->cells[i].text, wanted))
			continue;
		if (lines)
			lines[nr] = &text->cells[i];
		nr++;
	}
	return nr;
}

/* Shows the rows that the filter leaves, and says how many there are. */
static int show_rows(struct functions_browser *browser)
{
	const struct fn_view *view = browser->view;
	const char *what = fn_by__is(view->table->by, FN_BY_SYMBOL) ? "functions" : "rows";
	const size_t nr = find_lines(browser, browser->filter, browser->lines);
	char title[256];

	if (*browser->filter)
		scnprintf(title, sizeof(title),
			  "Metrics of %zu of %zu %s: those with %s in their names", nr,
			  view->nr_rows, what, browser->filter);
	else
		scnprintf(title, sizeof(title), "Metrics of %zu %s", nr, what);
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
	if (!find_lines(browser, text, NULL)) {
		ui_browser__warning(&browser->b, 0, "No row has %s in its name", text);
		return;
	}
	scnprintf(browser->filter, sizeof(browser->filter), "%s", text);
	show_rows(browser);
}

static int make_text(struct functions_browser *browser)
{
	struct fn_text text = {};
	int err = fn_view__add_text(browser->view, &text) ?: fn_text__lay_out(&text);

	fn_text__exit(err ? &text : &browser->text);
	if (!err)
		browser->text = text;
	return err;
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
	if (!make_text(browser))
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
		.lines = calloc(view->nr_rows, sizeof(*browser.lines)),
	};
	int err = -ENOMEM;

	view->width = INT_MAX;		/* it scrolls */
	if (!browser.lines || make_text(&browser))
		goto out;
	browser.b.entries = browser.lines;
	browser.b.columns = browser.text.nr_columns - 1;
	err = show_rows(&browser);
	if (err)
		goto out;
	show_notes(&browser);
	run(&browser);
	ui_browser__hide(&browser.b);
out:
	fn_text__exit(&browser.text);
	free(browser.lines);
	return err;
}
