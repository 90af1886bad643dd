// SPDX-License-Identifier: GPL-2.0
/* Numbers of 192 bits, for exact sums of products of counts. */
#include <ctype.h>
#include <errno.h>
#include <math.h>

#include "u192.h"

/**
 * u192__decimal - format a number
 * @number: the number
 * @buf: the output buffer
 *
 * Return: the first digit, which is in @buf but need not be its beginning.
 */
const char *u192__decimal(const struct u192 *number, char buf[U192_DECIMAL_SIZE])
{
	char *digit = buf + U192_DECIMAL_SIZE - 1;
	u32 half[2 * ARRAY_SIZE(number->w)];
	bool more;

	for (size_t i = 0; i < ARRAY_SIZE(number->w); i++) {
		half[2 * i] = number->w[i];
		half[2 * i + 1] = number->w[i] >> 32;
	}

	*digit = '\0';
	do {
		u64 rest = 0;

		more = false;
		for (size_t i = ARRAY_SIZE(half); i--; ) {
			rest = rest << 32 | half[i];
			half[i] = rest / 10;
			more |= half[i];
			rest %= 10;
		}
		*--digit = '0' + rest;
	} while (more);

	return digit;
}

/**
 * u192__parse - read a decimal number
 * @number: the result
 * @str: its digits and nothing else
 *
 * Return: 0, -EINVAL if @str is no number, -ERANGE if it has more than 192 bits.
 */
int u192__parse(struct u192 *number, const char *str)
{
	u32 half[2 * ARRAY_SIZE(number->w)] = {};

	if (!*str)
		return -EINVAL;

	for (; *str; str++) {
		u64 carry = *str - '0';

		if (!isdigit((unsigned char)*str))
			return -EINVAL;
		for (size_t i = 0; i < ARRAY_SIZE(half); i++) {
			carry += 10ULL * half[i];
			half[i] = carry;
			carry >>= 32;
		}
		if (carry)
			return -ERANGE;
	}

	for (size_t i = 0; i < ARRAY_SIZE(number->w); i++)
		number->w[i] = (u64)half[2 * i + 1] << 32 | half[2 * i];
	return 0;
}

/**
 * u192__double - round a number
 * @number: the number
 *
 * Return: the nearest double.
 */
double u192__double(const struct u192 *number)
{
	const u64 *w = number->w;
	unsigned int top = w[2] ? 2 : w[1] ? 1 : 0, shift;
	u64 bits = w[top];

	if (!top)
		return bits;

	/* Keep the first 64 bits; the last one is set if any bit below it is. */
	shift = __builtin_clzll(bits);
	if (shift)
		bits = bits << shift | w[top - 1] >> (64 - shift);
	bits |= w[top - 1] << shift || (top == 2 && w[0]);
	return ldexp(bits, 64 * top - shift);
}

/**
 * u192__stretch - multiply a number by a factor that is not exact
 * @number: the number; the largest one if the product is larger
 * @factor: the factor, not below 0
 */
void u192__stretch(struct u192 *number, double factor)
{
	double left = round(u192__double(number) * factor);

	if (!(left < ldexp(1, 64 * ARRAY_SIZE(number->w)))) {
		memset(number, 0xff, sizeof(*number));
		return;
	}
	for (size_t i = ARRAY_SIZE(number->w); i--; ) {
		number->w[i] = ldexp(left, -64 * (int)i);
		left -= ldexp(number->w[i], 64 * i);
	}
}

/**
 * u192__subtract - take a part from a number
 * @number: the number; 0 if the part is larger, as in a crafted file
 * @other: the part
 */
void u192__subtract(struct u192 *number, const struct u192 *other)
{
	bool borrow = false;

	for (size_t i = 0; i < ARRAY_SIZE(number->w); i++) {
		u64 word = number->w[i] - borrow;

		borrow = word > number->w[i];
		borrow |= word < other->w[i];
		number->w[i] = word - other->w[i];
	}
	if (borrow)
		memset(number, 0, sizeof(*number));
}
