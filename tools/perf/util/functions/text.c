// SPDX-License-Identifier: GPL-2.0
/* Makes names from files safe for a terminal and for JSON and reads numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/types.h>

#include "functions.h"

/* Returns the length of the first character in bytes, 0 if it is not UTF-8. */
int function_text__character(const char *text, bool *is_control)
{
	const u8 *c = (const u8 *)text;
	/* The second byte excludes overlong forms, surrogates and values beyond Unicode. */
	u8 low = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
	u8 high = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;
	int length = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	*is_control = c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
	if (length == 1)
		return 1;
	if (c[0] < 0xc2 || c[0] > 0xf4 || c[1] < low || c[1] > high)
		return 0;
	for (int i = 2; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	}
	return length;
}

/* Returns the number of characters. */
int function_text__width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/*
 * Returns a copy, where \xNN stands for each byte of a control character and for each byte that is
 * not UTF-8.
 */
char *function_text__printable(const char *text)
{
	char *copy = malloc(4 * strlen(text) + 1), *to = copy;

	while (copy && *text) {
		bool is_control;
		int length = function_text__character(text, &is_control);

		if (length && !is_control) {
			to = mempcpy(to, text, length);
			text += length;
			continue;
		}
		for (length = length ?: 1; length; length--)
			to += sprintf(to, "\\x%02x", (u8)*text++);
	}
	if (copy)
		*to = '\0';
	return copy;
}

char *function_text__lower(const char *text)
{
	char *lower = strdup(text);

	for (char *c = lower; c && *c; c++)
		*c = tolower(*c);
	return lower;
}

const char *function_text__base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Reads digits, without a sign, and nothing else. */
int function_text__u64(const char *str, int base, u64 *value)
{
	char *end;

	if (!isdigit(*str))
		return -EINVAL;
	errno = 0;
	*value = strtoull(str, &end, base);
	return errno || *end ? -EINVAL : 0;
}
