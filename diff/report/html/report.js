'use strict';
/*
 * The page of hdiff -o html. Its data is in the element "data": the report in the form of hdiff-json(5), except that
 * frames are indexes in "frames". Texts are inserted as text, never as markup.
 */
(() => {

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

// ---------------------------------------------------------------- the model

const VERDICTS = ['grows', 'grew-once', 'returns', 'steady', 'shrinks', 'too-few'];
const isTrend = Array.isArray(report.series);
const views = isTrend ? report.series : [report];
const isGrouped = report.group !== 'stack'; // the report has groups instead of stacks
const isOne = !isTrend && !report.inputs.some(input => input.role !== 'new'); // no OLD: nothing grew or shrank
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

const wordFrames = new Map();
function wordsFrame(words) {
	if (!wordFrames.has(words)) {
		wordFrames.set(words, frames.length);
		frames.push({ words, is_words: true });
		addFrame(frames[frames.length - 1]);
	}
	return wordFrames.get(words);
}

/* Returns the frames of a row in groups and in the graph, innermost first, or words in their place. */
function stackOf(row) {
	if (row.kind === 'ambiguous' || row.kind === 'one_of')
		return [wordsFrame('(ambiguous)')];
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

/* State of the page, which is also stored in the address after '#'. */
const usual = { series: 0, show: isOne ? 'new' : 'growth', metric: 'bytes', order: isOutermostFirst ? 'up' : 'down', group: 'stack', search: '',
	sort: '', reversed: false, from: 0, to: 0, zoom: [], theme: '' };
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
	sums = {};
	for (const metric of ['bytes', 'blocks']) {
		const sum = sums[metric] = { old: new Float64Array(rows.length), new: new Float64Array(rows.length) };
		rows.forEach((row, i) => {
			[sum.old[i], sum.new[i]] = isTrend ? ends(row[metric]) : [row.old[metric], row.new[metric]];
		});
	}
}

const growth = (i, metric = state.metric) => sums[metric].new[i] - sums[metric].old[i];
const weight = i => state.show === 'growth' ? Math.abs(growth(i)) : sums[state.metric][state.show][i];

// ---------------------------------------------------------------- the tree

let tree; // parent[], label[], kids[], leaf[] by row, and by node up, down, old, new

function buildTree() {
	const key = state.group === 'module' ? 'module' : 'name';
	const known = new Map(), parent = [-1], name = [-1], kids = [[]], leaf = new Int32Array(rows.length);
	rows.forEach((row, i) => {
		const stack = row.stack, count = stack.length;
		let at = 0;
		for (let k = 0; k < count; k++) {
			const next = frames[stack[state.order === 'down' ? count - 1 - k : k]][key];
			if (key === 'module' && next === name[at])
				continue;
			const edge = at * labels.length + next;
			let node = known.get(edge);
			if (node === undefined) {
				known.set(edge, node = parent.length);
				parent.push(at);
				name.push(next);
				kids.push([]);
				kids[at].push(node);
			}
			at = node;
		}
		leaf[i] = at;
	});
	tree = { parent, label: name, kids, leaf };
	sumTree();
}

function sumTree() {
	const count = tree.parent.length, sum = sums[state.metric];
	for (const what of ['up', 'down', 'old', 'new', 'rows'])
		tree[what] = new Float64Array(count);
	rows.forEach((row, i) => {
		const node = tree.leaf[i], change = growth(i);
		tree[change < 0 ? 'down' : 'up'][node] += Math.abs(change);
		tree.old[node] += sum.old[i];
		tree.new[node] += sum.new[i];
		tree.rows[node]++;
	});
	for (let node = count - 1; node; node--) {
		for (const what of ['up', 'down', 'old', 'new', 'rows'])
			tree[what][tree.parent[node]] += tree[what][node];
	}
	tree.weight = state.show === 'growth' ? tree.up.map((up, i) => up + tree.down[i]) : tree[state.show];
}

const labelOf = node => node ? labels[tree.label[node]] : isOne ? '(all)' : '(all that changed)';

function pathOf(node) {
	const path = [];
	for (; node > 0; node = tree.parent[node])
		path.unshift(node);
	return path;
}

/* Returns the node at the end of the path state.zoom, or the last one that exists. */
function zoomNode() {
	let node = 0;
	for (const text of state.zoom) {
		const next = tree.kids[node].find(kid => labelOf(kid) === text);
		if (next === undefined)
			break;
		node = next;
	}
	return node;
}

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
	const parts = isOne ? [numberText(tree.new[node], metric)] :
		[growthText(sum, metric), numberText(tree.old[node], metric) + ' \u2192 ' + numberText(tree.new[node], metric)];
	if (!isOne && tree.up[node] && tree.down[node])
		parts.push('+' + numberText(tree.up[node], metric) + ' and \u2212' + numberText(tree.down[node], metric));
	parts.push(shareText(tree.weight[node], all), exact.format(tree.rows[node]) + (tree.rows[node] === 1 ? ' stack' : ' stacks'));
	return parts.filter(part => part).join('  \u00b7  ') + (metric === 'blocks' ? '  (blocks)' : '');
}

// ---------------------------------------------------------------- the graph

const canvas = $('graph');
const ROW = 20;
let boxes = []; // {node, x, width, depth}
let zoomed = 0, focus = 0, hovered = -1;
let matches = null; // by label: found by the search; null: no search

function layout() {
	const width = canvas.clientWidth;
	const add = (node, x, size, depth) => {
		boxes.push({ node, x, width: size, depth });
		let at = x;
		const scale = tree.weight[node] ? size / tree.weight[node] : 0;
		const kids = tree.kids[node].sort((a, b) => tree.weight[b] - tree.weight[a] || tree.label[a] - tree.label[b]);
		for (const kid of kids) {
			const part = tree.weight[kid] * scale;
			if (part < 0.5)
				break; // the following ones are not wider
			add(kid, at, part, depth + 1);
			at += part;
		}
	};
	boxes = [];
	const path = zoomed ? [0, ...pathOf(tree.parent[zoomed])] : [];
	path.forEach((node, depth) => boxes.push({ node, x: 0, width, depth, above: true }));
	add(zoomed, 0, width, path.length);
}

/* Red for growth, blue for shrinking, which colour-blind readers can distinguish. A larger share has a deeper colour. */
function colour(node, above) {
	const sum = tree.new[node] - tree.old[node], dark = isDark();
	const most = Math.max(tree.up[0], tree.down[0], isOne ? tree.new[0] : 0);
	const part = most ? Math.sqrt(Math.min(1, Math.abs(sum) / most)) : 0;
	const hue = isOne || sum <= 0 ? 212 : 8;
	const light = !dark ? 93 - 33 * part : 21 + 20 * part; // text on it stays readable
	const tint = sum ? 30 + (dark ? 40 : 55) * part : 0;
	return `hsl(${hue} ${above ? tint / 3 : tint}% ${light}%)`;
}

function fit(text, width, letter) {
	const room = Math.floor(width / letter);
	if (text.length <= room)
		return text;
	const bare = text.slice(text.indexOf('!') + 1); // without the module
	return bare.length <= room ? bare : room < 3 ? '' : bare.slice(0, room - 1) + '\u2026';
}

function draw() {
	const began = performance.now(), scale = devicePixelRatio || 1, width = canvas.clientWidth;
	const css = getComputedStyle(document.documentElement), of = name => css.getPropertyValue(name);
	const ink = of('--ink'), paper = of('--paper'), mark = of('--mark'), link = of('--link'), grown = of('--grown'), shrunk = of('--shrunk');
	layout();
	const height = ROW * (1 + boxes.reduce((most, box) => Math.max(most, box.depth), 0));
	canvas.style.height = height + 'px';
	canvas.width = Math.round(width * scale);
	canvas.height = Math.min(32000, Math.round(height * scale));
	const context = canvas.getContext('2d');
	const chosen = marked < 0 ? null : new Set(pathOf(tree.leaf[marked]));
	context.scale(scale, scale);
	context.direction = 'ltr';
	context.textBaseline = 'middle';
	context.font = '12px ui-monospace, Consolas, "DejaVu Sans Mono", monospace';
	const letter = context.measureText('M').width;
	for (const { node, x, width, depth, above } of boxes) {
		const y = depth * ROW, gap = width > 3 ? 1 : 0, found = matches && node && matches[tree.label[node]];
		context.globalAlpha = matches && !found && node ? 0.35 : 1;
		context.fillStyle = colour(node, above);
		context.fillRect(x, y, width - gap, ROW - 1);
		if (!isOne && tree.up[node] && tree.down[node] && width > 8) { // shares of growth and shrinking
			const share = (width - gap) * tree.up[node] / (tree.up[node] + tree.down[node]);
			context.fillStyle = grown;
			context.fillRect(x, y + ROW - 4, share, 3);
			context.fillStyle = shrunk;
			context.fillRect(x + share, y + ROW - 4, width - gap - share, 3);
		}
		context.globalAlpha = matches && !found && node ? 0.6 : 1;
		if (found) {
			context.fillStyle = mark;
			context.fillRect(x, y, width - gap, 3);
		}
		if (width > 3 * letter) {
			const text = fit(labelOf(node), width - 8, letter);
			context.fillStyle = ink;
			context.save();
			context.beginPath();
			context.rect(x, y, width - gap, ROW);
			context.clip();
			context.fillText(text, x + 4, y + ROW / 2);
			context.restore();
		}
		context.globalAlpha = 1;
		if (chosen?.has(node) || node === hovered || (node === focus && document.activeElement === canvas)) {
			context.strokeStyle = chosen?.has(node) ? mark : node === hovered ? ink : link;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(1, width - gap - 2), ROW - 3);
		}
	}
	if (!tree.weight[0]) {
		context.fillStyle = ink;
		context.fillText('nothing to show in these units', 8, ROW / 2);
	}
	canvas.dataset.paper = paper.trim();
	canvas.dataset.boxes = boxes.length;
	canvas.dataset.ms = (performance.now() - began).toFixed(1);
}

