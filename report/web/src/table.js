// SPDX-License-Identifier: GPL-2.0 OR MIT
// The table of functions, and that of changes.

import { element, plainTable } from './element.js';
import { grid } from './grid.js';
import {
	ROWS,
	SOURCES,
	distances,
	estimate,
	format,
	hasInterval,
	interval,
	isRate,
	isShare,
	isWeak,
	marked,
	shown,
	valueIn,
} from './values.js';

const SMALL = 'ci';

function bar(cell, fraction) {
	const mark = element('span', { class: 'bar', 'aria-hidden': 'true' });
	mark.style.width = `calc(${100 * Math.max(0, Math.min(1, fraction))}% - 6px)`;
	cell.append(mark);
}

export function valueColumn(column, rows) {
	const of = row => valueIn(row, column);
	const sure = rows
		.map(of)
		.filter(({ value, weak }) => value !== null && !weak)
		.map(({ value }) => value);
	const scale = distances(sure, column);
	const most = sure.reduce((a, b) => Math.max(a, b), 0);

	return {
		name: column.name,
		meaning: column.meaning,
		get: row => of(row).value,
		say: row => {
			const one = of(row);
			const { bounds, weak } = one;
			return [
				`${column.name} ${shown(one, column)}`,
				bounds && `95 % interval ${interval(bounds, column)}`,
				weak && 'weak: do not rely on this value',
				column.meaning,
				column.source && `from ${SOURCES[column.source]}`,
			]
				.filter(Boolean)
				.join('; ');
		},
		draw: (cell, row) => {
			const one = of(row),
				{ value, bounds, weak } = one,
				text = element('span', { class: 'value' }, shown(one, column));
			if (value === null) cell.className = 'undefined';
			else if (weak) cell.className = 'weak';
			else if (!isRate(column)) cell.className = `bars b${scale.of(value) ?? 0}`;
			else if (scale.of(value) !== null) cell.className = `q${scale.of(value)}`;
			if (!isRate(column) && value !== null && most)
				bar(cell, value / most);
			cell.append(text);
			if (bounds)
				cell.append(
					element('small', { class: SMALL }, interval(bounds, column))
				);
		},
	};
}

const annotated = symbol =>
	element(
		'p',
		{},
		'The cycles of its code: ',
		element('code', {}, `perf annotate -s '${symbol.replaceAll("'", "'\\''")}'`)
	);

export function tableView(panel, table) {
	const { columns, rows } = table;
	const isAnnotated = columns.some(({ source }) => source === 'branches');

	grid(panel, {
		rows,
		title: table.by,
		label: ROWS[table.by] ?? 'rows',
		name: row => row.label,
		more: row => row.dso,
		columns: columns.map(column => valueColumn(column, rows)),
		sorted: columns.findIndex(isShare),
		intervals: rows.some(hasInterval),
		detail: row => {
			const metrics = plainTable(
				['metric', 'value', '95 % interval', 'meaning'],
				columns.map(column => {
					const one = valueIn(row, column);
					return [
						column.name,
						shown(one, column),
						interval(one.bounds, column) +
							(one.weak ? ' (not supported)' : ''),
						column.meaning,
					];
				})
			);
			const counts = plainTable(
				['in the whole recording', 'number'],
				[
					...Object.entries(row.observations).map(
						([source, count]) => [SOURCES[source], count]
					),
					...Object.entries(row.events).map(([event, one]) => [
						event,
						one ? Math.round(one.value) : '–',
					]),
				].map(([name, value]) => [name, String(value)])
			);
			return element(
				'div',
				{ class: 'about' },
				element('p', {}, element('strong', {}, row.label), ' ', row.dso),
				element('div', { class: 'side' }, metrics, counts),
				...(isAnnotated && row.symbol ? [annotated(row.symbol)] : [])
			);
		},
	});
	panel.append(
		element(
			'p',
			{ class: 'note' },
			'Colours: how far a value is from the lowest of its column. ',
			'A zero has none. ',
			...(rows.some(isWeak)
				? [
						element('span', { class: 'unsure' }, '?'),
						': a weak value. Do not rely on it.',
					]
				: [])
		)
	);
}

const sign = (value, column) =>
	value === null || value === undefined
		? '–'
		: `${value > 0 ? '+' : value < 0 ? '−' : '±'}${format(Math.abs(value), column)}`;
const bounds = (pair, column) =>
	pair ? `${sign(pair[0], column)} … ${sign(pair[1], column)}` : '';
const STATUS = { both: '', appeared: 'new', vanished: 'gone' };

// The change of a column in a row, and its values before and after.
function changeIn(row, { name }) {
	const { before, after, change, significant } = row.metrics[name] ?? {};

	return {
		before: estimate(before),
		after: estimate(after),
		change: change?.value ?? null,
		interval: estimate(change).bounds,
		weak: before?.mark === 'weak' || after?.mark === 'weak',
		significant,
	};
}

function changeColumn(column, rows) {
	const of = row => changeIn(row, column);
	const most = rows.reduce((a, row) => Math.max(a, Math.abs(of(row).change ?? 0)), 0);
	const both = one => `${marked(one.before, column)} → ${marked(one.after, column)}`;

	return {
		name: column.name,
		meaning: column.meaning,
		get: row => of(row).change,
		say: row => {
			const one = of(row);
			return [
				`${column.name} ${both(one)}`,
				one.change !== null && `change ${sign(one.change, column)}`,
				one.interval && `95 % interval ${bounds(one.interval, column)}`,
				one.interval &&
					(one.significant ? 'significant' : 'not significant'),
				column.meaning,
			]
				.filter(Boolean)
				.join('; ');
		},
		draw: (cell, row) => {
			const one = of(row);
			cell.className =
				one.change === null
					? 'undefined'
					: one.significant
						? one.change < 0
							? 'less'
							: 'more'
						: one.interval
							? 'unsure'
							: '';
			if (one.significant && most) bar(cell, Math.abs(one.change) / most);
			cell.append(
				element(
					'span',
					{ class: 'value' },
					one.change === null
						? both(one)
						: sign(one.change, column) + (one.weak ? '?' : '')
				),
				element(
					'small',
					{ class: SMALL },
					both(one),
					element('br'),
					bounds(one.interval, column)
				)
			);
		},
	};
}

export function diffView(panel, diff) {
	const { columns, functions: rows } = diff;

	panel.append(
		element(
			'p',
			{ class: 'note' },
			'Change from before to after: ',
			element('span', { class: 'more key' }, 'more'),
			' ',
			element('span', { class: 'less key' }, 'less'),
			' ',
			element('span', { class: 'unsure key' }, 'not significant'),
			' ?: a value is weak'
		)
	);
	grid(panel, {
		rows,
		title: diff.by,
		label: ROWS[diff.by] ?? 'rows',
		name: row =>
			STATUS[row.status] ? `${row.label} (${STATUS[row.status]})` : row.label,
		more: row => row.dso,
		columns: columns.map(column => changeColumn(column, rows)),
		intervals: true,
		detail: row =>
			element(
				'div',
				{ class: 'about' },
				element('p', {}, element('strong', {}, row.label), ' ', row.dso),
				plainTable(
					[
						'metric',
						'before',
						'after',
						'change',
						'95 % interval',
						'significance',
						'meaning',
					],
					columns.map(column => {
						const one = changeIn(row, column);
						return [
							column.name,
							marked(one.before, column),
							marked(one.after, column),
							sign(one.change, column),
							bounds(one.interval, column),
							one.significant ? 'significant' : '',
							column.meaning,
						];
					})
				)
			),
	});
}
