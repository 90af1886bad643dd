// SPDX-License-Identifier: GPL-2.0 OR MIT
// The flame graph: frames as wide as their counts of an event, in the colour of a metric.

import flamegraph from 'd3-flame-graph';
import { select } from 'd3-selection';
import { element, svg } from './element.js';
import {
	CLASSES,
	amount,
	distances,
	fillOf,
	format,
	interval,
	isRate,
	matcher,
	number,
	shown,
	SOURCES,
	valueIn,
} from './values.js';

const CHAINS = 'perf functions record --call-graph fp,4 --user-callchains -- COMMAND';
const CELL = 22;

// Hatched: a class of values that the data cannot support.
function patterns() {
	const hatch = i =>
		svg(
			'pattern',
			{
				id: `hatch${i}`,
				width: 6,
				height: 6,
				patternUnits: 'userSpaceOnUse',
				patternTransform: 'rotate(45)',
			},
			svg('rect', { width: 6, height: 6, fill: 'var(--surface)' }),
			svg('rect', { width: 3, height: 6, fill: `var(--q${i})` })
		);
	return svg(
		'svg',
		{ class: 'patterns', width: 0, height: 0, 'aria-hidden': 'true' },
		svg('defs', {}, ...Array.from({ length: CLASSES }, (_, i) => hatch(i)))
	);
}

function each(node, visit) {
	visit(node);
	node.children.forEach(child => each(child, visit));
}

function depth(node) {
	return node.children.reduce((deepest, child) => Math.max(deepest, 1 + depth(child)), 0);
}