let isWaiting = false;
function drawSoon() {
	if (isWaiting || isGrouped)
		return;
	isWaiting = true;
	requestAnimationFrame(() => {
		isWaiting = false;
		draw();
	});
}

function boxAt(event) {
	const place = canvas.getBoundingClientRect(), x = event.clientX - place.left;
	const depth = Math.floor((event.clientY - place.top) / ROW);
	return boxes.find(box => box.depth === depth && x >= box.x && x < box.x + box.width);
}

/* Shows the figures of a node as text, and as numbers for programs that read the page. */
function tell(node) {
	const status = $('status');
	status.textContent = labelOf(node) + '  \u00b7  ' + words(node);
	Object.assign(status.dataset, { old: tree.old[node], new: tree.new[node], up: tree.up[node], down: tree.down[node], label: labelOf(node) });
}

function zoomTo(node) {
	state.zoom = pathOf(node).map(labelOf);
	focus = node;
	hideTip();
	update('zoom');
}

function hideTip() {
	hovered = -1;
	$('tip').hidden = true;
}

canvas.addEventListener('mousemove', event => {
	const box = boxAt(event), tip = $('tip');
	if (!box) {
		hideTip();
		return drawSoon();
	}
	if (box.node !== hovered) {
		hovered = box.node;
		tip.textContent = labelOf(box.node) + '\n' + words(box.node);
		tell(box.node);
		drawSoon();
	}
	tip.hidden = false;
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
	tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
});
canvas.addEventListener('mouseleave', () => {
	hideTip();
	tell(zoomed);
	drawSoon();
});
canvas.addEventListener('click', event => {
	const box = boxAt(event);
	if (box)
		zoomTo(box.node);
});
canvas.addEventListener('focus', drawSoon);
canvas.addEventListener('blur', drawSoon);
$('out').addEventListener('click', () => zoomTo(Math.max(0, tree.parent[zoomed])));

