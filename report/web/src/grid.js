// SPDX-License-Identifier: GPL-2.0 OR MIT
// A table that can be sorted, filtered and walked in. table-core decides which rows are shown, the
// view decides how they look.

import {
	createTable,
	getCoreRowModel,
	getFilteredRowModel,
	getPaginationRowModel,
	getSortedRowModel,
} from '@tanstack/table-core';
import { element } from './element.js';
import { matcher } from './values.js';

const PAGE = 100;
const STEPS = {
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1],
	Home: [0, -Infinity],
	End: [0, Infinity],
	PageUp: [-20, 0],
	PageDown: [20, 0],
};
const ARROWS = { asc: '▲', desc: '▼', none: '' };
const SORTS = { asc: 'ascending', desc: 'descending' };

const breakable = name =>
	(name.match(/[^_]*_|[^_]+$/g) ?? []).flatMap((part, i) =>
		i ? [element('wbr'), part] : [part]
	);

/*
 * rows: any objects. title: of the first column. name(row): what is in it and is
 * looked through by the filter besides more(row). columns: { name, meaning,
 * get(row): what it sorts by, if anything, draw(cell, row), say(row): a sentence on the
 * cell, head: an element below its name, isWide: whether it takes the room that is left }.
 * detail(row): an element. children(row): the rows below one, of a tree.
 * sorted: the column that the rows are sorted by, if any.
 * Returns redraw(), for values that have become others.
 */
