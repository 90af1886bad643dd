/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_DEMANGLE_RUST_V0
#define __PERF_DEMANGLE_RUST_V0 1

char *rust_v0_demangle_sym(const char *str);

#endif /* __PERF_DEMANGLE_RUST_V0 */
