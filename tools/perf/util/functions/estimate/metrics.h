/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FUNCTION_METRIC(column, meaning, event, per, scale, digits)
 *
 * The column is scale x event / per, where per is an event, "total" (the event's sum
 * over all functions) or NULL. "samples", "matched" and "discarded" count windows.
 * A scale of 100 is for an event that is a part of per: no true value is above 100.
 */
FUNCTION_METRIC("#", "window samples", "samples", NULL, 1, 0)
FUNCTION_METRIC("CPI", "cycles per instruction", "cycles", "instructions", 1, 1)
FUNCTION_METRIC("%RI", "speculated instructions that retired", "instructions", "inst_spec", 100, 1)
FUNCTION_METRIC("BM/KI", "branch mispredicts per 1000 instructions",
		"branch-misses", "instructions", 1000, 1)
FUNCTION_METRIC("CM/KI", "cache misses per 1000 instructions",
		"cache-misses", "instructions", 1000, 1)
FUNCTION_METRIC("%CM", "cache accesses that miss", "cache-misses", "cache-references", 100, 1)
FUNCTION_METRIC("L1DM/KI", "L1D load misses per 1000 instructions",
		"L1-dcache-load-misses", "instructions", 1000, 1)
FUNCTION_METRIC("%L1DMR", "L1D loads that miss",
		"L1-dcache-load-misses", "L1-dcache-loads", 100, 1)
FUNCTION_METRIC("TM/KI", "data TLB misses per 1000 instructions",
		"dTLB-load-misses", "instructions", 1000, 3)
FUNCTION_METRIC("PF/KI", "page faults per 1000 instructions",
		"page-faults", "instructions", 1000, 3)
FUNCTION_METRIC("MIN/KI", "minor page faults per 1000 instructions",
		"minor-faults", "instructions", 1000, 3)
FUNCTION_METRIC("MAJ/KI", "major page faults per 1000 instructions",
		"major-faults", "instructions", 1000, 3)
FUNCTION_METRIC("CS/KI", "context switches per 1000 instructions",
		"context-switches", "instructions", 1000, 3)
FUNCTION_METRIC("MIG/KI", "migrations to another CPU per 1000 instructions",
		"cpu-migrations", "instructions", 1000, 3)
FUNCTION_METRIC("AF/KI", "alignment faults per 1000 instructions",
		"alignment-faults", "instructions", 1000, 3)
FUNCTION_METRIC("EF/KI", "emulation faults per 1000 instructions",
		"emulation-faults", "instructions", 1000, 3)
FUNCTION_METRIC("%CY", "share of the cycles", "cycles", "total", 100, 1)
FUNCTION_METRIC("%I", "share of the instructions", "instructions", "total", 100, 1)
FUNCTION_METRIC("%BM", "share of the branch mispredicts", "branch-misses", "total", 100, 1)
FUNCTION_METRIC("%cache-references", "share of the cache accesses",
		"cache-references", "total", 100, 1)
FUNCTION_METRIC("%cache-misses", "share of the cache misses", "cache-misses", "total", 100, 1)
FUNCTION_METRIC("%L1DA", "share of the L1D loads", "L1-dcache-loads", "total", 100, 1)
FUNCTION_METRIC("%L1DM", "share of the L1D load misses", "L1-dcache-load-misses", "total", 100, 1)
FUNCTION_METRIC("%TM", "share of the data TLB misses", "dTLB-load-misses", "total", 100, 1)
FUNCTION_METRIC("%IS", "share of the speculated instructions", "inst_spec", "total", 100, 1)
FUNCTION_METRIC("%CLK", "share of the CPU clock", "cpu-clock", "total", 100, 1)
FUNCTION_METRIC("%TCLK", "share of the task clock", "task-clock", "total", 100, 1)
FUNCTION_METRIC("%PF", "share of the page faults", "page-faults", "total", 100, 1)
FUNCTION_METRIC("%MIN", "share of the minor page faults", "minor-faults", "total", 100, 1)
FUNCTION_METRIC("%MAJ", "share of the major page faults", "major-faults", "total", 100, 1)
FUNCTION_METRIC("%CS", "share of the context switches", "context-switches", "total", 100, 1)
FUNCTION_METRIC("%MIG", "share of the migrations", "cpu-migrations", "total", 100, 1)
FUNCTION_METRIC("%AF", "share of the alignment faults", "alignment-faults", "total", 100, 1)
FUNCTION_METRIC("%EF", "share of the emulation faults", "emulation-faults", "total", 100, 1)
FUNCTION_METRIC("DIS", "windows that began elsewhere", "discarded", "samples", 100, 1)
