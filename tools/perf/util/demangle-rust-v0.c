// SPDX-License-Identifier: GPL-2.0
/*
 * Names that Rust mangles by its scheme v0: RFC 2603, and "v0 Symbol Format" in
 * the book of rustc.
 *
 * Such a name is in prefix notation: a tag, then parts whose own tags tell where
 * they end. The functions here are rules of its grammar: they read a part of the
 * name and print it. If one cannot be read, the name is no such name.
 *
 * A part may be a reference to one that came before it, which is read again. So
 * a short name can be long when it is printed, or endless: limits are needed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/compiler.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/types.h>

#include "demangle-rust-v0.h"
#include "string2.h"

#define MAX_NAME	65536	/* with its NUL: what a struct symbol holds */
#define MAX_PARTS	65536
#define MAX_DEPTH	500	/* depth of nested parts */
#define MAX_PUNYCODE	256	/* characters */

struct demangler {
	const char *sym;	/* without its prefix */
	size_t len;		/* without its suffix */
	size_t pos;
	char *out;
	size_t out_len;
	unsigned int nr_parts, depth;
	unsigned int silent;	/* > 0: in a part that is not printed */
	u64 nr_lifetimes;	/* that have names at this place */
	bool failed;
};

/* The parts to which a name can refer. */
enum part {
	PATH,			/* path::<T> */
	PATH_OF_TYPE,		/* path<T> */
	PATH_OPEN,		/* path<T, left open for more generic arguments */
	TYPE,
	CONST,
};

static bool part(struct demangler *d, enum part what);

static void fail(struct demangler *d)
{
	d->failed = true;
}

static bool is_printing(const struct demangler *d)
{
	return !d->silent && !d->failed;
}

__printf(2, 3)
static void print(struct demangler *d, const char *format, ...)
{
	size_t room = MAX_NAME - d->out_len, len;
	va_list args;

	if (!is_printing(d))
		return;
	va_start(args, format);
	len = vsnprintf(d->out + d->out_len, room, format, args);
	va_end(args);
	if (len < room)
		d->out_len += len;
	else
		fail(d);
}

/* Return: the next character; NUL after the last one, a failure, or if it is not ASCII. */
static char peek(const struct demangler *d)
{
	return !d->failed && d->pos < d->len && isascii(d->sym[d->pos]) ? d->sym[d->pos] : '\0';
}

static char next(struct demangler *d)
{
	char c = peek(d);

	if (c)
		d->pos++;
	else
		fail(d);
	return c;
}

static bool eat(struct demangler *d, char c)
{
	bool is_next = peek(d) == c;

	d->pos += is_next;
	return is_next;
}

static void expect(struct demangler *d, char c)
{
	if (!eat(d, c))
		fail(d);
}

static u64 add_digit(struct demangler *d, u64 number, unsigned int base, unsigned int digit)
{
	if (__builtin_mul_overflow(number, (u64)base, &number) ||
	    __builtin_add_overflow(number, (u64)digit, &number))
		fail(d);
	return number;
}

/* A number with a leading 0 ends there. */
static u64 decimal_number(struct demangler *d)
{
	u64 number = next(d) - '0';

	if (number > 9)
		fail(d);
	while (number && isdigit(peek(d)))
		number = add_digit(d, number, 10, next(d) - '0');
	return number;
}

static u64 base_62_number(struct demangler *d)
{
	u64 number = 0;
	char c;

	if (eat(d, '_'))
		return 0;
	for (c = next(d); isalnum(c); c = next(d))
		number = add_digit(d, number, 62, isdigit(c) ? c - '0' :
				   islower(c) ? c - 'a' + 10 : c - 'A' + 36);
	if (c != '_')
		fail(d);
	return number + 1;
}

/* Return: 0 without the tag. */
static u64 opt_number(struct demangler *d, char tag)
{
	return eat(d, tag) ? base_62_number(d) + 1 : 0;
}

static bool is_character(u64 c)
{
	return c < 0xd800 || (c >= 0xe000 && c < 0x110000);
}

