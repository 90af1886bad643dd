// SPDX-License-Identifier: GPL-2.0 OR MIT
// Top-down analysis: for each function where its slots go, level by level.

import { element, isNarrow } from './element.js';
import { grid } from './grid.js';
import { levels } from './levels.js';
import { valueColumn } from './table.js';
import { CLASSES, ROWS, hasInterval, isShare, shown, valueIn } from './values.js';

const QUANTILES = Array.from({ length: CLASSES }, (_, q) => `q${q}`);

function segment(value, root, weak, title) {
	const result = element('span', {
		class: `segment level${root}${weak ? ' weak' : ''}`,
		title,
	});
	// a metric can be below 0, where its events do not count quite the same
	result.style.width = `${Math.max(0, Math.min(100, value))}%`;
	return result;
}

export function topdownView(panel, table) {
	const { columns, rows } = table;
	const first = levels(columns);
	const values = columns.map(column => valueColumn(column, rows));
	const share = values[columns.findIndex(isShare)];
	const opened = new Map(); // keep the rows below a row, as they may be open

	function below(item) {
		if (!opened.has(item))
			opened.set(
				item,
				(item.node ? item.node.below : first).map(node => ({
					row: item.row,
					node,
				}))
			);
		return opened.get(item);
	}
	const drawn = item => (item.node ? [item.node] : first);
	const say = item =>
		drawn(item)
			.map(({ i }) => values[i].say(item.row))
			.join('; ');
	const valueOf = {
		name: 'value',
		meaning: 'in the unit of the metric',
		say: item => (item.node ? say(item) : ''),
		draw: (cell, item) => {
			if (!item.node) return;
			values[item.node.i].draw(cell, item.row);
			// the bar beside it has the colour
			cell.classList.remove(...QUANTILES);
		},
	};
	const bars = {
		name: `of all ${columns[first[0].i].divides}`,
		meaning: 'the width is 100 %',
		isWide: true,
		say,
		draw: (cell, item) => {
			const bar = element('div', { class: 'stack' });
			for (const { i, root } of drawn(item)) {
				const one = valueIn(item.row, columns[i]);
				const { value, weak } = one;
				const said = `${columns[i].name} ${shown(one, columns[i])}`;
				// a part may be in another unit, as misses per 1000 instructions
				if (value !== null && columns[i].unit === '%')
					bar.append(
						segment(value, root, weak, weak ? `${said}?` : said)
					);
			}
			cell.append(bar);
		},
	};

	const ofFunction = share && {
		...share,
		get: item => share.get(item.row),
		say: item => (item.node ? '' : share.say(item.row)),
		draw: (cell, item) => item.node || share.draw(cell, item.row),
	};
	const visible = [ofFunction, valueOf, bars].filter(Boolean);
	// the part that can be seen without scrolling comes first
	if (isNarrow()) visible.reverse();

	panel.append(
		element(
			'p',
			{ class: 'legend' },
			...first.map(({ i, root }) =>
				element(
					'span',
					{ class: 'swatch', title: columns[i].meaning },
					element('span', {
						class: `segment level${root}`,
						'aria-hidden': 'true',
					}),
					columns[i].name
				)
			),
			element(
				'span',
				{ class: 'swatch' },
				element('span', { class: 'segment weak', 'aria-hidden': 'true' }),
				'not supported'
			)
		)
	);
	grid(panel, {
		rows: rows.map(row => ({ row })),
		title: table.by,
		label: ROWS[table.by] ?? 'rows',
		name: item => (item.node ? columns[item.node.i].name : item.row.label),
		more: item => (item.node ? columns[item.node.i].meaning : item.row.dso),
		columns: visible,
		children: below,
		intervals: rows.some(hasInterval),
		sorted: visible.indexOf(ofFunction),
	});
}