canvas.addEventListener('keydown', event => {
	const shown = boxes.filter(box => !box.above || box.node === focus);
	const here = shown.find(box => box.node === focus) ?? boxes.find(box => box.node === zoomed);
	const beside = shown.filter(box => box.depth === here.depth), at = beside.indexOf(here);
	let next;
	switch (event.key) {
	case 'ArrowDown': next = boxes.find(box => box.node && tree.parent[box.node] === here.node); break;
	case 'ArrowUp': next = boxes.find(box => box.node === tree.parent[here.node]); break;
	case 'ArrowLeft': next = beside[at - 1]; break;
	case 'ArrowRight': next = beside[at + 1]; break;
	case 'Home': next = boxes[0]; break;
	case 'Enter': case ' ': event.preventDefault(); return zoomTo(here.node);
	default: return;
	}
	event.preventDefault();
	if (!next)
		return;
	focus = next.node;
	tell(focus);
	const scroll = $('scroll'), y = next.depth * ROW;
	if (y < scroll.scrollTop || y + ROW > scroll.scrollTop + scroll.clientHeight)
		scroll.scrollTop = y - scroll.clientHeight / 2;
	drawSoon();
});

// ---------------------------------------------------------------- the search

let isFound; // by row
function search() {
	const field = $('search');
	let pattern = null;
	field.setAttribute('aria-invalid', 'false');
	if (state.search) {
		try {
			pattern = new RegExp(state.search, 'i');
		} catch {
			field.setAttribute('aria-invalid', 'true');
		}
	}
	const byFrame = frames.map(frame => !pattern || pattern.test(frame.words) || (frame.place && pattern.test(frame.place)));
	matches = pattern && new Uint8Array(labels.length);
	if (pattern) {
		frames.forEach((frame, i) => {
			if (byFrame[i])
				matches[frame.name] = matches[frame.module] = 1;
		});
	}
	isFound = rows.map(row => !pattern || row.stack.some(frame => byFrame[frame])
		|| (row.frames ?? []).some(frame => byFrame[frame]));
	$('found').value = field.getAttribute('aria-invalid') === 'true' ? 'not a regular expression' : '';
	if (isGrouped || !pattern)
		return;
	let part = 0, all = 0, count = 0;
	rows.forEach((row, i) => {
		if (!isZoomed[i])
			return;
		all += weight(i);
		part += isFound[i] ? weight(i) : 0;
		count += isFound[i];
	});
	$('found').value = `${exact.format(count)} ${count === 1 ? 'stack' : 'stacks'}, ${numberText(part, state.metric)}, ${shareText(part, all) || '0 %'}`;
}