static void print_utf8(struct demangler *d, u32 c)
{
	int last = 0x80 | (c & 0x3f), third = 0x80 | (c >> 6 & 0x3f);
	int second = 0x80 | (c >> 12 & 0x3f);

	if (c < 0x80)
		print(d, "%c", (int)c);
	else if (c < 0x800)
		print(d, "%c%c", (int)(0xc0 | c >> 6), last);
	else if (c < 0x10000)
		print(d, "%c%c%c", (int)(0xe0 | c >> 12), third, last);
	else
		print(d, "%c%c%c%c", (int)(0xf0 | c >> 18), second, third, last);
}

/* RFC 3492, 6.1 */
static unsigned int adapt_bias(u64 delta, unsigned int nr)
{
	unsigned int k = 0;

	delta += delta / nr;
	for (; delta > 35 * 26 / 2; k += 36)
		delta /= 35;
	return k + 36 * delta / (delta + 38);
}

/* RFC 3492, 6.2, with _ in place of the last - */
static void print_punycode(struct demangler *d, const char *name, size_t len)
{
	const char *end = name + len, *c = memrchr(name, '_', len);
	unsigned int bias = 72, damp = 700, nr = 0, digit, least;
	u64 code = 128, where = 0, delta, weight;
	u32 chars[MAX_PUNYCODE];

	while (c && name < c && nr < MAX_PUNYCODE)
		chars[nr++] = *name++;
	for (c = c ? c + 1 : name; c < end; chars[where++] = code) {
		delta = 0;
		weight = 1;
		for (unsigned int k = 36;; k += 36) {
			digit = c == end ? 36 : isdigit(*c) ? *c - '0' + 26 : *c - 'a';
			if (digit >= 36 || weight > UINT_MAX || nr == MAX_PUNYCODE)
				return fail(d);
			c++;
			delta += digit * weight;
			least = clamp((int)(k - bias), 1, 26);
			if (digit < least)
				break;
			weight *= 36 - least;
		}
		where += delta;
		bias = adapt_bias(delta / damp, ++nr);
		damp = 2;
		code += where / nr;
		where %= nr;
		if (!is_character(code))
			return fail(d);
		memmove(chars + where + 1, chars + where, (nr - 1 - where) * sizeof(*chars));
	}
	for (unsigned int i = 0; i < nr; i++)
		print_utf8(d, chars[i]);
}

/* Return: the disambiguator, which distinguishes it from others of the same name. */
static u64 identifier(struct demangler *d, const char *before)
{
	u64 disambiguator = opt_number(d, 's'), len;
	bool is_punycode = eat(d, 'u');
	const char *name;

	len = decimal_number(d);
	eat(d, '_');
	if (len > d->len - d->pos)
		fail(d);
	if (!len || d->failed)
		return disambiguator;
	name = d->sym + d->pos;
	d->pos += len;
	print(d, "%s", before);
	if (!is_punycode)
		print(d, "%.*s", (int)len, name);
	else if (is_printing(d))
		print_punycode(d, name, len);
	return disambiguator;
}

/* Return: how many parts came before the end of the list. */
static unsigned int list(struct demangler *d, void (*print_part)(struct demangler *d),
			 const char *separator)
{
	unsigned int nr = 0;

	for (; !d->failed && !eat(d, 'E'); nr++) {
		print(d, "%s", nr ? separator : "");
		print_part(d);
	}
	return nr;
}

/* Index 1 is the last lifetime with a name. */
static void print_lifetime(struct demangler *d, u64 index)
{
	u64 level = d->nr_lifetimes - index;

	if (!index)
		print(d, "'_");
	else if (index > d->nr_lifetimes)
		fail(d);
	else if (level < 26)
		print(d, "'%c", (int)('a' + level));
	else
		print(d, "'_%llu", (unsigned long long)level);
}

/* Return: how many lifetimes had names before it. */
static u64 binder(struct demangler *d)
{
	u64 outer = d->nr_lifetimes, nr = opt_number(d, 'G');

	if (nr > MAX_NAME)
		fail(d);
	d->nr_lifetimes += nr;
	print(d, "%s", nr ? "for<" : "");
	for (; nr && is_printing(d); nr--) {
		print_lifetime(d, nr);
		print(d, "%s", nr > 1 ? ", " : "> ");
	}
	return outer;
}

