// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a test program ask the module for alternate periods: link this file into it with
 * -Wl,--wrap=syscall.
 *
 * The periods go where perf puts them for the module. Requests that the module cannot serve fail
 * with the error that perf gives.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC	(0xa17eULL << 48)

typeof(syscall) __real_syscall;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct perf_event_attr attr;

	if (number != __NR_perf_event_open)
		return __real_syscall(number, a, b, c, d, e, f);

	attr = *(struct perf_event_attr *)a;
	if (attr.alternative_sample_period) {
		if (attr.freq || attr.alternative_sample_count > 1) {
			errno = EOPNOTSUPP;
			return -1;
		}
		attr.sig_data = MAGIC | (__u64)attr.jitter_alternate_period << 40 |
				attr.alternative_sample_period;
		attr.alternative_sample_period = 0;
		attr.jitter_alternate_period = 0;
		attr.alternative_sample_count = 0;
	}

	return __real_syscall(number, &attr, b, c, d, e, f);
}
