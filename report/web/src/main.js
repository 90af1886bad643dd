// SPDX-License-Identifier: GPL-2.0 OR MIT
// The page: what was recorded, and its views.

import './style.css';
import { element } from './element.js';
import { facts } from './facts.js';
import { diffView, tableView } from './table.js';
import { flameView } from './flame.js';
import { levels } from './levels.js';
import { timelineView } from './timeline.js';
import { topdownView } from './topdown.js';

const data = JSON.parse(document.getElementById('data').textContent);
const after = data.diff ? ', after' : '';
const views = [
	...(data.diff
		? [{ id: 'diff', title: 'Changes', make: panel => diffView(panel, data.diff) }]
		: []),
	{
		id: 'table',
		title: data.diff ? 'After' : 'Table',
		make: panel => tableView(panel, data.table),
	},
	{
		id: 'flame',
		title: `Flame graph${after}`,
		make: panel => flameView(panel, data.flame),
	},
	...(levels(data.table.columns).length
		? [
				{
					id: 'topdown',
					title: `Top-down${after}`,
					make: panel => topdownView(panel, data.table),
				},
			]
		: []),
	...(data.timeline
		? [
				{
					id: 'timeline',
					title: 'Timeline',
					make: panel =>
						timelineView(panel, data.table, data.timeline),
				},
			]
		: []),
];

// a view is made when it is shown first
function show(view, focus) {
	for (const other of views) {
		const selected = other === view;
		other.tab.setAttribute('aria-selected', selected);
		other.tab.tabIndex = selected ? 0 : -1;
		other.panel.hidden = !selected;
	}
	view.api ??= view.make(view.panel) ?? {};
	view.api.shown?.();
	if (focus) view.tab.focus();
}

function current() {
	return views.find(view => !view.panel.hidden);
}

function makeViews() {
	const tabs = document.getElementById('views');
	const panels = document.getElementById('panels');

	for (const view of views) {
		view.tab = element(
			'button',
			{
				type: 'button',
				role: 'tab',
				id: `tab-${view.id}`,
				'aria-controls': view.id,
			},
			view.title
		);
		view.panel = element('section', {
			id: view.id,
			role: 'tabpanel',
			'aria-labelledby': `tab-${view.id}`,
		});
		view.tab.addEventListener('click', () => show(view));
		tabs.append(view.tab);
		panels.append(view.panel);
	}
	tabs.addEventListener('keydown', event => {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		if (step) {
			show(
				views[
					(views.indexOf(current()) + step + views.length) %
						views.length
				],
				true
			);
			event.preventDefault();
		}
	});
}

// The theme is that of the system, until the user chooses another.
function makeTheme() {
	const dark = matchMedia('(prefers-color-scheme: dark)');
	const button = document.getElementById('theme');
	let chosen = null;

	const apply = () => {
		const theme = chosen ?? (dark.matches ? 'dark' : 'light');
		document.documentElement.dataset.theme = theme;
		button.textContent = theme === 'dark' ? '☀ Light' : '☾ Dark';
		button.setAttribute('aria-label', theme === 'dark' ? 'Light theme' : 'Dark theme');
	};
	button.addEventListener('click', () => {
		chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
		apply();
	});
	dark.addEventListener('change', apply);
	apply();
}

function makeKeys() {
	document.addEventListener('keydown', event => {
		if (
			event.ctrlKey ||
			event.altKey ||
			event.metaKey ||
			event.target.matches('input, select')
		)
			return;
		if (event.key === '/') {
			current().panel.querySelector('input[type=search]')?.focus();
			event.preventDefault();
		} else if (event.key === 'd') {
			document.getElementById('theme').click();
		} else if (views[Number(event.key) - 1]) {
			show(views[Number(event.key) - 1], true);
		}
	});
}

makeTheme();
document.getElementById('inputs').textContent = data.title;
document.getElementById('facts').append(...facts(data));
makeViews();
makeKeys();
show(views[0]);
