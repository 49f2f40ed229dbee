// ---------------------------------------------------------------- use over time

/*
 * The chart of a trend has a point for each snapshot, and that of a recording one for each edge. It shows use as areas: those
 * of the largest functions (or stacks, modules, kinds of memory), and of the rest. The user chooses a range of points.
 */
const AREAS = 8, HEIGHT = 230, LEFT = 76, TOP = 22, BOTTOM = HEIGHT - 24;
let times; // of each point, or its number if times are missing
let areas; // [{name, values}], from the bottom; the last one is the rest
let width = 1000; // of the chart, in pixels

const isRate = () => state.what === 'rate';
const hasChart = isTrend || recording !== null;
const pointCount = () => recording ? edges.length : view.snapshots.length;
const processes = () => recording ? [{ first: 0, count: edges.length }] : view.parts;
const pointText = i => !recording ? timeText(view.snapshots[i]) || 'snapshot ' + (i + 1) :
	secondsText(edges[i].ms) + (edges[i].label && !['start', 'end'].includes(edges[i].label) ? ' (' + edges[i].label + ')' : '');

function svg(name, attributes, text) {
	const made = document.createElementNS('http://www.w3.org/2000/svg', name);
	for (const key in attributes)
		made.setAttribute(key, attributes[key]);
	if (text !== undefined)
		made.textContent = text;
	return made;
}

/* Returns the use of a row at each point. */
function useOf(row, metric) {
	if (!recording)
		return rows[row][metric];
	const use = new Float64Array(edges.length);
	(isRate() ? addRate : addUse)(use, row, metric);
	return use;
}

/* Adds what a row allocates per second in each span to `rate`. */
function addRate(rate, row, metric) {
	const amount = lives[metric];
	for (let i = lives.first[row]; i < lives.first[row + 1]; i++) {
		const birth = lives.birth[i];
		if (birth)
			rate[birth] += amount[i] / (Math.max(1, edges[birth].ms - edges[birth - 1].ms) / 1000);
	}
}

function areaName(row, i) {
	const frame = frames[row.own];
	switch (state.areas) {
	case 'stack': return `${i + 1}: ${row.short}`;
	case 'module': return labels[frame.module];
	default: return frame.short;
	}
}

/* Sums of kinds of memory, which do not add up to rows. */
function memoryAreas(metric) {
	const at = metric === 'bytes' ? 0 : 1;
	return recording.memories.map((name, k) => ({ name, values: Float64Array.from(edges, edge => edge.use[2 * k + at]) }))
		.filter(area => area.values.some(value => value));
}

function addNumbers(sums, numbers, sign = 1) {
	for (let i = 0; i < sums.length; i++)
		sums[i] += sign * numbers[i];
}

function highestOf(numbers) {
	let highest = 0;
	for (let i = 0; i < numbers.length; i++)
		highest = Math.max(highest, numbers[i]);
	return highest;
}

/* Computes the areas of all points, so that they stay when the range changes. */
function findAreas() {
	const metric = state.metric, byName = new Map(), count = pointCount();
	if (recording && state.areas === 'memory' && !isRate()) {
		areas = memoryAreas(metric);
		return;
	}
	rows.forEach((row, i) => {
		const name = areaName(row, i);
		if (!byName.has(name))
			byName.set(name, { name, values: new Float64Array(count) });
		const values = byName.get(name).values;
		if (recording)
			(isRate() ? addRate : addUse)(values, i, metric);
		else
			addNumbers(values, rows[i][metric]);
	});
	const all = [...byName.values()];
	const rest = { name: 'the rest', isRest: true, values: new Float64Array(count) };
	if (!recording)
		view.snapshots.forEach((shot, k) => { rest.values[k] = shot.selected[metric]; });
	for (const area of all) {
		area.most = highestOf(area.values);
		if (recording)
			addNumbers(rest.values, area.values);
	}
	all.sort((a, b) => b.most - a.most || (a.name < b.name ? -1 : 1));
	areas = all.slice(0, AREAS).filter(area => area.most);
	for (const area of areas)
		addNumbers(rest.values, area.values, -1);
	if (rest.values.some(value => value > 0))
		areas.push(rest);
}

