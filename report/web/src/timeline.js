// SPDX-License-Identifier: GPL-2.0 OR MIT
// The timeline: the share and a metric of each function, a bar for each interval.

import { element, isNarrow, plainTable, svg } from './element.js';
import { grid } from './grid.js';
import { valueColumn } from './table.js';
import {
	ROWS,
	distances,
	fillOf,
	format,
	isRate,
	isShare,
	marked,
	shown,
	valueIn,
} from './values.js';

const WIDTH = isNarrow() ? 130 : 240;
const HEIGHT = 30;
const HATCH = 'unsupported';

function pattern() {
	return svg(
		'svg',
		{ class: 'patterns', width: 0, height: 0, 'aria-hidden': 'true' },
		svg(
			'pattern',
			{
				id: HATCH,
				width: 4,
				height: 4,
				patternUnits: 'userSpaceOnUse',
				patternTransform: 'rotate(45)',
			},
			svg('rect', { width: 1.5, height: 4, fill: 'var(--soft)' })
		)
	);
}

// Returns the places of intervals and the width of one, in parts of the whole width: by time, or
// one after another if gaps would leave less than a pixel to each.
function placesOf(times) {
	const begin = times[0][0];
	const step = Math.max(times[0][1] - begin, 1e-9);
	const whole = times[times.length - 1][0] - begin + step;

	return whole / step > Math.max(WIDTH, times.length * 2)
		? { step: 1 / times.length, places: times.map((_, n) => n / times.length) }
		: { step: step / whole, places: times.map(([one]) => (one - begin) / whole) };
}

// Makes a function that writes times: as dates, or as seconds since the first one.
function writer(times, dates) {
	const [begin, end] = times[0];
	const digits = Math.max(0, Math.min(9, 1 - Math.floor(Math.log10(end - begin || 1))));

	return dates
		? seconds => new Date(seconds * 1000).toLocaleString()
		: seconds => `${(seconds - begin).toFixed(digits)} s`;
}