let isZoomed; // by row: its stack contains the zoomed node
function selectZoomed() {
	const inside = new Uint8Array(tree.parent.length);
	for (let node = 0; node < inside.length; node++)
		inside[node] = node === zoomed || (node && inside[tree.parent[node]]) ? 1 : 0;
	isZoomed = rows.map((row, i) => inside[tree.leaf[i]] === 1);
}

// ---------------------------------------------------------------- the table

const AT_ONCE = 100;
let items = []; // rows of the table, in order; {row} or {group}
let shownCount = 0;

const numbers = (name, title, metric, value, isGrowth) => ({ name, title, value,
	text: item => (isGrowth ? growthText : numberText)(value(item), metric), isGrowth });

function columns() {
	const of = (metric, when) => item => item.row >= 0 ? sums[metric][when][item.row] : item.total[when][metric];
	const grew = metric => item => of(metric, 'new')(item) - of(metric, 'old')(item);
	const list = isOne ? [numbers('new', 'Bytes', 'bytes', of('bytes', 'new')), numbers('blocks', 'Blocks', 'blocks', of('blocks', 'new'))] :
		[numbers('growth', 'Growth', 'bytes', grew('bytes'), true), numbers('blocks', 'Blocks', 'blocks', grew('blocks'), true),
			numbers('old', 'Old', 'bytes', of('bytes', 'old')), numbers('new', 'New', 'bytes', of('bytes', 'new'))];
	const isByStack = !isGrouped && state.group === 'stack';
	if (!isByStack)
		list.push(numbers('self', isOne ? 'Self' : 'Self growth', 'bytes', item => item.self.new.bytes - item.self.old.bytes, !isOne));
	if (isByStack && tree) {
		list.push({ name: 'share', title: 'Share', value: item => weight(item.row), text: item => shareText(weight(item.row), tree.weight[0]) });
		if (isTrend)
			list.push({ name: 'verdict', title: 'Verdict', value: item => -VERDICTS.indexOf(rows[item.row].trend.verdict), text: item => rows[item.row].trend.verdict, isWord: true },
				{ name: 'rate', title: 'Per hour', value: item => rows[item.row].trend.bytes_per_hour ?? 0, text: item => rateText(rows[item.row].trend.bytes_per_hour), isGrowth: true });
	}
	if (view.window) {
		const win = item => item.row >= 0 ? rows[item.row]?.window : item.window;
		if (isByStack || isGrouped)
			list.push(numbers('allocated', 'Allocated', 'bytes', item => win(item).ai.bytes), numbers('transient', 'Transient', 'bytes', item => win(item).aifi.bytes),
				numbers('peak', 'Peak', 'bytes', item => win(item).peak.bytes),
				{ name: 'life', title: 'Mean life', value: item => win(item).lifetime?.mean_ms ?? -1, text: item => lifeText(win(item).lifetime?.mean_ms) });
	}
	list.push({ name: 'name', title: isByStack ? 'Function' : isGrouped ? report.group[0].toUpperCase() + report.group.slice(1) : state.group === 'module' ? 'Module' : 'Function',
		value: item => item.name, text: item => item.short ?? item.name, isName: true });
	if (isByStack)
		list.push({ name: 'file', title: 'File', value: item => item.place, text: item => item.place.replace(/.*[\\/]/s, ''), isName: true });
	return list;
}

