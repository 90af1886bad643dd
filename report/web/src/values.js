// SPDX-License-Identifier: GPL-2.0 OR MIT
// Values: their text, their colour, and the search for them.

export const CLASSES = 5;
// The names of the rows, by --by.
export const ROWS = {
	symbol: 'functions',
	dso: 'DSOs',
	comm: 'comms',
	thread: 'threads',
	process: 'processes',
	cpu: 'CPUs',
	pmu: 'kinds of cores',
	srcline: 'lines',
	callchain: 'call chains',
	cgroup: 'cgroups',
	children: 'functions with all that they call',
};

// Rounds as printf does: of two equally near values, to the even one.
function fixed(value, digits) {
	const near = value.toFixed(digits);
	const tail = value.toFixed(digits + 30).slice(-30);

	if (tail !== '5'.padEnd(30, '0')) return near;
	const less = value
		.toFixed(digits + 1)
		.slice(0, -1)
		.replace(/\.$/, '');
	return /[02468]$/.test(less) ? less : near;
}

export function format(value, column) {
	return value === null || value === undefined
		? '–'
		: fixed(value, column.digits);
}

// What observations are, by their source.
export const SOURCES = {
	windows: 'windows',
	samples: 'event samples',
	branches: 'branch records',
	operations: 'operations',
};

// An estimate, null if there is none.
export const estimate = one => ({
	value: one?.value ?? null,
	bounds: one && 'low' in one ? [one.low, one.high] : undefined,
	weak: one?.mark === 'weak',
	rough: one?.mark === 'rough',
});
// The value of a column in a row, a node or a cell of the timeline.
export const valueIn = (row, { name }) => estimate(row.metrics[name]);
export const hasInterval = row => Object.values(row.metrics).some(one => one && 'low' in one);
export const isWeak = row => Object.values(row.metrics).some(one => one?.mark === 'weak');
export const isShare = ({ role }) => role === 'share';
// Others have bars from 0.
export const isRate = ({ role }) => role !== 'share' && role !== 'count';

// A rough value has a ~.
export const shown = ({ value, rough }, column) => (rough ? '~' : '') + format(value, column);
// A weak one has a ?, where no style adds it.
export const marked = (one, column) => shown(one, column) + (one.weak ? '?' : '');

export const number = value => value.toLocaleString('en').replaceAll(',', '\u202f');

// A count of events with its unit.
export function amount(count, unit) {
	const times = [
		[1e9, 's'],
		[1e6, 'ms'],
		[1e3, 'µs'],
		[1, 'ns'],
	];
	const [size, name] = times.find(([size]) => count >= size) ?? times[3];

	return unit === 'nanoseconds'
		? `${Number((count / size).toPrecision(3))} ${name}`
		: `${number(Math.round(count))} ${unit}`;
}

export function interval(bounds, column) {
	const end = one => (one === null ? '∞' : format(one, column));
	return bounds ? bounds.map(end).join(' … ') : '';
}

// Classes of values by their distance from the best one, which is the least. Equally wide, so a
// value has the colour of a bad one only if it is far from the best. A zero has none. Values that
// are printed alike count once, and a single value makes no scale.
export function distances(values, column) {
	const printed = value => Number(format(value, column));
	const defined = values.filter(value => value !== null && value !== undefined);
	const known = [...new Set(defined.map(printed))].sort((a, b) => a - b);
	const best = known[0];

	if (known.length < 2)
		return { of: value => (printed(value) ? 0 : null), bounds: [], low: best };
	const classes = Math.min(CLASSES, known.length);
	const step = (known.at(-1) - best) / classes;
	const range = Array.from({ length: classes }, (_, i) =>
		Math.round((i * (CLASSES - 1)) / (classes - 1))
	);
	// a bound is of the class above it, however it is rounded
	const place = value => {
		const at = Math.floor((printed(value) - best) / step + 1e-9);
		return Math.max(0, Math.min(classes - 1, at));
	};
	return {
		of: value => (printed(value) ? range[place(value)] : null),
		bounds: range.slice(1).map((_, i) => best + step * (i + 1)),
		range,
	};
}

// The fill of a frame or a bar of a class.
export const fillOf = q => (q === null ? 'var(--raised)' : `var(--q${q})`);

// Part of a name, which may be a path, or /an expression/; null for an expression that is none.
export function matcher(text) {
	const pattern = text.match(/^\/(.*)\/$/s) ?? text.match(/^\/(.+)$/s);
	const part = text.toLowerCase();
	const hasPart = name => name.toLowerCase().includes(part);

	if (!pattern) return hasPart;
	try {
		const expression = new RegExp(pattern[1], 'i');
		return name => expression.test(name);
	} catch {
		return /^\/.*\/./s.test(text) && !text.endsWith('/') ? hasPart : null;
	}
}
