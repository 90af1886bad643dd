/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The metrics of functions, and the events that they are made of. Code defines the macros that
 * it wants and then includes this file.
 */
#ifndef FUNCTION_METRIC
#define FUNCTION_METRIC(...)
#endif
#ifndef HARDWARE_EVENT
#define HARDWARE_EVENT(...)
#endif
#ifndef SOFTWARE_EVENT
#define SOFTWARE_EVENT(...)
#endif
#ifndef CACHE_EVENT
#define CACHE_EVENT(...)
#endif
#ifndef ARM_EVENT
#define ARM_EVENT(...)
#endif
#ifndef EVENT_ALIAS
#define EVENT_ALIAS(...)
#endif

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
FUNCTION_METRIC("CM/KI", "L1D misses per 1000 instructions",
		"cache-misses", "instructions", 1000, 1)
FUNCTION_METRIC("%CM", "accesses that miss", "cache-misses", "cache-references", 100, 1)
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
FUNCTION_METRIC("%L1DA", "share of the L1D accesses", "cache-references", "total", 100, 1)
FUNCTION_METRIC("%L1DM", "share of the L1D misses", "cache-misses", "total", 100, 1)
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

/* perf_event_attr.config of the events that the kernel names */
HARDWARE_EVENT(0, "cycles")
HARDWARE_EVENT(1, "instructions")
HARDWARE_EVENT(2, "cache-references")
HARDWARE_EVENT(3, "cache-misses")
HARDWARE_EVENT(4, "branches")
HARDWARE_EVENT(5, "branch-misses")
HARDWARE_EVENT(6, "bus-cycles")
HARDWARE_EVENT(7, "stalled-cycles-frontend")
HARDWARE_EVENT(8, "stalled-cycles-backend")
HARDWARE_EVENT(9, "ref-cycles")

SOFTWARE_EVENT(0, "cpu-clock")
SOFTWARE_EVENT(1, "task-clock")
SOFTWARE_EVENT(2, "page-faults")
SOFTWARE_EVENT(3, "context-switches")
SOFTWARE_EVENT(4, "cpu-migrations")
SOFTWARE_EVENT(5, "minor-faults")
SOFTWARE_EVENT(6, "major-faults")
SOFTWARE_EVENT(7, "alignment-faults")
SOFTWARE_EVENT(8, "emulation-faults")
SOFTWARE_EVENT(9, "dummy")
SOFTWARE_EVENT(10, "bpf-output")
SOFTWARE_EVENT(11, "cgroup-switches")

/* L1D, read: on Arm the same counters as cache-references and cache-misses; data TLB, read */
CACHE_EVENT(0x00000, "cache-references")
CACHE_EVENT(0x10000, "cache-misses")
CACHE_EVENT(0x10003, "dTLB-load-misses")

/* Event numbers of the Arm architecture (Arm ARM, "PMU events and event numbers") */
ARM_EVENT(0x0003, "cache-misses") /* L1D_CACHE_REFILL */
ARM_EVENT(0x0004, "cache-references") /* L1D_CACHE */
ARM_EVENT(0x0005, "dTLB-load-misses") /* L1D_TLB_REFILL */
ARM_EVENT(0x0008, "instructions") /* INST_RETIRED */
ARM_EVENT(0x0010, "branch-misses") /* BR_MIS_PRED */
ARM_EVENT(0x0011, "cycles") /* CPU_CYCLES */
ARM_EVENT(0x001b, "inst_spec") /* INST_SPEC */
ARM_EVENT(0x0022, "branch-misses") /* BR_MIS_PRED_RETIRED */

/* Names of the same events, for PMUs whose numbers are unknown here */
EVENT_ALIAS("cpu-cycles", "cycles")
EVENT_ALIAS("cpu_cycles", "cycles")
EVENT_ALIAS("inst_retired", "instructions")
EVENT_ALIAS("l1d_cache", "cache-references")
EVENT_ALIAS("l1-dcache-loads", "cache-references")
EVENT_ALIAS("l1d_cache_refill", "cache-misses")
EVENT_ALIAS("l1-dcache-load-misses", "cache-misses")
EVENT_ALIAS("dtlb-load-misses", "dTLB-load-misses")
EVENT_ALIAS("l1d_tlb_refill", "dTLB-load-misses")
EVENT_ALIAS("br_mis_pred", "branch-misses")
EVENT_ALIAS("br_mis_pred_retired", "branch-misses")
EVENT_ALIAS("branch-instructions", "branches")
EVENT_ALIAS("faults", "page-faults")
EVENT_ALIAS("cs", "context-switches")
EVENT_ALIAS("migrations", "cpu-migrations")

#undef FUNCTION_METRIC
#undef HARDWARE_EVENT
#undef SOFTWARE_EVENT
#undef CACHE_EVENT
#undef ARM_EVENT
#undef EVENT_ALIAS
