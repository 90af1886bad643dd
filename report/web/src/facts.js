// SPDX-License-Identifier: GPL-2.0 OR MIT
// The facts about the recording.

import { element, plainTable } from './element.js';
import { ROWS, number } from './values.js';

function fact(name, value, warn) {
	return element(
		'div',
		{ class: warn ? 'fact warn' : 'fact' },
		element('dt', {}, name),
		element('dd', {}, value)
	);
}

// by the share of a group: what counts, and what its shares are made of
const COUNTED = {
	auto: ['windows in one function', 'what opens windows'],
	none: ['all windows', 'what counts'],
	discard: ['windows in one function', 'what counts'],
	samples: ['samples of each event', 'what counts'],
	recorded: ['samples of each event, by their branch records', 'what counts'],
	branches: ['branch records', 'samples'],
};

const frequency = hertz => (hertz ? `${number(hertz)} Hz` : 'frequency');

function groupsTable(groups) {
	const head = ['events', 'period', 'window', 'burst', 'jitter', 'what counts', 'shares of'];
	const rows = groups.map(group => [
		group.events.join(', '),
		group.sample_period ? number(group.sample_period) : frequency(group.sample_freq),
		group.alternative_sample_period || group.sample_period
			? number(group.alternative_sample_period || group.sample_period)
			: frequency(group.sample_freq),
		group.alternative_sample_count > 1 ? number(group.alternative_sample_count) : 'one',
		group.jitter_alternate_period ? `2^${group.jitter_alternate_period}` : 'none',
		...COUNTED[group.share],
	]);
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
	const { samples, discarded } = table.windows;
	const percent = ((100 * discarded) / samples).toFixed(1);
	const rows = ROWS[table.by] ?? 'rows';
	const which = data.diff ? ' after' : '';
	const recordings = data.diff ? [data.diff.before, data.diff.after] : [table];
	const counted = [];
	if (table.samples) counted.push(fact('samples' + which, number(table.samples)));
	if (samples)
		counted.push(
			fact('windows' + which, number(samples)),
			fact('discarded windows', `${number(discarded)} (${percent} %)`)
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
						groupsTable(data.diff.before.groups),
						element('h3', {}, 'After'),
					]
				: []),
			groupsTable(table.groups)
		)
	);
	return result;
}