const totalAt = i => areas.reduce((sum, area) => sum + area.values[i], 0);
const right = () => width - 10;
const xOf = i => times.length < 2 ? LEFT : LEFT + (right() - LEFT) * (times[i] - times[0]) / (times[times.length - 1] - times[0] || 1);

function drawAreas(y) {
	const list = [], floor = new Float64Array(pointCount());
	areas.forEach((area, k) => {
		const kind = area.isRest ? 'rest' : 'area' + k % AREAS;
		for (const part of processes()) {
			const upper = [], lower = [];
			for (let i = part.first; i < part.first + part.count; i++) {
				lower.push(`${xOf(i).toFixed(1)},${y(floor[i]).toFixed(1)}`);
				upper.push(`${xOf(i).toFixed(1)},${y(floor[i] + area.values[i]).toFixed(1)}`);
			}
			if (part.count === 1)
				list.push(svg('line', { class: kind + ' single', x1: xOf(part.first), x2: xOf(part.first), y1: y(floor[part.first]), y2: y(floor[part.first] + area.values[part.first]) }));
			else
				list.push(svg('polygon', { class: kind, points: upper.concat(lower.reverse()).join(' ') }));
		}
		addNumbers(floor, area.values);
	});
	return list;
}

const line = (values, part, y) => Array.from({ length: part.count }, (_, k) => `${xOf(part.first + k).toFixed(1)},${y(values[part.first + k]).toFixed(1)}`).join(' ');

function drawMarks() {
	const list = [], scale = (right() - LEFT) / (edges[edges.length - 1].ms - edges[0].ms || 1);
	let free = 0;
	for (const mark of recording.marks) {
		const x = LEFT + Math.max(0, mark.ms - edges[0].ms) * scale, words = mark.label.length > 20 ? mark.label.slice(0, 19) + '\u2026' : mark.label;
		const made = svg('g', { class: 'mark' });
		made.append(svg('title', {}, `${mark.label}, ${secondsText(mark.ms)}`), svg('line', { x1: x, x2: x, y1: TOP - 4, y2: BOTTOM }));
		if (x >= free && x + 8 * words.length < width) {
			made.append(svg('text', { x, y: TOP - 8 }, words));
			free = x + 7 * words.length + 8;
		}
		list.push(made);
	}
	return list;
}

/* The slope of the chosen row, through the middle of its numbers. */
function drawSlope(values, y) {
	const rate = rows[marked].trend?.bytes_per_hour, first = xOf(0), last = xOf(times.length - 1);
	const hours = (times[times.length - 1] - times[0]) / 3_600_000, sorted = [...values].sort((a, b) => a - b);
	const middle = sorted[Math.floor(sorted.length / 2)], clamp = value => Math.max(TOP, Math.min(BOTTOM, y(value)));
	if (rate === null || rate === undefined || !hours)
		return [];
	return [svg('line', { class: 'slope', x1: first, x2: last, y1: clamp(middle - rate * hours / 2), y2: clamp(middle + rate * hours / 2) })];
}

/* The ends of the range, which keys move as well. */
function drawHandles() {
	return ['from', 'to'].map(end => {
		const x = xOf(state[end]), handle = svg('g', { class: 'handle', 'data-end': end, tabindex: 0, role: 'slider', 'aria-label': end === 'from' ? 'Start of the range' : 'End of the range',
			'aria-valuemin': 0, 'aria-valuemax': pointCount() - 1, 'aria-valuenow': state[end], 'aria-valuetext': pointText(state[end]) });
		handle.append(svg('line', { x1: x, x2: x, y1: TOP, y2: BOTTOM }), svg('rect', { x: x - 4, y: (TOP + BOTTOM) / 2 - 12, width: 8, height: 24, rx: 2 }));
		return handle;
	});
}

