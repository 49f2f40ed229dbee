// ---------------------------------------------------------------- state and updates

/* Switches to the chosen series. A range outside it becomes the whole series. */
function chooseSeries() {
	view = views[state.series];
	rows = view.rows ?? [];
	marked = -1;
	document.querySelectorAll('header .series').forEach((section, i) => { section.hidden = i !== state.series; });
	if (recording)
		times = edges.map(edge => edge.ms);
	if (hasChart && !(state.from < state.to && state.to < pointCount())) {
		state.from = 0;
		state.to = pointCount() - 1;
	}
	if (!isTrend)
		return;
	const shots = view.snapshots, given = shots.map(shot => Date.parse((shot.time ?? shot.local_time + 'Z')));
	times = given.some(Number.isNaN) || given[0] === given[given.length - 1] ? shots.map((_, i) => i) : given;
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
	if (isAll || what === 'range' || (recording && what === 'show'))
		readSums();
	if (!isGrouped) {
		if (isAll || what === 'order' || what === 'group') {
			buildTree();
			unfolded.clear();
		} else if (what !== 'zoom' && what !== 'search' && what !== 'table')
			sumTree();
		zoomed = zoomNode();
		state.zoom = pathOf(zoomed).map(labelOf);
		if (what !== 'table' && what !== 'search')
			focus = zoomed;
		selectZoomed();
		$('out').disabled = !zoomed;
		$('around').disabled = !zoomed && !state.through;
		$('around').textContent = state.through ? 'All functions' : state.order === 'down' ? 'Only its callees' : 'Only its callers';
		tell(zoomed);
	}
	search();
	table();
	if (hasChart)
		chart(isAll || what === 'metric' || what === 'areas');
	if (!isGrouped)
		drawSoon();
	writeHash();
}

const KEYS = { series: 'v', show: 'w', metric: 'm', order: 'o', group: 'g', search: 'q', sort: 's', from: 'a', to: 'b', areas: 'k', what: 'u', hidden: 'h', through: 'f', source: 'e', theme: 'c' };
const CHOICES = { show: recording ? Object.keys(SHOWN) : ['growth', 'old', 'new'], metric: hasBlocks ? ['bytes', 'blocks'] : ['bytes'], order: ['down', 'up'], group: ['stack', 'function', 'module', 'tree'], areas: ['function', 'stack', 'module', 'memory'], what: ['use', 'rate'], hidden: ['', '1'], theme: ['', 'light', 'dark'] };

function writeHash() {
	const words = new URLSearchParams();
	for (const key in KEYS) {
		if (recording && (key === 'from' || key === 'to'))
			continue;
		const isWhole = (key === 'from' && !state.from) || (key === 'to' && (!hasChart || state.to === pointCount() - 1));
		if (state[key] !== usual[key] && !isWhole)
			words.set(KEYS[key], (key === 'sort' && state.reversed ? '-' : '') + state[key]);
	}
	if (recording && (state.from || state.to !== edges.length - 1))
		words.set('t', rangeText());
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
	if (hasChart && !words.has('b'))
		state.to = (recording ? edges : views[state.series].snapshots).length - 1;
	if (recording)
		readRange(words.get('t') ?? '');
	state.zoom = words.getAll('z');
	$('shown').value = state.show;
	$('kind').value = state.areas;
	$('what').value = state.what;
	$('hide').checked = state.hidden === '1';
	$('source').value = state.source;
	for (const key of recording ? ['metric', 'order', 'group'] : ['show', 'metric', 'order', 'group'])
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
$('shown').addEventListener('change', () => {
	state.show = $('shown').value;
	state.zoom = [];
	update('show');
});
$('hide').addEventListener('change', () => {
	state.hidden = $('hide').checked ? '1' : '';
	state.zoom = [];
	update('order');
});
$('source').addEventListener('change', () => {
	state.source = $('source').value;
	$('source').setAttribute('aria-invalid', state.source !== '' && !isSourcePattern(state.source));
	update('table');
});
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
function redraw() {
	if (hasChart)
		chart(false);
	if (!isGrouped)
		draw();
}
addEventListener('resize', () => requestAnimationFrame(redraw));
addEventListener('hashchange', () => {
	readHash();
	update('all');
});

/* Prints in light colours, with graph and chart drawn for paper. */
let onScreen;
addEventListener('beforeprint', () => {
	onScreen = state.theme;
	paperWidth = 700;
	setTheme('light');
	redraw();
});
addEventListener('afterprint', () => {
	paperWidth = 0;
	setTheme(onScreen);
	requestAnimationFrame(redraw);
});

$('theme').hidden = $('main').hidden = false;
$('show').hidden = recording !== null || !hasOld;
$('shown-choice').hidden = !recording;
$('shown').append(...Object.keys(SHOWN).map(name => new Option(SHOWN[name], name)));
$('kind').append(...['function', 'stack', 'module', ...(recording ? ['memory'] : [])].map(name => new Option(name, name)));
$('flame').hidden = $('hide-choice').hidden = $('order').hidden = $('group').hidden = $('metric').hidden = isGrouped;
$('show').hidden ||= isGrouped;
$('metric').hidden ||= !hasBlocks;
$('trend').hidden = !hasChart;
$('moments').hidden = $('classes').hidden = !recording;
$('dates').hidden = !isTrend;
$('what-choice').hidden = !recording;
if (recording)
	document.querySelectorAll('header .classes').forEach(whole => { whole.hidden = true; });
$('series-choice').hidden = views.length < 2;
$('series').append(...views.map((each, i) => new Option(`${each.number}: ${each.parts?.[0].image?.replace(/.*[\\/]/, '') ?? ''} ${each.parts?.[0].pid ?? ''}`, i)));
$('legend').textContent = isOne() ? 'Width and depth of colour: live memory. Click to zoom, Escape to zoom out.' :
	'Width: what grew and what shrank together. Red grew, blue shrank, the deeper the more; a bar below has the share of each. Click to zoom, Escape to zoom out.';
readHash();
update('all');
if (!isGrouped)
	draw();
document.documentElement.dataset.ready = performance.now().toFixed(0);
document.documentElement.dataset.script = (performance.now() - started).toFixed(0);
