// SPDX-License-Identifier: GPL-2.0 OR MIT
// The facts about the recording.

import { element, plainTable } from './element.js';
import { ROWS, SOURCES, number } from './values.js';

function fact(name, value, warn) {
	return element(
		'div',
		{ class: warn ? 'fact warn' : 'fact' },
		element('dt', {}, name),
		element('dd', {}, value)
	);
}

const frequency = hertz => (hertz ? `${number(hertz)} Hz` : 'frequency');

function setsTable(sets) {
	const head = ['events', 'period', 'window', 'burst', 'jitter', 'what counts'];
	const rows = sets.flatMap(({ source, events, groups }) =>
		groups.map(group => [
			events.map(({ name }) => name).join(', '),
			group.period ? number(group.period) : frequency(group.freq),
			...(source === 'windows'
				? [
						group.window ? number(group.window) : 'the period',
						group.burst > 1 ? number(group.burst) : 'one',
					]
				: ['none', 'none']),
			group.jitter ? `2^${group.jitter}` : 'none',
			SOURCES[source],
		])
	);
	return element(
		'div',
		{ class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Groups of events' },
		plainTable(head, rows)
	);
}

// the number of times that something unwanted happened
function trouble(name, counts) {
	return fact(
		name,
		counts.map(number).join(' → '),
		counts.some(count => count > 0)
	);
}

export function facts(data) {
	const { table } = data;
	const rows = ROWS[table.by] ?? 'rows';
	const which = data.diff ? ' after' : '';
	const recordings = data.diff ? [data.diff.before, data.diff.after] : [table];
	const counted = Object.entries(table.observations).map(([source, count]) =>
		fact(SOURCES[source] + which, number(count))
	);
	const result = [
		element(
			'dl',
			{ class: 'facts' },
			fact(rows + which, number(table.rows.length)),
			...counted,
			trouble(
				'lost records',
				recordings.map(({ lost }) => lost)
			),
			trouble(
				'throttled',
				recordings.map(({ throttled }) => throttled)
			)
		),
	];

	for (const text of data.warnings ?? [])
		result.push(element('p', { class: 'note warn' }, text));
	result.push(
		element(
			'details',
			{ class: 'recorded' },
			element('summary', {}, 'What was recorded'),
			...(data.diff
				? [
						element('h3', {}, 'Before'),
						setsTable(data.diff.before.sets),
						element('h3', {}, 'After'),
					]
				: []),
			setsTable(table.sets)
		)
	);
	return result;
}