function chart(isNew = true) {
	const metric = state.metric, count = pointCount(), list = [];
	const focused = document.activeElement?.dataset?.end;
	if (isNew)
		findAreas();
	width = paperWidth || Math.max(280, $('chart').clientWidth || 1000);
	$('chart').setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
	const total = Float64Array.from({ length: count }, (_, i) => totalAt(i));
	const one = marked < 0 ? null : useOf(marked, metric);
	const highest = recording && metric === 'bytes' && !isRate() ? Math.max(...edges.map(edge => edge.highest)) : 0;
	const most = Math.max(1, highest, highestOf(total)), y = value => BOTTOM - (BOTTOM - TOP) * value / most;
	list.push(...drawAreas(y));
	for (const part of [0, 0.5, 1]) {
		list.push(svg('line', { class: 'axis', x1: LEFT, x2: right(), y1: y(part * most), y2: y(part * most) }),
			svg('text', { x: LEFT - 6, y: y(part * most) + 4, 'text-anchor': 'end' }, numberText(Math.round(part * most), metric)));
	}
	for (const part of processes()) {
		list.push(svg('polyline', { class: 'use', points: line(total, part, y) }));
		if (one)
			list.push(svg('polyline', { class: 'one', points: line(one, part, y) }));
	}
	if (highest) {
		const at = edges.find(edge => edge.highest === highest);
		const x = LEFT + (right() - LEFT) * (at.highest_ms - edges[0].ms) / (edges[count - 1].ms - edges[0].ms || 1);
		const dot = svg('circle', { class: 'dot', cx: Math.max(LEFT, x), cy: y(highest), r: 3 });
		dot.append(svg('title', {}, `highest use: ${bytesText(highest)} at ${secondsText(at.highest_ms)}`));
		list.push(dot);
	}
	if (one && isTrend && metric === 'bytes')
		list.push(...drawSlope(one, y));
	if (recording)
		list.push(...drawMarks());
	for (const [i, anchor] of [[0, 'start'], [count - 1, 'end']])
		list.push(svg('text', { x: i ? right() : LEFT, y: BOTTOM + 16, 'text-anchor': anchor }, recording ? secondsText(edges[i].ms) : pointText(i)));
	list.push(svg('rect', { class: 'outside', x: LEFT, width: Math.max(0, xOf(state.from) - LEFT), y: TOP, height: BOTTOM - TOP }),
		svg('rect', { class: 'outside', x: xOf(state.to), width: Math.max(0, right() - xOf(state.to)), y: TOP, height: BOTTOM - TOP }),
		svg('line', { id: 'under', y1: TOP, y2: BOTTOM, x1: -10, x2: -10 }), ...drawHandles());
	$('chart').replaceChildren(...list);
	if (focused)
		$('chart').querySelector(`[data-end=${focused}]`).focus({ preventScroll: true });
	if (isNew)
		showAreas();
	showRange(total);
}

/* Names the areas. A click searches for the name. */
function showAreas() {
	$('areas').replaceChildren(...areas.map((area, k) => {
		const made = element('button', undefined, 'swatch ' + (area.isRest ? 'rest' : 'area' + k % AREAS));
		made.type = 'button';
		made.title = area.name;
		made.append(element('i'), element('bdi', area.name));
		made.disabled = area.isRest || state.areas === 'memory';
		made.addEventListener('click', () => {
			$('search').value = state.search = escaped(area.name.replace(/^\d+: /, '').replace(/\u2026.*/s, ''));
			update('search');
		});
		return made;
	}));
}