static void print_char(struct demangler *d, u64 c)
{
	if (!is_character(c))
		fail(d);
	else if (c == '\t' || c == '\n' || c == '\r')
		print(d, "'\\%c'", c == '\t' ? 't' : c == '\n' ? 'n' : 'r');
	else if (c >= ' ' && c <= '~')
		print(d, "'%s%c'", c == '\'' || c == '\\' ? "\\" : "", (int)c);
	else
		print(d, "'\\u{%llx}'", (unsigned long long)c);
}

static void const_data(struct demangler *d, char type)
{
	bool is_signed = strchr("ailnsx", type);
	u64 value = 0;
	size_t start;

	if (!is_signed && !strchr("bchjmoty", type))
		fail(d);
	if (is_signed && eat(d, 'n'))
		print(d, "-");
	while (eat(d, '0'))
		;
	start = d->pos;
	for (char c = peek(d); isdigit(c) || (c >= 'a' && c <= 'f'); c = peek(d))
		value = value << 4 | hex(next(d));
	if (d->pos - start > 16 && type != 'b' && type != 'c')
		print(d, "0x%.*s", (int)(d->pos - start), d->sym + start);
	else if (d->pos - start > 16 || (type == 'b' && value > 1))
		fail(d);
	else if (type == 'b')
		print(d, value ? "true" : "false");
	else if (type == 'c')
		print_char(d, value);
	else
		print(d, "%llu", (unsigned long long)value);
	expect(d, '_');
}

static void type(struct demangler *d)
{
	part(d, TYPE);
}

static void generic_arg(struct demangler *d)
{
	if (eat(d, 'L'))
		print_lifetime(d, base_62_number(d));
	else
		part(d, eat(d, 'K') ? CONST : TYPE);
}

/* Skips the place of the implementation, then prints its type and trait. */
static void impl(struct demangler *d, char tag)
{
	d->silent++;
	if (tag != 'Y') {
		opt_number(d, 's');
		part(d, PATH_OF_TYPE);
	}
	d->silent--;
	print(d, "<");
	part(d, TYPE);
	if (tag != 'M') {
		print(d, " as ");
		part(d, PATH_OF_TYPE);
	}
	print(d, ">");
}

static void nested_path(struct demangler *d, enum part parent)
{
	char namespace = next(d);

	part(d, parent);
	if (islower(namespace)) {
		identifier(d, "::");
	} else if (isupper(namespace)) {
		print(d, "::{%.*s", namespace == 'C' ? 7 : namespace == 'S' ? 4 : 1,
		      namespace == 'C' ? "closure" : namespace == 'S' ? "shim" : &namespace);
		print(d, "#%llu}", (unsigned long long)identifier(d, ":"));
	} else {
		fail(d);
	}
}

static void ref_type(struct demangler *d, const char *mut)
{
	u64 lifetime = eat(d, 'L') ? base_62_number(d) : 0;

	print(d, "&");
	if (lifetime) {
		print_lifetime(d, lifetime);
		print(d, " ");
	}
	print(d, "%s", mut);
	part(d, TYPE);
}

static void fn_type(struct demangler *d)
{
	u64 outer = binder(d);
	size_t abi;

	print(d, "%s", eat(d, 'U') ? "unsafe " : "");
	if (eat(d, 'K')) {
		print(d, "extern \"");
		abi = d->out_len;
		if (eat(d, 'C'))
			print(d, "C");
		else
			identifier(d, "");
		for (; abi < d->out_len; abi++)
			d->out[abi] = d->out[abi] == '_' ? '-' : d->out[abi];
		print(d, "\" ");
	}
	print(d, "fn(");
	list(d, type, ", ");
	print(d, ")");
	if (!eat(d, 'u')) {
		print(d, " -> ");
		part(d, TYPE);
	}
	d->nr_lifetimes = outer;
}

static void dyn_trait(struct demangler *d)
{
	bool is_open = part(d, PATH_OPEN);

	for (; eat(d, 'p'); is_open = true) {
		print(d, is_open ? ", " : "<");
		identifier(d, "");
		print(d, " = ");
		part(d, TYPE);
	}
	print(d, "%s", is_open ? ">" : "");
}

static void dyn_type(struct demangler *d)
{
	u64 outer, lifetime;

	print(d, "dyn ");
	outer = binder(d);
	list(d, dyn_trait, " + ");
	d->nr_lifetimes = outer;
	expect(d, 'L');
	lifetime = base_62_number(d);
	if (lifetime) {
		print(d, " + ");
		print_lifetime(d, lifetime);
	}
}