export function flameView(panel, data) {
	const { columns, units, root: tree } = data;
	const events = Object.keys(units).filter(name => tree.counts[name]);
	let event = events.includes(data.event) ? data.event : events[0];
	const choices = columns.filter(({ role }) => role !== 'count');
	const rates = choices.filter(isRate);
	const first = rates.find(differs) ?? rates[0] ?? choices[0];

	// a metric that is the same everywhere says nothing
	function differs(column) {
		return distances(known(column), column).bounds.length > 0;
	}
	function known(column) {
		const values = [];
		each(tree, node => {
			const { value, weak } = valueIn(node, column);
			if (node !== tree && value !== null && !weak) values.push(value);
		});
		return values;
	}

	if (!events.length) {
		panel.append(
			element(
				'p',
				{ class: 'note' },
				'There are no samples: there is nothing to draw.'
			)
		);
		return {};
	}

	const metric = element(
		'select',
		{},
		...choices.map(column =>
			element(
				'option',
				{ value: columns.indexOf(column), selected: column === first },
				column.meaning ? `${column.name}: ${column.meaning}` : column.name
			)
		)
	);
	const widths = element(
		'select',
		{},
		...events.map(name =>
			element('option', { value: name, selected: name === event }, name)
		)
	);
	const filter = element('input', {
		type: 'search',
		placeholder: 'Find',
		'aria-label': 'Find frames',
		autocomplete: 'off',
		spellcheck: 'false',
	});
	const reset = element('button', { type: 'button' }, 'Zoom out');
	const found = element('output', { class: 'shown' }),
		legend = element('div', { class: 'legend', 'aria-label': 'Colours' });
	const chartElement = element('div', {
		class: 'chart',
		role: 'tree',
	});
	const hint = element('output', { class: 'hint' });
	panel.append(
		...(data.note
			? [
					element(
						'p',
						{ class: 'note' },
						`${data.note}. To record call chains: `,
						element('code', {}, CHAINS)
					),
				]
			: []),
		element(
			'div',
			{ class: 'controls' },
			element('label', {}, 'Width ', widths),
			element('label', {}, 'Colour ', metric),
			filter,
			reset,
			found
		),
		legend,
		patterns(),
		chartElement,
		hint
	);

	let column;
	let scale;
	let match = () => false;
	const describe = ({ data: node }) => {
		const share = `${((100 * node.value) / tree.value).toFixed(1)} % of the ${event}`;
		const one = valueIn(node, column);
		const { bounds, weak } = one;
		return [
			node.name,
			share,
			amount(node.value, units[event]),
			...Object.entries(node.observations).map(
				([source, count]) => `${number(count)} ${SOURCES[source]}`
			),
			`${column.name} ${shown(one, column)}`,
			bounds ? `95 % interval ${interval(bounds, column)}` : '',
			weak ? 'weak: do not rely on this value' : '',
		]
			.filter(Boolean)
			.join('; ');
	};
	const colour = node => {
		const { value, weak } = valueIn(node, column);
		if (value === null) return 'var(--none)';
		return weak ? `url(#hatch${scale.of(value) ?? 0})` : fillOf(scale.of(value));
	};
	const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
	const chart = flamegraph()
		.cellHeight(CELL)
		.minFrameSize(1)
		.transitionDuration(still ? 0 : 200)
		.title('')
		// by the values of the data: those of the frames are 0 outside of the zoomed one
		.sort(data.note ? (a, b) => b.data.value - a.data.value : true)
		.height(CELL * (1 + depth(tree)))
		.setLabelHandler(describe)
		.setColorMapper(({ data: node }) => colour(node))
		.setDetailsHandler(text => {
			if (text) hint.textContent = text;
		})
		.onClick(node => {
			reset.disabled = !node.parent;
			mark(node);
		});

	// Frames can be walked in: one of them at a time takes the focus.
	let focused = null;
	function mark(node = focused) {
		// a frame that is too narrow to be drawn cannot take it
		node = node?.ancestors().find(frame) ?? node;
		select(chartElement)
			.selectAll('g.frame')
			.attr('role', 'treeitem')
			.attr('tabindex', d => (d === node ? 0 : -1))
			.attr('aria-label', describe)
			.attr('aria-level', d => d.depth + 1)
			.classed('found', d => Boolean(d.highlight));
		focused = node;
	}
	const frame = node =>
		select(chartElement)
			.selectAll('g.frame')
			.filter(d => d === node)
			.node();
	function go(node) {
		if (!node || !frame(node)) return;
		mark(node);
		frame(node).focus();
		hint.textContent = describe(node);
	}
	const visible = nodes =>
		nodes?.filter(node => node.value && frame(node)).sort((a, b) => a.x0 - b.x0) ?? [];
	function beside(node, step) {
		const all = visible(node.parent?.children);
		return all[all.indexOf(node) + step];
	}
	chartElement.addEventListener('keydown', event => {
		const node = select(event.target).datum?.(),
			keys = {
				ArrowUp: () => visible(node.children)[0],
				ArrowDown: () => node.parent,
				ArrowLeft: () => beside(node, -1),
				ArrowRight: () => beside(node, 1),
			};
		if (!node?.data || event.ctrlKey || event.altKey || event.metaKey) return;
		if (keys[event.key]) {
			go(keys[event.key]());
		} else if (event.key === 'Enter' || event.key === ' ') {
			chart.zoomTo(node);
			go(node);
		} else if (event.key === 'Escape') {
			chart.resetZoom();
			go(node.ancestors().find(frame));
		} else {
			return;
		}
		event.preventDefault();
	});

	function drawLegend() {
		const swatch = (fill, text) =>
			element(
				'span',
				{ class: 'swatch' },
				svg(
					'svg',
					{ width: 18, height: 14, 'aria-hidden': 'true' },
					svg('rect', { width: 18, height: 14, fill })
				),
				text
			);
		const limits = scale.bounds.map(value => format(value, column));
		const range = scale.range ?? [0];
		const texts = range.map((_, i) =>
			!limits.length
				? format(scale.low, column)
				: i === 0
					? `< ${limits[0]}`
					: i === limits.length
						? `≥ ${limits[i - 1]}`
						: `${limits[i - 1]} – ${limits[i]}`
		);
		legend.replaceChildren(
			element(
				'span',
				{ class: 'width' },
				`Width: ${event}, ${amount(tree.value, units[event])} in all`
			),
			element('strong', {}, column.name),
			...range.map((q, i) => swatch(`var(--q${q})`, texts[i])),
			swatch('var(--raised)', '0'),
			swatch('url(#hatch3)', 'not supported'),
			swatch('var(--none)', 'not defined')
		);
	}

	function widen() {
		event = widths.value;
		each(tree, node => (node.value = node.counts[event] ?? 0));
		chartElement.setAttribute(
			'aria-label',
			`Flame graph, width is ${event} in ${units[event]}`
		);
	}

	function choose() {
		column = columns[Number(metric.value)];
		scale = distances(known(column), column);
		drawLegend();
	}

	let width = 0;
	function draw() {
		const now = chartElement.clientWidth;
		if (!now) return;
		if (!width) select(chartElement).datum(tree).call(chart.width(now));
		else chart.width(now).update();
		width = now;
		mark(focused ?? select(chartElement).datum());
	}

	widths.addEventListener('change', () => {
		widen();
		drawLegend();
		chart.update(tree);
		focused = null;
		reset.disabled = true;
		search();
		mark(select(chartElement).datum());
	});
	metric.addEventListener('change', () => {
		choose();
		draw();
	});
	reset.addEventListener('click', () => {
		chart.resetZoom();
		go(select(chartElement).datum());
	});
	// Marks the frames that match. The library's search adds up the zoomed frames only.
	function search() {
		let number = 0;
		let sum = 0;
		select(chartElement)
			.datum()
			.eachBefore(node => {
				node.highlight = node.data !== tree && match(node.data.name);
				node.isInside = node.parent?.isInside || node.parent?.highlight;
				if (!node.highlight) return;
				number++;
				if (!node.isInside) sum += node.data.value;
			});
		const share = ((100 * sum) / tree.value).toFixed(1);
		found.textContent = filter.value && `${number} frames, ${share} % of the ${event}`;
	}
	filter.addEventListener('input', () => {
		const made = matcher(filter.value);
		filter.setAttribute('aria-invalid', !made);
		match = filter.value && made ? made : () => false;
		search();
		mark();
	});
	filter.addEventListener('keydown', event => {
		if (event.key === 'Escape' && filter.value) {
			filter.value = '';
			filter.dispatchEvent(new Event('input'));
		}
	});
	new ResizeObserver(() => {
		if (width && chartElement.clientWidth && chartElement.clientWidth !== width) draw();
	}).observe(chartElement);
	reset.disabled = true;
	widen();
	choose();
	draw();
	return { shown: draw };
}