export function timelineView(panel, table, { times, rows, dates }) {
	const { columns } = table;
	const values = columns.map(column => valueColumn(column, table.rows));
	const items = rows.map((cells, i) => ({ row: table.rows[i], cells }));
	if (!times.length || !items.length) {
		panel.append(element('p', { class: 'note' }, 'No interval has a sample.'));
		return;
	}
	const { step, places } = placesOf(times);
	const write = writer(times, dates);
	const of = (cell, i) => {
		const one = cell && valueIn(cell, columns[i]);
		return one && one.value !== null ? one : null;
	};
	const known = ({ cells }, i) => cells.map(cell => of(cell, i)).filter(Boolean);
	const sure = (item, i) =>
		known(item, i)
			.filter(({ weak }) => !weak)
			.map(({ value }) => value);
	const say = (cell, i) => {
		const one = of(cell, i);
		return one ? marked(one, columns[i]) : '–';
	};

	// Bars of one column, with one scale in all functions. Those of one look are one path.
	function chart(i) {
		const column = columns[i];
		const all = items.flatMap(item => sure(item, i));
		const scale = distances(all, column);
		const most = all.reduce((a, b) => Math.max(a, b), 0) || 1;
		const wide = WIDTH * step;

		function fill({ value, weak }) {
			if (weak) return `url(#${HATCH})`;
			return isRate(column) ? fillOf(scale.of(value)) : 'var(--b4)';
		}
		function draw(cells) {
			const paths = new Map();
			cells.forEach((cell, n) => {
				const one = of(cell, i);
				if (!one) return;
				const part = Math.max(0, Math.min(1, one.value / most));
				const [x, high, width] = [
					WIDTH * places[n],
					Math.max(1, HEIGHT * part),
					Math.max(0.5, wide > 4 ? wide - 1 : wide),
				].map(number => number.toFixed(2));
				const bar = `M${x} ${HEIGHT}v-${high}h${width}v${high}z`;
				paths.set(fill(one), (paths.get(fill(one)) ?? '') + bar);
			});
			return svg(
				'svg',
				{
					class: 'bars',
					width: WIDTH,
					height: HEIGHT,
					'aria-hidden': 'true',
				},
				...[...paths].map(([look, d]) => svg('path', { fill: look, d }))
			);
		}
		return { i, draw, range: `0 … ${format(most, column)}` };
	}

	// A column of charts; the metric of one may change.
	function chartColumn(title, i) {
		const head = element('span', { class: 'axis' });
		let made;
		const self = {
			name: title,
			head,
			choose: at => {
				made = chart(at);
				head.textContent = `${columns[at].name} ${made.range}`;
			},
			get: ({ row }) => valueIn(row, columns[made.i]).value,
			say: item => {
				const [every, some] = [known(item, made.i), sure(item, made.i)];
				const ends = [Math.min, Math.max].map(end => end(...some));
				return [
					values[made.i].say(item.row),
					`in ${every.length} of ${times.length} intervals`,
					some.length &&
						ends
							.map(end => format(end, columns[made.i]))
							.join(' to '),
					every.length > some.length &&
						`${every.length - some.length} not supported`,
				]
					.filter(Boolean)
					.join('; ');
			},
			draw: (cell, item) => {
				const { cells, row } = item;
				const bars = made.draw(cells);
				const whole = valueIn(row, columns[made.i]);
				const weak = whole.weak && whole.value !== null;
				const text = shown(whole, columns[made.i]);
				// the interval below the mouse, for the hint
				bars.addEventListener('mousemove', event => {
					const part =
						(event.clientX -
							bars.getBoundingClientRect().left) /
						WIDTH;
					const n = places.findIndex(
						place => part >= place && part < place + step
					);
					const { name } = columns[made.i];
					const when = n < 0 ? '' : `${write(times[n][0])}: ${name}`;
					cell.title = when && `${when} ${say(cells[n], made.i)}`;
					cell.dispatchEvent(
						new Event('mouseover', { bubbles: true })
					);
				});
				bars.addEventListener('mouseleave', () => {
					cell.title = self.say(item);
				});
				cell.append(
					element(
						'div',
						{ class: weak ? 'series weak' : 'series' },
						element('span', { class: 'value' }, text),
						bars
					)
				);
			},
		};
		self.choose(i);
		return self;
	}

	const shareAt = columns.findIndex(isShare);
	const choices = columns.map((_, i) => i).filter(i => i !== shareAt);
	const differs = i =>
		isRate(columns[i]) &&
		new Set(items.flatMap(item => sure(item, i))).size > 1;
	const first = choices.find(differs) ?? choices[0];
	const shares = shareAt < 0 ? [] : [chartColumn('share', shareAt)];
	const metric = chartColumn('metric', first);
	const select = element(
		'select',
		{},
		...choices.map(i =>
			element(
				'option',
				{ value: i, selected: i === first },
				columns[i].meaning
					? `${columns[i].name}: ${columns[i].meaning}`
					: columns[i].name
			)
		)
	);
	const last = times[times.length - 1];
	panel.append(
		element(
			'p',
			{ class: 'note' },
			`${times.length} intervals, from ${write(times[0][0])} `,
			`to ${write(last[1])}. `,
			'Hatched: a weak value. Do not rely on it.',
			table.rows.length > items.length ? ` The first ${items.length} ` : '',
			table.rows.length > items.length ? `of ${table.rows.length} rows.` : ''
		),
		pattern(),
		element('div', { class: 'controls' }, element('label', {}, 'Metric ', select))
	);
	const { redraw } = grid(panel, {
		rows: items,
		title: table.by,
		label: ROWS[table.by] ?? 'rows',
		name: ({ row }) => row.label,
		more: ({ row }) => row.dso,
		columns: [...shares, metric],
		sorted: shares.length - 1,
		detail: ({ row, cells }) =>
			element(
				'div',
				{
					class: 'about scroll times',
					tabindex: 0,
					role: 'region',
					'aria-label': row.label,
				},
				element('p', {}, element('strong', {}, row.label), ' ', row.dso),
				plainTable(
					['from', ...columns.map(({ name }) => name)],
					times.map(([begin], n) => [
						write(begin),
						...columns.map((_, i) => say(cells[n], i)),
					])
				)
			),
	});
	select.addEventListener('change', () => {
		metric.choose(Number(select.value));
		redraw();
	});
}