static void basic_type(struct demangler *d, char tag)
{
	static const char * const names[] = {
		"i8", "bool", "char", "f64", "str", "f32", NULL, "u8", "isize", "usize", NULL,
		"i32", "u32", "i128", "u128", "_", NULL, NULL, "i16", "u16", "()", "...", NULL,
		"i64", "u64", "!",
	};

	if (names[tag - 'a'])
		print(d, "%s", names[tag - 'a']);
	else
		fail(d);
}

/* Return: whether generic arguments were left open. */
static bool back_reference(struct demangler *d, enum part what)
{
	size_t tag = d->pos - 1, end;
	u64 place = base_62_number(d);
	bool is_open = false;

	if (place >= tag)
		fail(d);
	end = d->pos;
	d->pos = place;
	if (is_printing(d))
		is_open = part(d, what);
	d->pos = end;
	return is_open;
}

/* Return: whether generic arguments were left open. */
static bool part(struct demangler *d, enum part what)
{
	enum part parent = what == PATH ? PATH : PATH_OF_TYPE;
	bool is_open = false;
	char tag = next(d);

	if (++d->nr_parts > MAX_PARTS || ++d->depth > MAX_DEPTH ||
	    (what != TYPE && !strchr(what == CONST ? "Babchijlmnopstxy" : "BCIMNXY", tag)))
		fail(d);
	if (d->failed)
		return false;
	switch (tag) {
	case 'B':
		is_open = back_reference(d, what);
		break;
	case 'C':
		identifier(d, "");
		break;
	case 'I':
		part(d, parent);
		print(d, what == PATH ? "::<" : "<");
		list(d, generic_arg, ", ");
		is_open = what == PATH_OPEN;
		print(d, "%s", is_open ? "" : ">");
		break;
	case 'M':
	case 'X':
	case 'Y':
		impl(d, tag);
		break;
	case 'N':
		nested_path(d, parent);
		break;
	case 'a' ... 'z':
		if (what == CONST && tag != 'p')
			const_data(d, tag);
		else
			basic_type(d, tag);
		break;
	case 'A':
	case 'S':
		print(d, "[");
		part(d, TYPE);
		if (tag == 'A') {
			print(d, "; ");
			part(d, CONST);
		}
		print(d, "]");
		break;
	case 'D':
		dyn_type(d);
		break;
	case 'F':
		fn_type(d);
		break;
	case 'O':
	case 'P':
		print(d, tag == 'O' ? "*mut " : "*const ");
		part(d, TYPE);
		break;
	case 'Q':
	case 'R':
		ref_type(d, tag == 'Q' ? "mut " : "");
		break;
	case 'T':
		print(d, "(");
		print(d, list(d, type, ", ") == 1 ? ",)" : ")");
		break;
	default:
		fail(d);
	}
	d->depth--;
	return is_open;
}

/* Return: the length without a suffix, 0 if it is not a v0 name. */
static size_t length(const char *sym)
{
	size_t len = strcspn(sym, ".$");

	/* Identifiers may be UTF-8. */
	for (size_t i = 0; i < len; i++) {
		if (isascii(sym[i]) && !isalnum(sym[i]) && sym[i] != '_')
			return 0;
	}
	return len < MAX_NAME ? len : 0;
}

/**
 * rust_v0_demangle_sym - demangle a name of Rust's scheme v0
 * @str: the name of a symbol
 *
 * Left out are the hashes of crates, which of them instantiated a generic
 * function, and suffixes that compilers add, such as .llvm.123.
 *
 * Return: the name in Rust's own words, to be freed; NULL if it is another name.
 */
char *rust_v0_demangle_sym(const char *str)
{
	struct demangler d = {};
	char *out = NULL;

	if (strncmp(str, "_R", 2))
		return NULL;
	d.sym = str + 2;
	d.len = length(d.sym);
	d.out = d.len ? malloc(MAX_NAME) : NULL;
	if (!d.out)
		return NULL;
	part(&d, PATH);
	d.silent++;
	if (d.pos < d.len)
		part(&d, PATH);
	if (!d.failed && d.pos == d.len && d.out_len)
		out = strndup(d.out, d.out_len);
	free(d.out);
	return out;
}
