// SPDX-License-Identifier: GPL-2.0 OR MIT
// The levels of top-down analysis: which metric divides which other one.

// The first level is of slots; where the CPU does not count these, of cycles.
const FIRST = ['slots', 'cycles'];

/*
 * The first level of the columns, [{ i: column, root: its place in the first level, below: the same
 * of the next level }]; empty if they are not of top-down analysis.
 */
export function levels(columns) {
	const whole = FIRST.find(one => columns.some(({ divides }) => divides === one));
	const node = (column, root) => ({
		i: columns.indexOf(column),
		root,
		below: columns
			.filter(({ parent, divides }) => parent === column.name && !divides)
			.map(part => node(part, root)),
	});

	return columns.filter(({ divides }) => whole && divides === whole).map(node);
}
