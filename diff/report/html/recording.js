// ---------------------------------------------------------------- a window of a recording

/*
 * The window is divided into spans. Edge 0 is its start, and span i ends at edge i. An entry of the table counts blocks of a
 * row: those that were allocated in span `birth` (0: before the window) and freed in span `death` (number of edges: not in the
 * window). diff/report/page_lives.c describes the form of the table.
 */
const recording = report.recording ?? null;
const edges = recording?.edges ?? [];
let lives; // {first, birth, death, blocks, bytes}; first[row] is the row's first entry

const CLASSES = {
	aifo: 'AIFO, impacting: allocated inside, freed outside or never',
	aifi: 'AIFI, transient: allocated and freed inside',
	aofi: 'AOFI: allocated outside, freed inside',
	aofo: 'AOFO: existed before and after',
};
const SHOWN = { growth: 'Growth', ...CLASSES, ai: 'AI: allocated inside', end: 'Use at the end', peak: 'Use at the peak' };

function readLives() {
	const next = tableReader(recording.lives);
	const count = recording.rows.length + 1, entries = { birth: [], death: [], blocks: [], bytes: [] };
	lives = { first: new Uint32Array(count + 1) };
	for (let row = 0; row < count; row++) {
		let left = next(), birth = 0;
		const size = next() - 1;
		lives.first[row] = entries.birth.length;
		for (; left; left--) {
			birth += next();
			entries.birth.push(birth);
			entries.death.push(birth + next());
			const blocks = next();
			entries.blocks.push(blocks);
			entries.bytes.push(size < 0 ? next() : size * blocks);
		}
	}
	lives.first[count] = entries.birth.length;
	lives.birth = Uint16Array.from(entries.birth);
	lives.death = Uint16Array.from(entries.death);
	lives.blocks = Float64Array.from(entries.blocks);
	lives.bytes = Float64Array.from(entries.bytes);
}

/* Stores the sums of all classes between two edges: result.aifo[row], and so on. */
function classSums(metric, from, to) {
	const count = recording.rows.length + 1, amount = lives[metric];
	const sum = Object.fromEntries(Object.keys(CLASSES).map(name => [name, new Float64Array(count)]));
	for (let row = 0; row < count; row++) {
		for (let i = lives.first[row]; i < lives.first[row + 1]; i++) {
			const birth = lives.birth[i], death = lives.death[i];
			if (birth <= to && death > from)
				sum[birth > from ? death > to ? 'aifo' : 'aifi' : death > to ? 'aofo' : 'aofi'][row] += amount[i];
		}
	}
	return sum;
}

/* Adds a row's use at each edge to `use`. */
function addUse(use, row, metric) {
	const amount = lives[metric], change = new Float64Array(edges.length + 1);
	for (let i = lives.first[row]; i < lives.first[row + 1]; i++) {
		change[lives.birth[i]] += amount[i];
		change[lives.death[i]] -= amount[i];
	}
	for (let i = 0, now = 0; i < edges.length; i++) {
		now += change[i];
		use[i] += now;
	}
}

/* Returns the edge between `from` and `to` with the highest use. Use between two edges may be higher. */
function peakEdge(from, to) {
	let best = from;
	for (let i = from; i <= to; i++) {
		if (totalUse[i] > totalUse[best])
			best = i;
	}
	return best;
}

const totalUse = new Float64Array(edges.length), totalBlocks = new Float64Array(edges.length); // at each edge
let classTotals; // sums of the classes of all rows, by metric

/* Computes old[] and new[] of all rows for what is shown between the chosen edges. */
function recordingSums() {
	const { from, to, show } = state, result = {};
	const peak = show === 'peak' ? peakEdge(from, to) : to;
	classTotals = {};
	for (const metric of ['bytes', 'blocks']) {
		const sum = classSums(metric, from, to);
		const old = new Float64Array(rows.length);
		const now = show === 'peak' ? classSums(metric, from, peak) : sum;
		classTotals[metric] = Object.fromEntries(Object.keys(CLASSES).map(name => [name, sum[name].reduce((a, b) => a + b, 0)]));
		const pick = {
			growth: i => sum.aifo[i] + sum.aofo[i],
			ai: i => sum.aifo[i] + sum.aifi[i],
			end: i => sum.aifo[i] + sum.aofo[i],
			peak: i => now.aifo[i] + now.aofo[i],
		}[show] ?? (i => sum[show][i]);
		result[metric] = { old, new: Float64Array.from(old, (_, i) => pick(i)), allocated: Float64Array.from(old, (_, i) => sum.aifo[i] + sum.aifi[i]), transient: sum.aifi };
		if (show === 'growth')
			old.forEach((_, i) => { old[i] = sum.aofi[i] + sum.aofo[i]; });
	}
	return result;
}

const secondsText = ms => (ms / 1000).toFixed(3) + ' s';

/* Returns how a moment is written on the command line. */
const momentOf = i => edges[i].label ?? (edges[i].ms / 1000).toFixed(3) + 's';

/* Returns the number of the edge for a text: a label, 1.2, 1.2s, 350ms or 1m30s; or -1. */
function edgeOf(text) {
	const label = edges.findIndex(edge => edge.label === text.trim());
	if (label >= 0)
		return label;
	const parts = text.trim().match(/^(?:(\d+)\s*h)?\s*(?:(\d+)\s*m(?!s))?\s*(?:([\d.]+)\s*(ms|s)?)?$/);
	if (!parts || !text.trim())
		return -1;
	const ms = 3_600_000 * (parts[1] ?? 0) + 60_000 * (parts[2] ?? 0) + (parts[3] ?? 0) * (parts[4] === 'ms' ? 1 : 1000);
	let best = 0;
	edges.forEach((edge, i) => {
		if (Math.abs(edge.ms - ms) <= Math.abs(edges[best].ms - ms)) // the last of a millisecond
			best = i;
	});
	return Number.isNaN(ms) ? -1 : best;
}

/* Returns the range as a text for the page's address, and back. */
const rangeText = () => [state.from, state.to].map(i => edges[i].label?.includes(',') ? edges[i].ms / 1000 : edges[i].label ?? edges[i].ms / 1000).join();

function readRange(text) {
	const found = text.split(',').map(edgeOf);
	if (found.length === 2 && !found.includes(-1))
		[state.from, state.to] = found.sort((a, b) => a - b);
}

function showClasses() {
	const lines = Object.keys(CLASSES).map(name => {
		const line = element('tr', undefined, name === state.show ? 'asked' : '');
		line.dataset.name = name;
		for (const metric of ['bytes', 'blocks']) {
			const cell = element('td', exact.format(classTotals[metric][name]));
			cell.dataset.n = classTotals[metric][name];
			line.append(cell);
		}
		line.append(element('td', CLASSES[name]));
		return line;
	});
	const head = element('tr');
	head.append(element('th', 'Bytes'), element('th', 'Blocks'), element('th', `${momentOf(state.from)} to ${momentOf(state.to)}`));
	$('classes').replaceChildren(head, ...lines);
}
