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
	isZoomed = rows.map((row, i) => tree.leaf[i] >= 0 && inside[tree.leaf[i]] === 1);
}

// ---------------------------------------------------------------- the table

const AT_ONCE = 100;
let items = []; // rows of the table, in order; {row} or {group}
let shownCount = 0;

const numbers = (name, title, metric, value, isGrowth) => ({ name, title, value,
	text: item => (isGrowth ? growthText : numberText)(value(item), metric), isGrowth });

/* The columns of the call tree, whose nodes have sums in the chosen unit only. */
function treeColumns() {
	const metric = state.metric;
	const list = isOne() ? [numbers('new', metric === 'bytes' ? 'Bytes' : 'Blocks', metric, item => tree.new[item.node])] :
		[numbers('growth', 'Growth', metric, item => tree.new[item.node] - tree.old[item.node], true), numbers('old', 'Old', metric, item => tree.old[item.node]),
			numbers('new', 'New', metric, item => tree.new[item.node])];
	list.push({ name: 'share', title: 'Share', value: item => tree.weight[item.node], text: item => shareText(tree.weight[item.node], tree.weight[0]) },
		numbers('stacks', 'Stacks', 'blocks', item => tree.rows[item.node]),
		{ name: 'name', title: state.order === 'down' ? 'Function and its callees' : 'Function and its callers', value: item => item.name, text: item => item.name, isName: true });
	return list;
}

const unfolded = new Set([0]); // nodes whose children the tree shows

/* Lists the nodes that are unfolded, each behind its parent. A node that has only one child is unfolded with it. */
function treeItems() {
	const list = [];
	const add = (node, depth) => {
		list.push({ node, depth, row: -1, name: labelOf(node) });
		if (!unfolded.has(node))
			return;
		for (const kid of tree.kids[node].filter(each => tree.weight[each]).sort((a, b) => tree.weight[b] - tree.weight[a] || tree.label[a] - tree.label[b]))
			add(kid, depth + 1);
	};
	add(zoomed, 0);
	return list;
}

function fold(node) {
	if (unfolded.has(node)) {
		unfolded.delete(node);
	} else {
		for (let at = node; ; at = tree.kids[at][0]) {
			unfolded.add(at);
			if (tree.kids[at].length !== 1)
				break;
		}
	}
	table();
}

