/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_U192_H
#define __PERF_FUNCTIONS_U192_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/types.h>

/* Least significant word first. 2^64 products of two 64-bit counts fit. */
struct u192 {
	u64 w[3];
};

#define U192_DECIMAL_SIZE	59	/* 58 digits and the final 0 */

const char *u192__decimal(const struct u192 *number, char buf[U192_DECIMAL_SIZE]);
int u192__parse(struct u192 *number, const char *str);
double u192__double(const struct u192 *number);
void u192__subtract(struct u192 *number, const struct u192 *other);
void u192__stretch(struct u192 *number, double factor);

/*
 * Adds a number. Returns false if the sum is too large: the largest number stands for it then. It
 * is inline because each row needs many.
 */
static inline bool u192__add(struct u192 *sum, const struct u192 *other)
{
	bool carry = false;

	for (size_t i = 0; i < ARRAY_SIZE(sum->w); i++) {
		u64 word = sum->w[i] + carry;

		carry = word < carry;
		sum->w[i] = word + other->w[i];
		carry |= sum->w[i] < word;
	}
	if (carry)
		memset(sum, 0xff, sizeof(*sum));
	return !carry;
}

/* Adds the product of two numbers. It is inline because each sample needs many. */
static inline void u192__add_product(struct u192 *sum, u64 a, u64 b)
{
	u64 low, high;

#ifdef __SIZEOF_INT128__
	__uint128_t product = (__uint128_t)a * b;

	low = product;
	high = product >> 64;
#else
	u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
	u64 cross = a1 * b0 + (a0 * b0 >> 32);
	u64 other = a0 * b1 + (u32)cross;

	low = a * b;
	high = a1 * b1 + (cross >> 32) + (other >> 32);
#endif
	/* The upper half of a product is at most 2^64 - 2. */
	if (check_add_overflow(sum->w[0], low, &sum->w[0]))
		high++;
	/* Counts are small, so there is seldom one. */
	if (high) {
		sum->w[1] += high;
		sum->w[2] += sum->w[1] < high;
	}
}

#endif /* __PERF_FUNCTIONS_U192_H */
