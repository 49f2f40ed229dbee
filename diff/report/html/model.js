// ---------------------------------------------------------------- the model

const VERDICTS = ['grows', 'grew-once', 'returns', 'steady', 'shrinks', 'too-few'];
const isTrend = Array.isArray(report.series);
const views = isTrend ? report.series : [report];
const isGrouped = report.group !== 'stack'; // the report has groups instead of stacks
const hasOld = isTrend || report.inputs.some(input => input.role !== 'new');
const isOne = () => recording ? state.show !== 'growth' : !hasOld; // no OLD: nothing grew or shrank
const frames = report.frames;

/* Returns the number of a text; equal texts have equal numbers. */
const labels = [];
const labelNumbers = new Map();
function label(text) {
	let number = labelNumbers.get(text);
	if (number === undefined) {
		labelNumbers.set(text, number = labels.length);
		labels.push(text);
	}
	return number;
}

function addFrame(frame) {
	const module = frame.module ?? '(no module)';
	if (!frame.words)
		frame.words = frame.function !== undefined ? (frame.module !== undefined ? frame.module + '!' : '') + frame.function :
			frame.module !== undefined ? frame.module + '+' + frame.offset : frame.address ?? '?';
	frame.short ??= frame.words;
	frame.name = label(frame.words);
	frame.module = label(frame.is_words ? frame.words : module);
	/* Groups are named as hdiff --group names them. */
	frame.group = frame.is_words || frame.function !== undefined ? frame.name :
		label(module === '(no module)' ? module : module + '!?');
	frame.place = frame.file === undefined ? '' : frame.line ? frame.file + ':' + frame.line : frame.file;
}
frames.forEach(addFrame);
const hasPlaces = frames.some(frame => frame.place);

const wordFrames = new Map();
function wordsFrame(words) {
	if (!wordFrames.has(words)) {
		wordFrames.set(words, frames.length);
		frames.push({ words, is_words: true });
		addFrame(frames[frames.length - 1]);
	}
	return wordFrames.get(words);
}

if (isTrend)
	views.filter(series => series.table).forEach(readSeries);
if (recording) {
	report.rows = [...recording.rows, { kind: 'other', ids: [], other_rows: recording.other_rows }];
	readLives();
	report.rows.forEach((_, i) => {
		addUse(totalUse, i, 'bytes');
		addUse(totalBlocks, i, 'blocks');
	});
}

/* Returns the frames of a row in groups and in the graph, innermost first, or words in their place. */
function stackOf(row) {
	if (row.kind === 'ambiguous' || row.kind === 'one_of')
		return [wordsFrame('(ambiguous)')];
	if (row.kind === 'other')
		return [wordsFrame(`(other: ${row.other_rows} small stacks)`)];
	if (row.kind === 'unknown')
		return [wordsFrame('(stack not in the dump)')];
	if (!row.frames || !row.frames.length)
		return [wordsFrame('(no stack recorded)')];
	return row.frames;
}

const isOutermostFirst = report.frame_order === 'outermost_first';
for (const view of views) {
	for (const row of view.rows ?? []) {
		if (isOutermostFirst) {
			row.frames?.reverse();
			row.candidates?.forEach(stack => stack.reverse());
		}
		row.stack = stackOf(row);
		const own = (row.frames?.length ? row.frames : row.stack);
		row.own = own.find(frame => !frames[frame].layer) ?? own[own.length - 1]; // innermost frame that is not an allocator's
		row.title = frames[row.own].words;
		row.short = frames[row.own].short;
		// If it has no name: the nearest caller with a name.
		const caller = frames[row.own].function !== undefined ? undefined :
			own.slice(own.indexOf(row.own) + 1).find(frame => frames[frame].function !== undefined && !frames[frame].layer && !frames[frame].start);
		if (caller !== undefined) {
			row.title += ' < ' + frames[caller].words;
			row.short += ' < ' + frames[caller].short;
		}
	}
}

const hasBlocks = views.every(each => each.totals.selected.new.blocks !== null);

/* State of the page, which is also stored in the address after '#'. */
const usual = { series: 0, show: recording ? report.inputs[0].class : hasOld ? 'growth' : 'new', metric: 'bytes', order: isOutermostFirst ? 'up' : 'down', group: 'stack', search: '',
	sort: '', reversed: false, from: 0, to: 0, areas: 'function', what: 'use', hidden: '', through: '', source: '', zoom: [], theme: '' };
const state = { ...usual };
let view, rows, sums; // of the series shown; sums[metric].old[i] and .new[i] are the sums of row i
let marked = -1; // row whose stack is marked in the graph, or -1

/* Adds up the first, and the last, number of each process within the range. */
function ends(numbers) {
	let old = 0, now = 0;
	for (const part of view.parts) {
		const first = Math.max(state.from, part.first), last = Math.min(state.to, part.first + part.count - 1);
		if (first <= last) {
			old += numbers[first];
			now += numbers[last];
		}
	}
	return [old, now];
}

function readSums() {
	if (recording) {
		sums = recordingSums();
		return;
	}
	sums = {};
	for (const metric of ['bytes', 'blocks']) {
		const sum = sums[metric] = { old: new Float64Array(rows.length), new: new Float64Array(rows.length) };
		rows.forEach((row, i) => {
			[sum.old[i], sum.new[i]] = isTrend ? ends(row[metric]) : [row.old[metric], row.new[metric]];
		});
	}
}

const growth = (i, metric = state.metric) => sums[metric].new[i] - sums[metric].old[i];
const weight = i => state.show === 'growth' ? Math.abs(growth(i)) : sums[state.metric][state.show === 'old' ? 'old' : 'new'][i];

// ---------------------------------------------------------------- numbers as text

const exact = new Intl.NumberFormat('en-US');

function bytesText(value) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let unit = 0, size = Math.abs(value);
	for (; size >= 1024 && unit + 1 < units.length; unit++)
		size /= 1024;
	return (value < 0 ? '\u2212' : '') + (unit && size < 100 ? size.toFixed(1) : Math.round(size)) + ' ' + units[unit];
}

const numberText = (value, metric) => metric === 'bytes' ? bytesText(value) : exact.format(value).replace('-', '\u2212');
const growthText = (value, metric) => (value > 0 ? '+' : '') + numberText(value, metric);
const shareText = (part, all) => !all ? '' : part && part < all / 1000 ? '<0.1 %' : (100 * part / all).toFixed(1) + ' %';
const timeText = snapshot => (snapshot.time ?? snapshot.local_time ?? '').replace('T', ' ').replace(/\.\d+Z$/, '');
const lifeText = ms => ms === undefined ? '' : ms < 1000 ? Math.round(ms) + ' ms' : (ms / 1000).toFixed(1) + ' s';
const rateText = rate => rate === null ? '' : growthText(rate, 'bytes') + '/h';

function words(node) {
	const metric = state.metric, sum = tree.new[node] - tree.old[node];
	const all = tree.weight[0];
	const parts = isOne() ? [numberText(tree.new[node], metric)] :
		[growthText(sum, metric), numberText(tree.old[node], metric) + ' \u2192 ' + numberText(tree.new[node], metric)];
	if (!isOne() && tree.up[node] && tree.down[node])
		parts.push('+' + numberText(tree.up[node], metric) + ' and \u2212' + numberText(tree.down[node], metric));
	parts.push(shareText(tree.weight[node], all), exact.format(tree.rows[node]) + (tree.rows[node] === 1 ? ' stack' : ' stacks'));
	return parts.filter(part => part).join('  \u00b7  ') + (metric === 'blocks' ? '  (blocks)' : '');
}