function columns() {
	if (state.group === 'tree' && !isGrouped)
		return treeColumns();
	const of = (metric, when) => item => item.row >= 0 ? sums[metric][when][item.row] : item.total[when][metric];
	const grew = metric => item => of(metric, 'new')(item) - of(metric, 'old')(item);
	const list = isOne() ? [numbers('new', 'Bytes', 'bytes', of('bytes', 'new')), numbers('blocks', 'Blocks', 'blocks', of('blocks', 'new'))] :
		[numbers('growth', 'Growth', 'bytes', grew('bytes'), true), numbers('blocks', 'Blocks', 'blocks', grew('blocks'), true),
			numbers('old', 'Old', 'bytes', of('bytes', 'old')), numbers('new', 'New', 'bytes', of('bytes', 'new'))];
	const isByStack = !isGrouped && state.group === 'stack';
	if (!isByStack)
		list.push(numbers('self', isOne() ? 'Self' : 'Self growth', 'bytes', item => item.self.new.bytes - item.self.old.bytes, !isOne()));
	if (isByStack && tree) {
		list.push({ name: 'share', title: 'Share', value: item => weight(item.row), text: item => shareText(weight(item.row), tree.weight[0]) });
		if (isTrend)
			list.push({ name: 'verdict', title: 'Verdict', value: item => -VERDICTS.indexOf(rows[item.row].trend.verdict), text: item => rows[item.row].trend.verdict, isWord: true },
				{ name: 'rate', title: 'Per hour', value: item => rows[item.row].trend.bytes_per_hour ?? 0, text: item => rateText(rows[item.row].trend.bytes_per_hour), isGrowth: true });
	}
	if (view.window && isGrouped)
		list.push(numbers('allocated', 'Allocated', 'bytes', item => item.window.ai.bytes), numbers('transient', 'Transient', 'bytes', item => item.window.aifi.bytes),
			numbers('peak', 'Peak', 'bytes', item => item.window.peak.bytes),
			{ name: 'life', title: 'Mean life', value: item => item.window.lifetime?.mean_ms ?? -1, text: item => lifeText(item.window.lifetime?.mean_ms) });
	if (recording && isByStack) {
		list.push(numbers('allocated', 'Allocated', 'bytes', item => sums.bytes.allocated[item.row]), numbers('transient', 'Transient', 'bytes', item => sums.bytes.transient[item.row]));
		if (!state.from && state.to === edges.length - 1) // of the whole window only
			list.push({ name: 'life', title: 'Mean life', value: item => rows[item.row].mean_ms ?? -1, text: item => lifeText(rows[item.row].mean_ms) });
	}
	list.push({ name: 'name', title: isByStack ? 'Function' : isGrouped ? report.group[0].toUpperCase() + report.group.slice(1) : state.group === 'module' ? 'Module' : 'Function',
		value: item => item.name, text: item => item.short ?? item.name, isName: true });
	if (isByStack && hasPlaces)
		list.push({ name: 'file', title: 'File', value: item => item.place, text: item => item.place.replace(/.*[\\/]/s, ''), isName: true });
	if (innerWidth < 600) // the name is what a narrow screen shows first
		list.unshift(...list.splice(list.findIndex(column => column.name === 'name'), 1));
	return list.filter(column => hasBlocks || column.name !== 'blocks');
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
	} else if (state.group === 'tree') {
		unfolded.add(zoomed);
		items = treeItems();
		return; // in the order of the tree
	} else if (state.group === 'stack') {
		items = rows.map((row, i) => ({ row: i, name: row.title, short: row.short, place: frames[row.own].place })).filter(item => isZoomed[item.row] && isFound[item.row]);
		if (recording) // its rows are in no order, and not all have blocks in the range
			items = items.filter(item => sums.blocks.old[item.row] || sums.blocks.new[item.row]).sort((a, b) => weight(b.row) - weight(a.row) || a.row - b.row);
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

/* Fills the table anew. The focus stays on its head or row. */
function table() {
	const focused = document.activeElement, column = focused.closest('#columns th')?.dataset.name, node = focused.closest('#rows tr')?.dataset.node;
	fillTable();
	if (column)
		$('columns').querySelector(`[data-name=${column}] button`)?.focus();
	while (node && !$('rows').querySelector(`[data-node="${node}"]`) && shownCount < items.length)
		showMore();
	if (node)
		$('rows').querySelector(`[data-node="${node}"] button`)?.focus();
}

function fillTable() {
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
	$('table').setAttribute('role', state.group === 'tree' && !isGrouped ? 'treegrid' : 'table');
	collect();
	$('rows').replaceChildren();
	$('rows').dataset.count = items.length;
	shownCount = 0;
	showMore();
}

function showMore() {
	const list = columns(), room = roomFor($('columns').querySelector('.name').clientWidth - 18, 13);
	for (const item of items.slice(shownCount, shownCount + AT_ONCE))
		$('rows').append(tableRow(item, list, room));
	shownCount = Math.min(items.length, shownCount + AT_ONCE);
	$('more').hidden = shownCount >= items.length;
	$('more').textContent = `Show more (${exact.format(items.length - shownCount)} left)`;
}

function tableRow(item, list, room) {
	const line = element('tr', undefined, 'row');
	if (item.row >= 0)
		line.dataset.row = item.row;
	for (const column of list) {
		const cell = element('td', undefined, column.isName ? column.name : '');
		if (column.name === 'name') {
			const button = element('button', shorten(column.text(item), Math.max(20, room - 2 * (item.depth ?? 0))));
			button.type = 'button';
			button.title = item.name;
			if (item.row >= 0)
				button.setAttribute('aria-expanded', 'false');
			if (item.node >= 0) {
				const isOpen = unfolded.has(item.node), hasKids = tree.kids[item.node].length > 0;
				button.prepend(hasKids ? isOpen ? '\u25be ' : '\u25b8 ' : '\u2003');
				button.style.paddingLeft = 14 * Math.min(item.depth, 40) + 'px';
				if (hasKids)
					line.setAttribute('aria-expanded', isOpen);
				line.setAttribute('aria-level', item.depth + 1);
				line.dataset.node = item.node;
			}
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

const escaped = text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/* Handles a click: shows a row's stack, here and in the graph, or searches for a group. */
function open(item, line) {
	if (item.node >= 0)
		return fold(item.node);
	if (item.row < 0) {
		if (isGrouped)
			return;
		$('search').value = state.search = '^' + escaped(item.name) + (state.group === 'module' ? '[!+]' : '$');
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
	if (hasChart)
		chart(false);
}

/* Returns the place of a frame, as a link if the user has set how to open sources. */
function placeOf(frame) {
	const place = element('bdi', frame.place, 'place');
	if (!isSourcePattern(state.source))
		return place;
	const link = element('a');
	link.href = state.source.replace('{file}', encodeURI(frame.file.replace(/\\/g, '/')).replace(/[?#]/g, encodeURIComponent)).replace('{line}', frame.line ?? 1);
	link.append(place);
	return link;
}

/* An address that opens another program; never a script. */
const isSourcePattern = text => /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^(?:javascript|data|vbscript|blob):/i.test(text) && text.includes('{file}');

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
				part.append(' ', placeOf(frames[frame]));
			if (frames[frame].inline)
				part.append(element('span', ' [inline]', 'place'));
			list.append(part);
		}
		cell.append(list);
	}
	if (row.heap)
		notes.push('heap ' + row.heap);
	if (row.ids.length)
		notes.push('id ' + row.ids.join(', '));
	if (row.freed_by) {
		const by = row.freed_by;
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

/* Copies the table as text, with a TAB between columns. */
$('copy-table').addEventListener('click', () => {
	const list = columns(), lines = [list.map(column => column.title), ...items.map(item => list.map(column => column.isName && item.depth ? '  '.repeat(item.depth) + item.name : column.text(item)))];
	copyText(lines.map(line => line.join('\t')).join('\n') + '\n');
	$('copied').textContent = `${exact.format(items.length)} lines copied`;
	$('copied').dataset.text = lines.length < 2000 ? lines.map(line => line.join('\t')).join('\n') : '';
});
$('more').addEventListener('click', showMore);
/* Arrows move between rows, and fold and unfold them. */
$('rows').addEventListener('keydown', event => {
	const line = event.target.closest('tr.row'), beside = { ArrowUp: 'previousElementSibling', ArrowDown: 'nextElementSibling' }[event.key];
	const isOpen = (line?.closest('[aria-expanded]') ?? line?.querySelector('[aria-expanded]'))?.getAttribute('aria-expanded');
	let next = line;
	if (line && beside) {
		do
			next = next[beside];
		while (next && !next.matches('.row'));
		next?.querySelector('.name button').focus();
	} else if (line && ((event.key === 'ArrowRight' && isOpen === 'false') || (event.key === 'ArrowLeft' && isOpen === 'true'))) {
		line.click();
	} else {
		return;
	}
	event.preventDefault();
});
new IntersectionObserver(seen => seen.some(each => each.isIntersecting) && showMore()).observe($('more'));
