// SPDX-License-Identifier: GPL-2.0 OR MIT
// usage: node build.js TEMPLATE
// Makes one file of the page's code, style and libraries. Its policy allows this
// very code and style, by their hashes, and no network.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { build } from 'esbuild';

const [template] = process.argv.slice(2);
const result = await build({
	entryPoints: ['src/main.js'],
	bundle: true,
	minify: true,
	target: ['es2020'],
	outdir: 'out',
	write: false,
	metafile: true,
});
const output = suffix => result.outputFiles.find(file => file.path.endsWith(suffix)).text.trim();
const code = output('.js');
const style = output('.css');
const hash = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// the licences of the libraries go where their code goes
function licences() {
	const folders = new Set(
		Object.keys(result.metafile.inputs)
			.map(path => path.match(/^node_modules\/(@[^/]+\/)?[^/]+/)?.[0])
			.filter(Boolean)
	);
	return [...folders]
		.sort()
		.map(folder => {
			const { name, version, license } = JSON.parse(
				readFileSync(`${folder}/package.json`, 'utf8')
			);
			const file = `${folder}/LICENSE`;
			const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
			return `${name} ${version} (${license})\n\n${text}`;
		})
		.join('\n\n')
		.replaceAll('<', '‹')
		.replaceAll('>', '›');
}

const parts = {
	POLICY: [
		"default-src 'none'",
		`script-src ${hash(code)}`,
		`style-src ${hash(style)}`,
		'img-src data:',
		"base-uri 'none'",
		"form-action 'none'",
	].join('; '),
	STYLE: style,
	CODE: code,
	LICENCES: licences(),
};
const page = readFileSync('src/page.html', 'utf8').replace(
	/@(POLICY|STYLE|CODE|LICENCES)@/g,
	(_, name) => parts[name]
);
for (const mark of ['@DATA@', '@TITLE@'])
	if (page.split(mark).length !== 2) throw new Error(`${mark} is not once in the page`);
mkdirSync(dirname(template), { recursive: true });
writeFileSync(`${template}.new`, page);
renameSync(`${template}.new`, template);
console.log(`${template}: ${Math.round(page.length / 1024)} kB`);