const quoted = text => /^[\w./\\:@%+=-]+$/.test(text) ? text : '"' + text.replace(/"/g, '\\"') + '"';

/* Returns the command line that shows the chosen range. */
function commandLine() {
	const path = recording ? report.inputs[0].path : '', from = recording ? momentOf(state.from) : '', to = recording ? momentOf(state.to) : '';
	if (!recording)
		return `hdiff ${quoted(view.snapshots[state.from].path)} ${quoted(view.snapshots[state.to].path)}`;
	switch (state.show) {
	case 'growth': return `hdiff ${quoted(path + '@' + from)} ${quoted(path + '@' + to)}`;
	case 'end': return `hdiff ${quoted(path + '@' + to)}`;
	case 'peak': return `hdiff ${quoted(path + '@' + momentOf(peakEdge(state.from, state.to)))}`;
	default: return `hdiff --from ${quoted(from)} --to ${quoted(to)} --class ${state.show} ${quoted(path)}`;
	}
}

const useAt = i => state.metric === 'bytes' ? totalUse[i] : totalBlocks[i];

function showRange(total) {
	const metric = state.metric, net = recording ? [useAt(state.from), useAt(state.to)] : ends(total);
	$('net').textContent = `${growthText(net[1] - net[0], metric)} in this range`;
	$('net').dataset.n = net[1] - net[0];
	$('command').textContent = commandLine();
	$('filters').hidden = !(view.filtered || view.suppressed_count);
	if (recording) {
		$('start').value = momentOf(state.from);
		$('stop').value = momentOf(state.to);
		showClasses();
		return;
	}
	const trend = view.trend;
	$('verdict').textContent = `Series ${view.number}: ${trend.verdict.replace('-', ' ')}`
		+ (trend.bytes_per_hour === null ? '' : `, ${rateText(trend.bytes_per_hour)} (${bytesText(trend.low_bytes_per_hour)} to ${bytesText(trend.high_bytes_per_hour)})`);
	$('from').value = state.from;
	$('to').value = state.to;
}

// ---------------------------------------------------------------- choosing a range

function pointAt(event) {
	const place = $('chart').getBoundingClientRect(), x = (event.clientX - place.left) * width / place.width;
	let best = 0;
	for (let i = 1; i < times.length; i++) {
		if (Math.abs(xOf(i) - x) < Math.abs(xOf(best) - x))
			best = i;
	}
	return best;
}

function setRange(a, b) {
	const last = pointCount() - 1;
	state.from = Math.max(0, Math.min(a, b, last - 1));
	state.to = Math.min(last, Math.max(a, b, state.from + 1));
	update('range');
}

const wholeRange = () => setRange(0, pointCount() - 1);

/* Shows time, total and parts under the pointer. */
function tellPoint(event, i) {
	const tip = $('tip'), under = $('under');
	under.setAttribute('x1', xOf(i));
	under.setAttribute('x2', xOf(i));
	const unit = isRate() ? '/s' : '', number = value => numberText(Math.round(value), state.metric) + unit;
	tip.textContent = `${pointText(i)}: ${number(totalAt(i))}\n`
		+ areas.filter(area => area.values[i]).reverse().map(area => `${number(area.values[i])}  ${area.name}`).join('\n');
	showTip(event);
}

let pressed = -1; // the point where dragging began, or the other end of the range
$('chart').addEventListener('pointerdown', event => {
	const end = event.target.closest?.('.handle')?.dataset.end;
	pressed = end === 'from' ? state.to : end === 'to' ? state.from : pointAt(event);
	$('chart').setPointerCapture(event.pointerId);
});
$('chart').addEventListener('pointermove', event => {
	const at = pointAt(event);
	tellPoint(event, at);
	if (pressed >= 0 && at !== pressed && (Math.min(at, pressed) !== state.from || Math.max(at, pressed) !== state.to))
		setRange(pressed, at);
});
$('chart').addEventListener('pointerup', () => { pressed = -1; });
$('chart').addEventListener('pointercancel', () => { pressed = -1; });
$('chart').addEventListener('pointerleave', hideTip);
$('chart').addEventListener('dblclick', wholeRange);
$('chart').addEventListener('keydown', event => {
	const end = event.target.dataset?.end, last = pointCount() - 1;
	const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -last, End: last };
	if (event.key === 'Escape') {
		event.stopPropagation();
		return wholeRange();
	}
	if (!end || !(event.key in steps))
		return;
	event.preventDefault();
	const at = Math.max(end === 'to' ? state.from + 1 : 0, Math.min(end === 'from' ? state.to - 1 : last, state[end] + steps[event.key]));
	setRange(end === 'from' ? at : state.from, end === 'to' ? at : state.to);
});
$('whole').addEventListener('click', wholeRange);
for (const id of ['from', 'to'])
	$(id).addEventListener('change', () => setRange(Number($('from').value), Number($('to').value)));
for (const id of ['start', 'stop']) {
	$(id).addEventListener('change', () => {
		const at = edgeOf($(id).value), other = id === 'start' ? state.to : state.from;
		$(id).setAttribute('aria-invalid', at < 0);
		if (at >= 0)
			setRange(at, other);
	});
}
$('kind').addEventListener('change', () => {
	state.areas = $('kind').value;
	update('areas');
});
$('what').addEventListener('change', () => {
	state.what = $('what').value;
	update('areas');
});
$('copy').addEventListener('click', () => copyText($('command').textContent));
