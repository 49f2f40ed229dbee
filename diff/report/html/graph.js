// ---------------------------------------------------------------- the graph

const canvas = $('graph');
const ROW = 20;
let boxes = []; // {node, x, width, depth}
let zoomed = 0, focus = 0, hovered = -1;
let matches = null; // by label: found by the search; null: no search
let paperWidth = 0; // pixels between the margins of a printed page, or 0 on the screen

const graphWidth = () => paperWidth || canvas.clientWidth;

function layout() {
	const width = graphWidth();
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
	const most = Math.max(tree.up[0], tree.down[0], isOne() ? tree.new[0] : 0);
	const part = most ? Math.sqrt(Math.min(1, Math.abs(sum) / most)) : 0;
	const hue = isOne() || sum <= 0 ? 212 : 8;
	const light = !dark ? 93 - 33 * part : 21 + 20 * part; // text on it stays readable
	const tint = sum ? 30 + (dark ? 40 : 55) * part : 0;
	return `hsl(${hue} ${above ? tint / 3 : tint}% ${light}%)`;
}

const MONO = 'ui-monospace, Consolas, "DejaVu Sans Mono", monospace';

/* Returns how many letters of the graph and the table fit into a width. */
function roomFor(width, size) {
	const context = canvas.getContext('2d');
	context.font = `${size}px ${MONO}`;
	return Math.floor(width / context.measureText('M').width);
}

/* Shortens a text in the middle, because the end of a C++ name is its function. */
function shorten(text, room) {
	const tail = room < 12 ? 0 : Math.floor((room - 1) / 2);
	return text.length <= room ? text : text.slice(0, room - 1 - tail) + '\u2026' + text.slice(text.length - tail);
}

function fit(text, room) {
	if (text.length <= room)
		return text;
	const bare = (text.match(/^[+\u2212] /)?.[0] ?? '') + text.slice(text.indexOf('!') + 1).replace(/^[+\u2212] /, ''); // without the module
	return room < 3 ? '' : shorten(bare, room);
}

function draw() {
	const began = performance.now(), scale = paperWidth ? 2 : devicePixelRatio || 1, width = graphWidth();
	const css = getComputedStyle(document.documentElement), of = name => css.getPropertyValue(name);
	const ink = of('--ink'), paper = of('--paper'), mark = of('--mark'), link = of('--link'), grown = of('--grown'), shrunk = of('--shrunk');
	layout();
	const height = ROW * (1 + boxes.reduce((most, box) => Math.max(most, box.depth), 0));
	canvas.style.height = paperWidth ? 'auto' : height + 'px'; // paper may be wider or narrower
	canvas.width = Math.round(width * scale);
	canvas.height = Math.min(32000, Math.round(height * scale));
	const context = canvas.getContext('2d');
	const chosen = marked < 0 ? null : new Set(pathOf(tree.leaf[marked]));
	context.scale(scale, scale);
	context.direction = 'ltr';
	context.textBaseline = 'middle';
	const letter = 1000 / roomFor(1000, 12);
	for (const { node, x, width, depth, above } of boxes) {
		const y = depth * ROW, gap = width > 3 ? 1 : 0, found = matches && node && matches[tree.label[node]];
		context.globalAlpha = matches && !found && node ? 0.35 : 1;
		context.fillStyle = colour(node, above);
		context.fillRect(x, y, width - gap, ROW - 1);
		if (!isOne() && tree.up[node] && tree.down[node] && width > 8) { // shares of growth and shrinking
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
			const sum = tree.new[node] - tree.old[node], sign = isOne() || !sum ? '' : sum > 0 ? '+ ' : '\u2212 '; // what grew is not told by colours alone
			const text = fit(sign + labelOf(node), Math.floor((width - 8) / letter));
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

function showTip(event) {
	const tip = $('tip');
	tip.hidden = false;
	tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
	tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
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
	showTip(event);
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
/* Shows only what the zoomed function calls, or with the other order what calls it. Again: all. */
$('around').addEventListener('click', () => {
	state.through = state.through ? '' : labelOf(zoomed);
	state.zoom = [];
	update('order');
});
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