/* Groups rows by function or module. A row counts once in the total of each group, and in self of the group that names the row. */
function groupRows(isWanted) {
	const groups = new Map();
	const zero = () => ({ old: { bytes: 0, blocks: 0 }, new: { bytes: 0, blocks: 0 } });
	const key = state.group === 'module' ? 'module' : 'group';
	rows.forEach((row, i) => {
		if (!isWanted(i))
			return;
		const seen = new Set(), own = Math.max(0, row.stack.indexOf(row.own));
		row.stack.forEach((frame, depth) => {
			const name = frames[frame][key];
			if (!groups.has(name))
				groups.set(name, { name: labels[name], self: zero(), total: zero(), row: -1 });
			for (const to of [depth === own ? 'self' : null, seen.has(name) ? null : 'total']) {
				if (!to)
					continue;
				for (const when of ['old', 'new']) {
					for (const metric of ['bytes', 'blocks'])
						groups.get(name)[to][when][metric] += sums[metric][when][i];
				}
			}
			seen.add(name);
		});
	});
	return [...groups.values()];
}

function collect() {
	if (isGrouped) {
		const pattern = matches && new RegExp(state.search, 'i');
		items = view.groups.map(group => ({ ...group, row: -1 })).filter(group => !pattern || pattern.test(group.name));
		if (isTrend) {
			for (const item of items) {
				for (const what of ['self', 'total'])
					for (const metric of ['bytes', 'blocks'])
						[item[what].old[metric], item[what].new[metric]] = ends(item[what][metric]);
			}
		}
	} else if (state.group === 'stack') {
		items = rows.map((row, i) => ({ row: i, name: row.title, short: row.short, place: frames[row.own].place })).filter(item => isZoomed[item.row] && isFound[item.row]);
	} else {
		items = groupRows(i => isZoomed[i] && isFound[i]);
		items.sort((a, b) => weightOf(b) - weightOf(a) || (a.name < b.name ? -1 : 1));
	}
	const column = columns().find(each => each.name === state.sort);
	if (column) {
		const sign = state.reversed ? -1 : 1;
		const compare = column.isName ? (a, b) => a < b ? -1 : a > b ? 1 : 0 : (a, b) => b - a;
		items.sort((a, b) => sign * compare(column.value(a), column.value(b)));
	}
}

const weightOf = group => Math.abs(group.self.new.bytes - group.self.old.bytes);

function element(name, text, kind) {
	const made = document.createElement(name);
	if (text !== undefined)
		made.textContent = text;
	if (kind)
		made.className = kind;
	return made;
}

function table() {
	const heads = columns().map(column => {
		const head = element('th', undefined, column.isName ? column.name : ''), button = element('button', column.title);
		const isSorted = column.name === state.sort;
		button.type = 'button';
		head.setAttribute('aria-sort', !isSorted ? 'none' : state.reversed !== Boolean(column.isName) ? 'ascending' : 'descending');
		if (isSorted)
			button.append(head.getAttribute('aria-sort') === 'ascending' ? ' \u25b2' : ' \u25bc');
		button.addEventListener('click', () => {
			state.reversed = isSorted && !state.reversed;
			state.sort = column.name;
			update('table');
		});
		head.dataset.name = column.name;
		head.append(button);
		return head;
	});
	$('columns').replaceChildren(...heads);
	collect();
	$('rows').replaceChildren();
	$('rows').dataset.count = items.length;
	shownCount = 0;
	showMore();
}

function showMore() {
	const list = columns();
	for (const item of items.slice(shownCount, shownCount + AT_ONCE))
		$('rows').append(tableRow(item, list));
	shownCount = Math.min(items.length, shownCount + AT_ONCE);
	$('more').hidden = shownCount >= items.length;
	$('more').textContent = `Show more (${exact.format(items.length - shownCount)} left)`;
}

function tableRow(item, list) {
	const line = element('tr', undefined, 'row');
	if (item.row >= 0)
		line.dataset.row = item.row;
	for (const column of list) {
		const cell = element('td', undefined, column.isName ? column.name : '');
		if (column.name === 'name') {
			const button = element('button', column.text(item));
			button.type = 'button';
			button.title = item.name;
			if (item.row >= 0)
				button.setAttribute('aria-expanded', 'false');
			cell.append(button);
		} else {
			cell.textContent = column.text(item);
			if (column.isName)
				cell.title = item.place;
			else if (!column.isWord)
				cell.dataset.n = column.value(item);
			if (column.isGrowth && column.value(item))
				cell.classList.add(column.value(item) > 0 ? 'grown' : 'shrunk');
		}
		line.append(cell);
	}
	line.addEventListener('click', () => open(item, line));
	return line;
}

