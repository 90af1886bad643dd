/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_INTERVAL_H
#define __PERF_FUNCTIONS_INTERVAL_H

struct function_value;

/* One event in windows: the total, and the sum of squares. */
struct window_counts {
	double windows;
	double total;
	double squares;
};

double student_t__tail(double t, double freedom);
double student_t__quantile(double freedom);

void function_value__rate_interval(struct function_value *value, double unit,
				   const struct window_counts *event,
				   const struct window_counts *per, double crowd);
void function_value__corrected_interval(struct function_value *value, double unit,
					const struct window_counts *event, double crowd);
void function_value__share_interval(struct function_value *value, double whole, double windows);
void function_value__count_interval(struct function_value *value, double unit, double events,
				    double per);
void function_value__part_interval(struct function_value *value, double whole, double samples);
void function_value__plain_interval(struct function_value *value);

#endif /* __PERF_FUNCTIONS_INTERVAL_H */
