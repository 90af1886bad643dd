// SPDX-License-Identifier: GPL-2.0 OR MIT
// The levels of top-down analysis: which metric divides which other one.

// The first level, of slots; where the CPU does not count these, of cycles.
const FIRST = [
	['frontend_bound', 'bad_speculation', 'backend_bound', 'retiring', 'smt_contention'],
	['frontend_stalled_cycles', 'backend_stalled_cycles'],
];
// Names that do not begin with that of the level above. Intel's are those of its groups
// tma_..._group in tools/perf/pmu-events.
const BELOW = `
frontend_bound: fetch_bandwidth fetch_latency ifetch_bandwidth ifetch_latency
bad_speculation: branch_mispredict branch_mispredicts machine_clears other_miss_pred
backend_bound: core_bound memory_bound resource_bound
retiring: heavy_operations light_operations
fetch_latency: branch_resteers dsb_switches icache_misses itlb_misses lcp ms_switches
fetch_bandwidth: dsb lsd mite
ifetch_latency: branch_detect branch_resteer icache_misses itlb_misses
ifetch_bandwidth: cisc decode other_fb predecode
branch_resteers: clears_resteers mispredicts_resteers unknown_branches
mite: decoder0_alone mite_4wide
branch_mispredicts: other_mispredicts
machine_clears: fast_nuke nuke other_nukes
core_bound: allocation_restriction amx_busy divider ports_utilization serializing_operation
serializing_operation: c01_wait c02_wait memory_fence slow_pause
ports_utilization: ports_utilized_0 ports_utilized_1 ports_utilized_2 ports_utilized_3m
ports_utilized_0: mixing_vectors
ports_utilized_3m: alu_op_utilization load_op_utilization store_op_utilization
alu_op_utilization: port_0 port_1 port_5 port_6
load_op_utilization: port_2 port_3
store_op_utilization: port_4 port_7
memory_bound: dram_bound l1_bound l2_bound l3_bound pmm_bound store_bound
l1_bound: 4k_aliasing dtlb_load fb_full l1_hit_latency lock_latency split_loads store_fwd_blk
dtlb_load: load_stlb_hit load_stlb_miss
l3_bound: contested_accesses data_sharing l3_hit_latency sq_full
dram_bound: mem_bandwidth mem_latency
mem_bandwidth: mba_stalls
mem_latency: local_mem remote_cache remote_mem
store_bound: dtlb_store false_sharing split_stores store_latency streaming_stores
dtlb_store: store_stlb_hit store_stlb_miss
resource_bound: mem_scheduler non_mem_scheduler register reorder_buffer serialization
heavy_operations: few_uops_instructions microcode_sequencer
microcode_sequencer: assists cisc
assists: avx_assists fp_assists page_faults
light_operations: fp_arith fused_instructions int_operations memory_operations
light_operations: branch_instructions non_fused_branches other_light_ops
fp_arith: fp_scalar fp_vector x87_use
fp_vector: fp_vector_128b fp_vector_256b fp_vector_512b
int_operations: int_vector_128b int_vector_256b
other_light_ops: nop_instructions shuffles_256b
`;

const above = new Map();
for (const line of BELOW.trim().split('\n')) {
	const [name, ...below] = line.split(/:? /);
	for (const one of below) above.set(one, [...(above.get(one) ?? []), name]);
}

const bare = name => name.replace(/^.*:/, '').replace(/^tma_/, '');
// Arm and AMD name a level as the one above it and a word more: backend_bound_by_memory.
const words = name => bare(name).replace(/_(bound|by|from)(?=_|$)/g, '');

// The unit of a metric of a vendor is at the end of its meaning.
export const unit = ({ meaning }) => meaning?.match(/\(([^()]*)\)$/)?.[1] ?? '';

/*
 * The first level of the columns, [{ i: column, root: name of the first level, below: the same of
 * the next level }]; empty if they are not of top-down analysis.
 */
export function levels(columns) {
	const names = columns.map(({ name }) => bare(name));
	const first = FIRST.map(level => level.filter(name => names.includes(name))).find(
		level => level.length
	);
	const isPart = column => /%|^percent/.test(unit(column));

	if (!first) return [];
	// the column above another one: the data tell it, or the names
	function parent(i) {
		const { name } = columns[i];
		const told = columns.findIndex(column => column.name === columns[i].parent);
		const known = (above.get(names[i]) ?? []).find(one => names.includes(one));
		if (told >= 0) return told;
		if (known) return names.indexOf(known);
		if (!isPart(columns[i])) return -1;
		let best = -1;
		columns.forEach((column, at) => {
			const begin = `${words(column.name)}_`;
			if (
				words(name).startsWith(begin) &&
				isPart(column) &&
				(best < 0 || begin.length > words(columns[best].name).length)
			)
				best = at;
		});
		return best;
	}
	const parents = columns.map((_, i) => (first.includes(names[i]) ? -1 : parent(i)));
	// from the first level down; metrics in a circle are in no level
	const node = (i, root) => ({
		i,
		root,
		below: parents.flatMap((at, child) => (at === i ? [node(child, root)] : [])),
	});
	return first.map(name => node(names.indexOf(name), name));
}