/* Handles a click: shows a row's stack, here and in the graph, or searches for a group. */
function open(item, line) {
	if (item.row < 0) {
		if (isGrouped)
			return;
		$('search').value = state.search = '^' + item.name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') + (state.group === 'module' ? '[!+]' : '$');
		return update('search');
	}
	const isOpen = line.classList.toggle('open');
	line.querySelector('.name button').setAttribute('aria-expanded', isOpen);
	marked = isOpen ? item.row : -1;
	if (isOpen)
		line.after(stackRow(rows[item.row], item.row, line.children.length));
	else
		line.nextSibling.remove();
	drawSoon();
	if (isTrend)
		chart();
}

function stackRow(row, number, width) {
	const line = element('tr', undefined, 'stack'), cell = element('td'), notes = [];
	cell.colSpan = width;
	for (const stack of row.candidates ?? [row.frames ?? []]) {
		const list = element('ol');
		for (const frame of stack.length ? stack : row.stack) {
			const part = element('li', undefined, frames[frame].layer ? 'layer' : '');
			const name = element(matches?.[frames[frame].name] ? 'mark' : 'bdi', frames[frame].short);
			name.title = frames[frame].words;
			part.append(name);
			if (frames[frame].place)
				part.append(' ', element('bdi', frames[frame].place, 'place'));
			if (frames[frame].inline)
				part.append(element('span', ' [inline]', 'place'));
			list.append(part);
		}
		cell.append(list);
	}
	if (row.heap)
		notes.push('heap ' + row.heap);
	notes.push('id ' + row.ids.join(', '));
	if (row.window?.freed_by) {
		const by = row.window.freed_by;
		notes.push(`freed by ${by.frames.length ? frames[by.frames.find(frame => !frames[frame].layer) ?? by.frames[0]].words : '?'}: ${bytesText(by.bytes)}`);
	}
	const go = element('button', 'Show in the graph');
	go.type = 'button';
	go.addEventListener('click', () => {
		zoomTo(tree.leaf[number]);
		$('flame').scrollIntoView({ block: 'nearest' });
	});
	cell.append(go, element('span', '  ' + notes.join('; '), 'note'));
	line.append(cell);
	return line;
}

$('more').addEventListener('click', showMore);
new IntersectionObserver(seen => seen.some(each => each.isIntersecting) && showMore()).observe($('more'));

// ---------------------------------------------------------------- series over time

const LEFT = 76, RIGHT = 990, TOP = 12, BOTTOM = 152;
let times; // of each snapshot, or its number if times are missing

function svg(name, attributes, text) {
	const made = document.createElementNS('http://www.w3.org/2000/svg', name);
	for (const key in attributes)
		made.setAttribute(key, attributes[key]);
	if (text !== undefined)
		made.textContent = text;
	return made;
}

const xOf = i => times.length < 2 ? LEFT : LEFT + (RIGHT - LEFT) * (times[i] - times[0]) / (times[times.length - 1] - times[0] || 1);

function chart() {
	const shots = view.snapshots, metric = state.metric, list = [];
	const use = shots.map(shot => shot.selected[metric]), one = marked < 0 ? null : rows[marked][metric];
	const most = Math.max(1, ...use), y = value => BOTTOM - (BOTTOM - TOP) * value / most;
	for (const part of [0, 0.5, 1]) {
		list.push(svg('line', { class: 'axis', x1: LEFT, x2: RIGHT, y1: y(part * most), y2: y(part * most) }),
			svg('text', { x: LEFT - 6, y: y(part * most) + 4, 'text-anchor': 'end' }, numberText(Math.round(part * most), metric)));
	}
	if (state.from || state.to + 1 < shots.length)
		list.push(svg('rect', { class: 'brush', x: xOf(state.from), width: Math.max(1, xOf(state.to) - xOf(state.from)), y: TOP, height: BOTTOM - TOP }));
	for (const part of view.parts) {
		const line = values => Array.from({ length: part.count }, (_, k) => `${xOf(part.first + k).toFixed(1)},${y(values[part.first + k]).toFixed(1)}`).join(' ');
		list.push(svg('polyline', { class: 'use', points: line(use) }));
		if (one)
			list.push(svg('polyline', { class: 'one', points: line(one) }));
	}
	shots.forEach((shot, i) => {
		const dot = svg('circle', { class: 'dot', cx: xOf(i), cy: y(use[i]), r: shots.length > 200 ? 1.5 : 3 });
		dot.append(svg('title', {}, `${timeText(shot)}  ${numberText(use[i], metric)}`));
		list.push(dot);
	});
	for (const [i, anchor] of [[0, 'start'], [shots.length - 1, 'end']])
		list.push(svg('text', { x: xOf(i), y: BOTTOM + 18, 'text-anchor': anchor }, timeText(shots[i]) || 'snapshot ' + (i + 1)));
	$('chart').replaceChildren(...list);
	const trend = view.trend;
	$('verdict').textContent = `Series ${view.number}: ${trend.verdict.replace('-', ' ')}`
		+ (trend.bytes_per_hour === null ? '' : `, ${rateText(trend.bytes_per_hour)} (${bytesText(trend.low_bytes_per_hour)} to ${bytesText(trend.high_bytes_per_hour)})`);
	const net = ends(use);
	$('net').textContent = `${growthText(net[1] - net[0], metric)} in this range`;
	$('net').dataset.n = net[1] - net[0];
	$('from').value = state.from;
	$('to').value = state.to;
}

