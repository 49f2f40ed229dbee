// ---------------------------------------------------------------- the tree

let tree; // parent[], label[], kids[], leaf[] by row, and by node up, down, old, new

/* Returns the frames of a row that the tree has, innermost first: without those of libraries, if they are hidden, and from or up
 * to the chosen function. Returns null if the row does not contain this function. */
function treeStack(row) {
	let stack = row.stack;
	if (state.hidden) {
		const own = stack.filter(frame => !frames[frame].layer && !frames[frame].start);
		stack = own.length ? own : stack;
	}
	if (!state.through)
		return stack;
	const isIt = frame => labels[frames[frame].name] === state.through;
	const at = state.order === 'down' ? stack.findLastIndex(isIt) : stack.findIndex(isIt);
	return at < 0 ? null : state.order === 'down' ? stack.slice(0, at + 1) : stack.slice(at);
}

function buildTree() {
	const key = state.group === 'module' ? 'module' : 'name';
	const known = new Map(), parent = [-1], name = [-1], kids = [[]], leaf = new Int32Array(rows.length);
	rows.forEach((row, i) => {
		const stack = treeStack(row), count = stack?.length;
		let at = 0;
		if (!stack) {
			leaf[i] = -1;
			return;
		}
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
		if (node < 0)
			return;
		tree[change < 0 ? 'down' : 'up'][node] += Math.abs(change);
		tree.old[node] += sum.old[i];
		tree.new[node] += sum.new[i];
		tree.rows[node] += !recording || sum.old[i] || sum.new[i] ? 1 : 0;
	});
	for (let node = count - 1; node; node--) {
		for (const what of ['up', 'down', 'old', 'new', 'rows'])
			tree[what][tree.parent[node]] += tree[what][node];
	}
	tree.weight = state.show === 'growth' ? tree.up.map((up, i) => up + tree.down[i]) : tree[state.show === 'old' ? 'old' : 'new'];
}

const labelOf = node => node ? labels[tree.label[node]] : isOne() ? '(all)' : '(all that changed)';

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
