// SPDX-License-Identifier: GPL-2.0 OR MIT
// Thresholds that the reader sets, by column. They are in the page's address after the #, so that
// a link has them; no browser sends that part to anyone.

import { format } from './values.js';

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?`;
const LIMIT = new RegExp(String.raw`^\s*([<>]?)\s*(${NUMBER})\s*$`, 'i');
const listeners = [];
let limits = read();

// { text, isLow, bound } of "> 2", "< 0.5", and of "2", which is "> 2"; null if it is none.
export function parseLimit(text) {
	const [, sign, number] = text.match(LIMIT) ?? [];
	const bound = Number(number);

	return Number.isFinite(bound)
		? { text: `${sign || '>'} ${number}`, isLow: sign === '<', bound }
		: null;
}

function read() {
	const found = new Map();
	for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
		const limit = parseLimit(text);
		if (limit) found.set(name, limit);
	}
	return found;
}

function tell() {
	listeners.forEach(listener => listener());
}

function keep() {
	const words = new URLSearchParams([...limits].map(([name, { text }]) => [name, text]));
	// an empty # would stay in the address
	history.replaceState(null, '', limits.size ? `#${words}` : location.href.split('#')[0]);
	tell();
}

export const limitOf = name => limits.get(name);
export const limitsSet = () => limits.size;
export const onLimits = listener => listeners.push(listener);

export function setLimit(name, limit) {
	if (limit) limits.set(name, limit);
	else limits.delete(name);
	keep();
}

export function clearLimits() {
	limits = new Map();
	keep();
}

addEventListener('hashchange', () => {
	limits = read();
	tell();
});

/*
 * Returns the place of a value, as it is printed: 'beyond' the threshold of its column with all of
 * its interval, 'perhaps' if the interval reaches across, else ''. Always '' for a weak value.
 * undefined without a threshold.
 */
export function judge(column, value, bounds, weak) {
	const limit = limits.get(column.name);

	if (!limit || value === null || value === undefined || weak) return limit && '';
	const isPast = one => {
		const printed = Number(format(one, column));
		return limit.isLow ? printed < limit.bound : printed > limit.bound;
	};
	if (!isPast(value)) return '';
	return !bounds || bounds.every(isPast) ? 'beyond' : 'perhaps';
}

// The place of a value in words.
export function sayJudged(column, value, bounds, weak) {
	const limit = limits.get(column.name);
	const judged = judge(column, value, bounds, weak);

	return judged === 'beyond'
		? `past the threshold ${limit.text}`
		: judged === 'perhaps'
			? `perhaps past the threshold ${limit.text}: the interval reaches across`
			: '';
}