function snapshotAt(event) {
	const place = $('chart').getBoundingClientRect(), scale = Math.min(place.width / 1000, place.height / 180);
	const x = (event.clientX - place.left - (place.width - 1000 * scale) / 2) / scale;
	let best = 0;
	for (let i = 1; i < times.length; i++) {
		if (Math.abs(xOf(i) - x) < Math.abs(xOf(best) - x))
			best = i;
	}
	return best;
}

function setRange(a, b) {
	state.from = Math.min(a, b);
	state.to = Math.max(a, b);
	update('range');
}

let pressed = -1;
$('chart').addEventListener('pointerdown', event => {
	pressed = snapshotAt(event);
	$('chart').setPointerCapture(event.pointerId);
});
$('chart').addEventListener('pointermove', event => {
	const at = pressed < 0 ? pressed : snapshotAt(event);
	if (at !== pressed && (Math.min(at, pressed) !== state.from || Math.max(at, pressed) !== state.to))
		setRange(pressed, at);
});
$('chart').addEventListener('pointerup', () => { pressed = -1; });
$('chart').addEventListener('dblclick', () => setRange(0, times.length - 1));
$('whole').addEventListener('click', () => setRange(0, times.length - 1));
for (const id of ['from', 'to'])
	$(id).addEventListener('change', () => setRange(Number($('from').value), Number($('to').value)));

// ---------------------------------------------------------------- state and updates

/* Switches to the chosen series. A range outside it becomes the whole series. */
function chooseSeries() {
	view = views[state.series];
	rows = view.rows ?? [];
	marked = -1;
	document.querySelectorAll('header .series').forEach((section, i) => { section.hidden = i !== state.series; });
	if (!isTrend)
		return;
	const shots = view.snapshots, given = shots.map(shot => Date.parse((shot.time ?? shot.local_time + 'Z')));
	times = given.some(Number.isNaN) || given[0] === given[given.length - 1] ? shots.map((_, i) => i) : given;
	if (!(state.from < state.to && state.to < shots.length)) {
		state.from = 0;
		state.to = shots.length - 1;
	}
	for (const id of ['from', 'to'])
		$(id).replaceChildren(...shots.map((shot, i) => new Option(`${i + 1}  ${timeText(shot)}`, i)));
}

/* Updates everything that depends on the change. */
function update(what) {
	const isAll = what === 'all' || what === 'series';
	if (isAll) {
		chooseSeries();
		state.reversed = Boolean(state.reversed);
	}
	if (isAll || what === 'range')
		readSums();
	if (!isGrouped) {
		if (isAll || what === 'order' || what === 'group')
			buildTree();
		else if (what !== 'zoom' && what !== 'search' && what !== 'table')
			sumTree();
		zoomed = zoomNode();
		state.zoom = pathOf(zoomed).map(labelOf);
		if (what !== 'table' && what !== 'search')
			focus = zoomed;
		selectZoomed();
		$('out').disabled = !zoomed;
		tell(zoomed);
	}
	search();
	table();
	if (isTrend)
		chart();
	if (!isGrouped)
		drawSoon();
	writeHash();
}

const KEYS = { series: 'v', show: 'w', metric: 'm', order: 'o', group: 'g', search: 'q', sort: 's', from: 'a', to: 'b', theme: 't' };
const CHOICES = { show: ['growth', 'old', 'new'], metric: ['bytes', 'blocks'], order: ['down', 'up'], group: ['stack', 'function', 'module'], theme: ['', 'light', 'dark'] };

