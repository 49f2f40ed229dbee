/*
 * The page of hdiff -o html. Its data is in the element "data": the report in the form of hdiff-json(5), except that
 * frames are indexes in "frames". Texts are inserted as text, never as markup.
 */
const $ = id => document.getElementById(id);
const report = JSON.parse($('data').textContent);
const started = performance.now();

// ---------------------------------------------------------------- light and dark

const darkened = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (document.documentElement.dataset.theme ?? (darkened.matches ? 'dark' : 'light')) === 'dark';

function setTheme(theme) {
	if (theme)
		document.documentElement.dataset.theme = theme;
	else
		delete document.documentElement.dataset.theme;
	$('theme').textContent = isDark() ? 'Light' : 'Dark';
}

if (!report) // a chart, which has its own colours
	return;

// ---------------------------------------------------------------- copying

/* Copies a text, in the old way if the browser does not allow the new one to files. */
function copyText(text) {
	const copy = () => {
		const field = document.body.appendChild(document.createElement('textarea'));
		field.value = text;
		field.select();
		document.execCommand('copy');
		field.remove();
	};
	if (navigator.clipboard)
		navigator.clipboard.writeText(text).catch(copy);
	else
		copy();
}

// ---------------------------------------------------------------- tables

/* Returns a function that returns the next number of a table (diff/report/page_table.h). */
function tableReader(base64) {
	const text = atob(base64);
	let at = 0;
	return () => {
		let value = 0, unit = 1, byte;
		do {
			byte = text.charCodeAt(at++);
			value += (byte & 127) * unit;
			unit *= 128;
		} while (byte > 127);
		return value;
	};
}

/* Stores the sums of a trend's rows in them (diff/report/page_series.c). */
function readSeries(series) {
	const next = tableReader(series.table), count = series.snapshots.length;
	const read = () => {
		const values = new Float64Array(count);
		for (let i = 0, value = 0; i < count; i++) {
			const number = next();
			value += number % 2 ? (number + 1) / 2 : -number / 2;
			values[i] = value;
			for (let same = number ? 0 : next(); same; same--)
				values[++i] = value;
		}
		return values;
	};
	if (series.other_rows)
		series.rows.push({ kind: 'other', ids: [], other_rows: series.other_rows, trend: { verdict: '', bytes_per_hour: null } });
	for (const row of series.rows) {
		const size = next() - 1;
		row.blocks = read();
		row.bytes = size < 0 ? read() : row.blocks.map(blocks => blocks * size);
	}
}
