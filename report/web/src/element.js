// SPDX-License-Identifier: GPL-2.0 OR MIT
// Elements of the document. Text is always text: no name in a recording is HTML.

// A phone, as in the style.
export const isNarrow = () => matchMedia('(max-width: 40rem)').matches;

const SVG = 'http://www.w3.org/2000/svg';

export function element(name, attributes = {}, ...children) {
	const result = document.createElement(name);

	for (const [key, value] of Object.entries(attributes))
		if (value !== undefined && value !== null && value !== false)
			result.setAttribute(key, value === true ? '' : value);
	result.append(...children);
	return result;
}

export function svg(name, attributes, ...children) {
	const result = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, value);
	result.append(...children);
	return result;
}

// A table of texts. The first cell of a row is its head.
export function plainTable(head, rows) {
	return element(
		'table',
		{ class: 'plain' },
		element(
			'thead',
			{},
			element(
				'tr',
				{},
				...head.map(text => element('th', { scope: 'col' }, text))
			)
		),
		element(
			'tbody',
			{},
			...rows.map(([first, ...rest]) =>
				element(
					'tr',
					{},
					element('th', { scope: 'row' }, first),
					...rest.map(text => element('td', {}, text))
				)
			)
		)
	);
}