export function grid(
	panel,
	{ rows, title, name, more, columns, detail, children, label, intervals, sorted = -1 }
) {
	const opened = new Set();
	let match = () => true;
	let table;
	let focused = 0;

	const filter = element('input', {
		type: 'search',
		placeholder: `Filter ${label}`,
		'aria-label': `Filter ${label}`,
		autocomplete: 'off',
		spellcheck: 'false',
	});
	const shown = element('output', { class: 'shown' });
	const hint = element('output', { class: 'hint' });
	const pages = element('div', { class: 'pages', role: 'group', 'aria-label': 'Pages' });
	const check = element('input', { type: 'checkbox' });
	const head = element('tr');
	const body = element('tbody');
	const whole = element(
		'table',
		children
			? { role: 'treegrid', class: 'grid' }
			: { role: 'grid', class: 'grid', 'aria-rowcount': rows.length + 1 },
		element('thead', {}, head),
		body
	);
	const scroller = element('div', { class: 'scroll tall' }, whole);
	panel.append(
		element(
			'div',
			{ class: 'controls' },
			filter,
			...(intervals ? [element('label', {}, check, ' 95 % intervals')] : []),
			shown,
			pages
		),
		scroller,
		hint
	);

	// Missing values come last in either order; table-core turns the sign around for the other.
	function compare(one, other, id) {
		const [a, b] = [one.getValue(id), other.getValue(id)];
		const missing = (a === undefined) - (b === undefined);
		if (missing) return table.getState().sorting[0].desc ? -missing : missing;
		return a === b ? 0 : a > b ? 1 : -1;
	}

	const all = [
		{
			id: 'name',
			name: title,
			accessorFn: row => name(row),
			sortingFn: 'text',
			sortDescFirst: false,
		},
		...columns.map((column, i) => ({
			id: `c${i}`,
			accessorFn: row => column.get?.(row) ?? undefined,
			sortingFn: compare,
			sortUndefined: false,
			sortDescFirst: true,
			enableGlobalFilter: false,
		})),
	];
	const options = {
		data: rows,
		columns: all,
		renderFallbackValue: null,
		enableSortingRemoval: false,
		autoResetPageIndex: false,
		getCoreRowModel: getCoreRowModel(),
		getFilteredRowModel: getFilteredRowModel(),
		getSortedRowModel: getSortedRowModel(),
		getPaginationRowModel: getPaginationRowModel(),
		globalFilterFn: row => match(name(row.original)) || match(more(row.original)),
		state: {},
		onStateChange: change =>
			update(typeof change === 'function' ? change(table.getState()) : change),
	};

	function update(state) {
		table.setOptions(before => ({ ...before, state }));
		render();
	}

	function headCell(i) {
		const column = i ? columns[i - 1] : { name: title, meaning: '', get: name };
		const cell = element('th', {
			scope: 'col',
			class: i ? column.isWide && 'wide' : 'name',
		});
		if (column.get) {
			const button = element(
				'button',
				{ type: 'button', title: column.meaning || undefined },
				column.name,
				element('span', { 'aria-hidden': 'true', class: 'arrow' })
			);
			button.addEventListener('click', () => {
				focused = 0;
				table.setPageIndex(0);
				table.getColumn(all[i].id).toggleSorting();
			});
			cell.append(button);
		} else {
			cell.append(
				element(
					'span',
					{ class: 'title', title: column.meaning || undefined },
					column.name
				)
			);
		}
		if (column.head) cell.append(column.head);
		return cell;
	}

	function rowCells(row, at, level = 1) {
		const below = children?.(row);
		const expanded = below?.length === 0 ? undefined : String(opened.has(row));
		const first = element(
			'th',
			{
				scope: 'row',
				class: 'name',
				role: 'rowheader',
				title: more(row),
				'aria-expanded': below ? undefined : expanded,
			},
			// a long name of a metric may go on after each _
			element('span', {}, ...breakable(name(row)))
		);
		const cells = columns.map(column => {
			const cell = element('td', { title: column.say(row) || undefined });
			column.draw(cell, row);
			return cell;
		});
		const line = element(
			'tr',
			below
				? { class: 'row', 'aria-level': level, 'aria-expanded': expanded }
				: { class: 'row', 'aria-rowindex': at + 2 },
			first,
			...cells
		);
		first.style.setProperty('--level', level - 1);
		for (const cell of line.children) cell.tabIndex = -1;
		line.addEventListener('click', event => {
			// the user copies a name; a click by key has no detail
			if (event.detail && String(getSelection())) return;
			if (expanded) opened.delete(row) || opened.add(row);
			focused = lines().indexOf(line);
			render(true);
		});
		if (below)
			return opened.has(row)
				? [line, ...below.flatMap(child => rowCells(child, at, level + 1))]
				: [line];
		const about =
			opened.has(row) &&
			element(
				'tr',
				{ class: 'detail' },
				element('td', { colspan: columns.length + 1 }, detail(row))
			);
		return about ? [line, about] : [line];
	}

	const lines = () => [...body.querySelectorAll('tr.row')];

	function focusCell(row, column) {
		const there = lines();
		const line = there[Math.max(0, Math.min(row, there.length - 1))];
		const cell =
			line?.children[Math.max(0, Math.min(column, line.children.length - 1))];

		if (!cell) return;
		body.querySelector('[tabindex="0"]')?.setAttribute('tabindex', -1);
		cell.tabIndex = 0;
		focused = there.indexOf(line);
		// scroll the cell out from under the head and the names, which stay in place
		const left = cell === line.firstChild ? 0 : line.firstChild.offsetWidth;
		scroller.style.scrollPadding = `${head.offsetHeight}px 0 0 ${left}px`;
		cell.focus({ preventScroll: true });
		cell.scrollIntoView({ block: 'nearest', inline: 'nearest' });
	}

	function page(text, name, index, possible) {
		const button = element(
			'button',
			{ type: 'button', 'aria-label': name, disabled: !possible },
			text
		);
		button.addEventListener('click', () => {
			focused = 0;
			table.setPageIndex(index);
			// this button has been replaced
			const again = [...pages.querySelectorAll('button:enabled')];
			(again.find(one => one.ariaLabel === name) ?? again[0]).focus();
		});
		return button;
	}

	function render(focus) {
		const { pageIndex, pageSize } = table.getState().pagination;
		const found = table.getFilteredRowModel().rows.length;
		const count = Math.max(1, table.getPageCount());
		const here = table.getRowModel().rows;
		const column = document.activeElement?.cellIndex ?? 0;

		all.forEach(({ id }, i) => {
			const cell = head.children[i];
			const order = table.getColumn(id).getIsSorted();
			const arrow = cell.querySelector('.arrow');
			if (arrow) arrow.textContent = ARROWS[order || 'none'];
			if (order) cell.setAttribute('aria-sort', SORTS[order]);
			else cell.removeAttribute('aria-sort');
		});
		body.replaceChildren(
			...here.flatMap((row, i) =>
				rowCells(row.original, pageIndex * pageSize + i)
			)
		);
		if (!here.length)
			body.append(
				element(
					'tr',
					{ class: 'none' },
					element(
						'td',
						{ colspan: columns.length + 1 },
						rows.length
							? 'No name matches.'
							: `There are no ${label}.`
					)
				)
			);
		shown.textContent =
			found === rows.length
				? `${found} ${label}`
				: `${found} of ${rows.length} ${label}`;
		pages.hidden = count < 2;
		pages.replaceChildren(
			page('«', 'First page', 0, pageIndex > 0),
			page('‹', 'Previous page', pageIndex - 1, pageIndex > 0),
			element('span', {}, `${pageIndex + 1} / ${count}`),
			page('›', 'Next page', pageIndex + 1, pageIndex + 1 < count),
			page('»', 'Last page', count - 1, pageIndex + 1 < count)
		);
		body.querySelectorAll('th.name').forEach((cell, i) => {
			if (i === focused) cell.tabIndex = 0;
		});
		if (focus) focusCell(focused, column);
	}

	filter.addEventListener('input', () => {
		const found = matcher(filter.value);
		filter.setAttribute('aria-invalid', !found);
		filter.title = found ? '' : 'This is not a regular expression';
		match = found ?? (() => false);
		focused = 0;
		table.setPageIndex(0);
		// a new object each time, as the filter's function has changed
		table.setGlobalFilter(filter.value === '' ? undefined : { text: filter.value });
	});
	filter.addEventListener('keydown', event => {
		if (event.key === 'Escape' && filter.value) {
			filter.value = '';
			filter.dispatchEvent(new Event('input'));
			event.preventDefault();
		} else if (event.key === 'ArrowDown' || event.key === 'Enter') {
			focusCell(0, 0);
			event.preventDefault();
		}
	});
	check.addEventListener('change', () => whole.classList.toggle('intervals', check.checked));
	body.addEventListener('keydown', event => {
		const cell = event.target.closest('[tabindex]');
		const step = STEPS[event.key];
		const row = lines().indexOf(cell?.parentElement);

		if (row < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
		const line = cell.parentElement;
		const first = line.firstChild;
		const expanded = [line, first].some(
			one => one.getAttribute('aria-expanded') === 'true'
		);
		const inTree = children && cell === first;
		if (
			inTree &&
			event.key === 'ArrowRight' &&
			line.getAttribute('aria-expanded') === 'false'
		) {
			cell.click();
			event.preventDefault();
		} else if (inTree && event.key === 'ArrowLeft' && expanded) {
			cell.click();
			event.preventDefault();
		} else if (inTree && event.key === 'ArrowLeft') {
			focusCell(above(row), 0);
			event.preventDefault();
		} else if (step) {
			focusCell(row + step[0], cell.cellIndex + step[1]);
			event.preventDefault();
		} else if (event.key === 'Enter' || event.key === ' ') {
			cell.click();
			event.preventDefault();
		} else if (event.key === 'Escape') {
			if (expanded) cell.click();
			else filter.focus();
		}
	});
	// the row above one in the tree
	function above(row) {
		const there = lines();
		const levelOf = line => Number(line.getAttribute('aria-level'));
		const level = levelOf(there[row]);
		while (row && levelOf(there[row]) >= level) row--;
		return row;
	}
	const tell = event => {
		const cell = event.target.closest('tbody td[title], tbody th.name');
		if (!cell) return;
		const first = cell.parentElement.firstChild;
		hint.replaceChildren(
			element('bdi', {}, first.textContent), // it may be written to the left
			cell === first ? `  ${cell.title}` : `: ${cell.title}`
		);
	};
	body.addEventListener('focusin', tell);
	body.addEventListener('mouseover', tell);

	table = createTable(options);
	head.append(...all.map((_, i) => headCell(i)));
	update({
		...table.initialState,
		sorting: sorted < 0 ? [] : [{ id: `c${sorted}`, desc: true }],
		pagination: { pageIndex: 0, pageSize: PAGE },
	});
	return {
		// the values by which rows are sorted may have changed
		redraw: () => {
			table.setOptions(before => ({ ...before, data: [...rows] }));
			render();
		},
	};
}