function writeHash() {
	const words = new URLSearchParams();
	for (const key in KEYS) {
		const isWhole = (key === 'from' && !state.from) || (key === 'to' && (!isTrend || state.to === view.snapshots.length - 1));
		if (state[key] !== usual[key] && !isWhole)
			words.set(KEYS[key], (key === 'sort' && state.reversed ? '-' : '') + state[key]);
	}
	for (const text of state.zoom)
		words.append('z', text);
	const hash = words.toString();
	if (hash !== location.hash.slice(1))
		history.replaceState(null, '', hash ? '#' + hash : location.pathname + location.search);
}

function readHash() {
	const words = new URLSearchParams(location.hash.slice(1));
	for (const key in KEYS) {
		const given = words.get(KEYS[key]);
		if (given === null || (CHOICES[key] && !CHOICES[key].includes(given)))
			state[key] = usual[key];
		else
			state[key] = typeof usual[key] === 'number' ? Math.floor(Number(given)) || 0 : given;
	}
	state.reversed = state.sort.startsWith('-');
	state.sort = state.sort.replace(/^-/, '');
	state.series = Math.min(Math.max(state.series, 0), views.length - 1);
	state.from = Math.max(state.from, 0);
	if (isTrend && !words.has('b'))
		state.to = views[state.series].snapshots.length - 1;
	state.zoom = words.getAll('z');
	for (const key of ['show', 'metric', 'order', 'group'])
		document.querySelector(`input[name=${key}][value=${state[key]}]`).checked = true;
	$('series').value = state.series;
	$('search').value = state.search;
	setTheme(state.theme);
}

for (const key of ['show', 'metric', 'order', 'group']) {
	$(key).addEventListener('change', event => {
		state[key] = event.target.value;
		if (key === 'order' || key === 'group')
			state.zoom = [];
		update(key);
	});
}
$('series').addEventListener('change', () => {
	state.series = Number($('series').value);
	state.to = state.from = 0;
	state.zoom = [];
	update('series');
});

let typing;
$('search').addEventListener('input', () => {
	clearTimeout(typing);
	typing = setTimeout(() => {
		state.search = $('search').value;
		update('search');
	}, rows.length > 5000 ? 120 : 0);
});
document.addEventListener('keydown', event => {
	const isText = event.target.matches('input[type=search], select');
	if (event.key === '/' && !isText) {
		event.preventDefault();
		$('search').focus();
	} else if ((event.key === 'Escape' || (event.key === 'Backspace' && !isText)) && !isGrouped && zoomed && !(isText && state.search)) {
		event.preventDefault();
		zoomTo(tree.parent[zoomed]);
	}
});
$('theme').addEventListener('click', () => {
	state.theme = isDark() ? 'light' : 'dark';
	setTheme(state.theme);
	writeHash();
	drawSoon();
});
darkened.addEventListener('change', () => {
	setTheme(state.theme);
	drawSoon();
});
addEventListener('resize', drawSoon);
addEventListener('hashchange', () => {
	readHash();
	update('all');
});

/* Prints in light colours. */
let onScreen;
addEventListener('beforeprint', () => {
	onScreen = state.theme;
	setTheme('light');
	if (!isGrouped)
		draw();
});
addEventListener('afterprint', () => {
	setTheme(onScreen);
	drawSoon();
});

$('theme').hidden = $('main').hidden = false;
$('show').hidden = isOne;
$('flame').hidden = $('order').hidden = $('group').hidden = $('metric').hidden = isGrouped;
$('show').hidden ||= isGrouped;
$('trend').hidden = !isTrend;
$('series-choice').hidden = views.length < 2;
$('series').append(...views.map((each, i) => new Option(`${each.number}: ${each.parts?.[0].image?.replace(/.*[\\/]/, '') ?? ''} ${each.parts?.[0].pid ?? ''}`, i)));
$('legend').textContent = isOne ? 'Width and depth of colour: live memory. Click to zoom, Escape to zoom out.' :
	'Width: what grew and what shrank together. Red grew, blue shrank, the deeper the more; a bar below has the share of each. Click to zoom, Escape to zoom out.';
readHash();
update('all');
if (!isGrouped)
	draw();
document.documentElement.dataset.ready = performance.now().toFixed(0);
document.documentElement.dataset.script = (performance.now() - started).toFixed(0);

})();
