/* Matching: computes a row of sums for each class of stacks. Joins the rows of one stack in
 * different builds, and sorts changed rows by growth. */
#include "diff/match/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/locations.h"
#include "diff/match/match_parts.h"
#include "diff/match/row_series.h"
#include "diff/read/stack_store.h"

/* Adds sums of several processes. Limits each number to INT64_MAX. */
static void totals_add(struct block_totals *to, const struct block_totals *more)
{
	block_totals_add(to, more);
	to->block_count = to->block_count > INT64_MAX ? INT64_MAX : to->block_count;
	to->requested_bytes = to->requested_bytes > INT64_MAX ? INT64_MAX : to->requested_bytes;
	to->overhead_bytes = to->overhead_bytes > INT64_MAX ? INT64_MAX : to->overhead_bytes;
}

/* Computes a comparison's totals. Includes reserved address space only if it is selected.
 * Otherwise, stores its sum separately. */
static void totals_count(struct comparison *comparison, const struct match_request *request)
{
	struct change total = {0}, reserved = {0}, handles = {0};
	const struct trend_axis *axis = comparison->axis;
	bool is_asked = false, asks_handles = false;

	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];
		bool is_last = comparison->is_sum || i + 1 == comparison->dump_count;

		if (axis ? axis_begins(axis, i) : !i && comparison_columns(comparison) > 1) {
			totals_add(&total.old, &dump->total);
			totals_add(&reserved.old, &dump->reserved);
			totals_add(&handles.old, &dump->handles);
		}
		if (axis ? axis_ends(axis, i) : is_last) {
			totals_add(&total.now, &dump->total);
			totals_add(&reserved.now, &dump->reserved);
			totals_add(&handles.now, &dump->handles);
		}
	}
	for (size_t i = 0; i < request->heap_count; i++) {
		is_asked |= request->heaps[i] == HEAP_RESERVED;
		asks_handles |=
			request->heaps[i] == HANDLES_ALL || heap_is_handles(request->heaps[i]);
	}
	if (asks_handles) {
		totals_add(&total.old, &handles.old);
		totals_add(&total.now, &handles.now);
	} else {
		comparison->handles = handles;
	}
	if (is_asked) {
		totals_add(&total.old, &reserved.old);
		totals_add(&total.now, &reserved.now);
	} else {
		comparison->reserved = reserved;
		comparison->hides_reserved = reserved.now.block_count || reserved.old.block_count;
		for (size_t i = 0; axis && i < comparison->dump_count; i++) {
			const struct block_totals *any = &comparison->dumps[i].reserved;

			comparison->hides_reserved |= any->block_count != 0;
			if (any->requested_bytes > comparison->reserved_most)
				comparison->reserved_most = any->requested_bytes;
		}
	}
	comparison->old_total = total.old;
	comparison->new_total = total.now;
}

/* Key of a row when rows are kept per heap. */
struct heap_row {
	uint64_t heap, row_class; /* number of the class */
};

/* State of matching. A row's number is its class number or, with rows per heap, its index in
 * `heap_rows`. */
struct matcher {
	struct comparison *comparison;
	const struct match_request *request;
	struct stack_classes classes;
	struct class_pairs pairs;
	struct table heap_row_numbers;
	struct heap_row *heap_rows;
	size_t heap_row_count, heap_row_cap;
	struct block_totals *sums; /* indexed by row and dump */
	size_t row_count, row_cap;
	uint32_t **rows; /* row numbers, indexed by dump and cell */
};

static struct delta subtract(struct block_totals now, struct block_totals old)
{
	/* Each number is at most INT64_MAX, see read_dump.c. */
	return (struct delta){(int64_t)now.block_count - (int64_t)old.block_count,
		(int64_t)now.requested_bytes - (int64_t)old.requested_bytes,
		(int64_t)now.overhead_bytes - (int64_t)old.overhead_bytes};
}

bool comparison_is_window(const struct comparison *comparison)
{
	return comparison->dump_count == 1 && comparison->dumps &&
	       comparison->dumps->window.kind_cells && !comparison->axis;
}

struct block_totals row_new(const struct comparison *comparison, const struct row *row)
{
	return comparison->axis ? series_last(comparison->axis, row->totals) :
				  row->totals[comparison_columns(comparison) - 1];
}

struct block_totals row_old(const struct comparison *comparison, const struct row *row)
{
	if (comparison->axis)
		return series_first(comparison->axis, row->totals);
	return comparison_columns(comparison) > 1 ? row->totals[0] : (struct block_totals){0};
}

struct delta row_delta(const struct comparison *comparison, const struct row *row)
{
	return subtract(row_new(comparison, row), row_old(comparison, row));
}

struct delta comparison_delta(const struct comparison *comparison)
{
	return subtract(comparison->new_total, comparison->old_total);
}

/* ---------------------------------------------------------------- sums */

/* Returns the row number of a class in a heap. */
/* Rows per thread are stored like rows per heap. */
static bool is_by_heap(const struct match_request *request)
{
	return request->by_heap || request->by_thread;
}

static uint32_t heap_row_number(struct matcher *matcher, uint32_t row_class, uint64_t heap)
{
	struct heap_row row = {heap, row_class};
	const uint64_t *known = table_find(&matcher->heap_row_numbers, &row, sizeof(row));

	if (known)
		return (uint32_t)*known;
	array_grow((void **)&matcher->heap_rows, &matcher->heap_row_cap, matcher->heap_row_count,
		sizeof(row));
	table_add(&matcher->heap_row_numbers, &row, sizeof(row), matcher->heap_row_count);
	matcher->heap_rows[matcher->heap_row_count] = row;
	return (uint32_t)matcher->heap_row_count++;
}

static uint32_t class_of_row(const struct matcher *matcher, uint32_t row)
{
	return is_by_heap(matcher->request) ? (uint32_t)matcher->heap_rows[row].row_class : row;
}

static uint64_t heap_of_row(const struct matcher *matcher, uint32_t row)
{
	return is_by_heap(matcher->request) ? matcher->heap_rows[row].heap : 0;
}

/* Adds a cell of a dump to a row. Allocates the row if it does not exist. */
static void count(
	struct matcher *matcher, size_t dump, const struct stack_total *cell, uint32_t row)
{
	size_t columns = comparison_columns(matcher->comparison);

	for (; matcher->row_count <= row; matcher->row_count++) {
		array_grow((void **)&matcher->sums, &matcher->row_cap, matcher->row_count,
			columns * sizeof(*matcher->sums));
		memset(&matcher->sums[matcher->row_count * columns], 0,
			columns * sizeof(*matcher->sums));
	}
	totals_add(&matcher->sums[row * columns + (matcher->comparison->is_sum ? 0 : dump)],
		&cell->sums);
}

struct dump_stacks {
	size_t dump;
	uint32_t *classes; /* indexed by stack */
	/* Classes of bare entries, which have an id but no stack. Indexed by the first stack with
	 * the entry's id. INDEX_NONE: not determined yet. The array is NULL until a bare entry
	 * occurs. */
	uint32_t *bare;
};

/* Returns the class of the bare entries with one id. Each entry has one of the stacks with
 * this id, but it is unknown which one. `first` is the first of these stacks. */
static uint32_t bare_class(struct matcher *matcher, struct dump_stacks *stacks, uint32_t first)
{
	const struct dump_sums *sums = &matcher->comparison->dumps[stacks->dump];
	uint32_t *all = NULL;
	size_t count = 0, cap = 0;

	if (!stacks->bare) {
		stacks->bare = xmalloc(sums->stacks.count * sizeof(*stacks->bare));
		memset(stacks->bare, 0xff, sums->stacks.count * sizeof(*stacks->bare));
	}
	if (stacks->bare[first] != INDEX_NONE)
		return stacks->bare[first];
	for (uint32_t at = first; at != STACK_NONE; at = sums_same_id(sums, at)) {
		array_grow((void **)&all, &cap, count, sizeof(*all));
		all[count++] = stacks->classes[at];
	}
	stacks->bare[first] = stack_class_one_of(&matcher->classes, all, count);
	free(all);
	return stacks->bare[first];
}

bool match_heap(uint64_t asked, uint64_t heap)
{
	return asked == heap || (asked == HEAPS_ALL && !heap_name(heap)) ||
	       (asked == HANDLES_ALL && heap_is_handles(heap));
}

static bool is_wanted(const struct match_request *request, uint64_t heap)
{
	for (size_t i = 0; i < request->heap_count; i++) {
		if (match_heap(request->heaps[i], heap))
			return true;
	}
	return !request->heap_count && heap != HEAP_RESERVED && !heap_is_handles(heap);
}

static uint32_t cell_row(struct matcher *matcher, struct dump_stacks *stacks,
	const struct stack_total *cell, uint64_t heap)
{
	uint32_t row_class;

	if (cell->stack == STACK_NONE)
		row_class = stack_class_none(&matcher->classes, stacks->dump);
	else if (cell->is_bare)
		row_class = bare_class(matcher, stacks, cell->stack);
	else
		row_class = stacks->classes[cell->stack];
	return is_by_heap(matcher->request) ? heap_row_number(matcher, row_class, heap) : row_class;
}

static void dump_match(struct matcher *matcher, size_t dump)
{
	const struct dump_sums *sums = &matcher->comparison->dumps[dump];
	struct dump_stacks stacks = {
		.dump = dump, .classes = xmalloc(sums->stacks.count * sizeof(uint32_t))};
	struct cell_walk walk = stack_totals_walk(sums);
	const struct stack_total *cell;
	uint32_t *row = xmalloc(sums->cell_count * sizeof(*row));

	matcher->rows[dump] = row;
	stack_classes_find(&matcher->classes, dump, stacks.classes);
	class_pairs_add(&matcher->pairs, dump, stacks.classes, sums->stacks.count);
	for (; (cell = stack_totals_next(&walk)); row++) {
		uint64_t heap = sums->heaps[cell->heap];

		*row = ROW_NONE;
		if (!is_wanted(matcher->request, heap) ||
			(matcher->request->only_lost &&
				(!sums->reaches || sums->reaches[cell->heap] < BLOCK_LOST)))
			continue;
		if (matcher->request->by_thread)
			heap = sums->cell_threads ? sums->cell_threads[row - matcher->rows[dump]] :
						    0;
		*row = cell_row(matcher, &stacks, cell, heap);
		count(matcher, dump, cell, *row);
	}
	free(stacks.classes);
	free(stacks.bare);
}

static void row_move(struct matcher *matcher, uint32_t from, uint32_t to)
{
	size_t columns = comparison_columns(matcher->comparison);

	count(matcher, 0, &(struct stack_total){0}, to); /* allocates the row */
	for (size_t i = 0; i < columns; i++) {
		totals_add(&matcher->sums[to * columns + i], &matcher->sums[from * columns + i]);
		matcher->sums[from * columns + i] = (struct block_totals){0};
	}
}

/* Joins rows that represent one stack in different builds. */
static void join_builds(struct matcher *matcher)
{
	uint32_t *into = class_pairs_find(&matcher->pairs), *rows;
	size_t row_count = matcher->row_count;

	if (!into)
		return;
	rows = xmalloc(row_count * sizeof(*rows));
	for (uint32_t i = 0; i < row_count; i++) {
		uint32_t row_class = class_of_row(matcher, i);

		rows[i] = i;
		if (into[row_class] == row_class)
			continue;
		rows[i] = is_by_heap(matcher->request) ? heap_row_number(matcher, into[row_class],
								 heap_of_row(matcher, i)) :
							 into[row_class];
		row_move(matcher, i, rows[i]);
	}
	for (size_t dump = 0; dump < matcher->comparison->dump_count; dump++) {
		for (size_t i = 0; i < matcher->comparison->dumps[dump].cell_count; i++) {
			uint32_t *row = &matcher->rows[dump][i];

			*row = *row == ROW_NONE ? ROW_NONE : rows[*row];
		}
	}
	free(rows);
	free(into);
}

/* ---------------------------------------------------------------- rows */

#define PREFETCH_AHEAD 16 /* in rows */

/* A changed row during sorting. To save memory, rows are sorted by one key at a time. */
struct changed {
	uint64_t key; /* ascending */
	uint32_t row;
	uint32_t rank; /* rank by the keys sorted so far; equal for rows whose keys are all equal */
};

/* Sort keys, primary key first. Sorting starts with the last key and is stable. */
enum changed_key {
	KEY_BYTES,
	KEY_BLOCKS,
	KEY_FRAME, /* the innermost frame */
	CHANGED_KEYS,
};

/* A row among rows of equal growth. */
struct alike {
	const struct matcher *matcher;
	uint64_t key;
	uint32_t row;
};

/* Returns a sort key that places the largest growth first. */
static uint64_t growth_key(int64_t growth)
{
	return (uint64_t)INT64_MAX - (uint64_t)growth;
}

static uint64_t key_of(const struct matcher *matcher, uint32_t number, enum changed_key key)
{
	const struct comparison *comparison = matcher->comparison;
	const struct row row = {.totals = &matcher->sums[number * comparison_columns(comparison)]};
	struct delta delta;

	if (key == KEY_FRAME)
		return stack_class_key(&matcher->classes, class_of_row(matcher, number), 0);
	delta = row_delta(comparison, &row);
	return growth_key(key == KEY_BYTES ? delta.requested_bytes : delta.block_count);
}

/* Stable radix sort by key, lowest byte first. Skips each byte that is equal in all keys, which
 * most bytes are. `rows` has room for 2 * count elements. */
static void sort_by_key(struct changed *rows, size_t count)
{
	struct changed *from = rows, *to = rows + count, *sorted;
	uint64_t varies = 0;

	for (size_t i = 1; i < count; i++)
		varies |= rows[i].key ^ rows->key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t ends[256] = {0};

		if (!(varies >> shift & 0xff))
			continue;
		for (size_t i = 0; i < count; i++)
			ends[from[i].key >> shift & 0xff]++;
		for (size_t i = 1; i < 256; i++)
			ends[i] += ends[i - 1];
		for (size_t i = count; i--;)
			to[--ends[from[i].key >> shift & 0xff]] = from[i];
		sorted = to;
		to = from;
		from = sorted;
	}
	if (from != rows)
		memcpy(rows, from, count * sizeof(*rows));
}

/* Computes new ranks from the key and the previous rank of each row. */
static void rank_rows(struct changed *rows, size_t count)
{
	struct changed last = *rows;
	uint32_t rank = 0;

	for (size_t i = 0; i < count; i++) {
		rank += rows[i].key != last.key || rows[i].rank != last.rank;
		last = rows[i];
		rows[i].rank = rank;
	}
}

static int by_class(const void *a, const void *b)
{
	const struct alike *x = a, *y = b;
	const struct matcher *matcher = x->matcher;
	int order = number_order(x->key, y->key);

	if (!order)
		order = stack_class_order(&matcher->classes, class_of_row(matcher, x->row),
			class_of_row(matcher, y->row));
	return order ? order :
		       number_order(heap_of_row(matcher, x->row), heap_of_row(matcher, y->row));
}

/* Sorts rows of equal growth. Skips the innermost frames that all rows share, and uses the next
 * frame as a sort key. Most rows already differ in this frame, so only a few stacks are read more
 * than once. */
static void sort_alike(const struct matcher *matcher, struct changed *rows, size_t count)
{
	const struct stack_classes *classes = &matcher->classes;
	struct alike *alike = xmalloc(count * sizeof(*alike));
	uint32_t common = UINT32_MAX;

	for (size_t i = 1; i < count && common; i++)
		common = stack_class_common(classes, class_of_row(matcher, rows->row),
			class_of_row(matcher, rows[i].row), common);
	for (size_t i = 0; i < count; i++)
		alike[i] = (struct alike){matcher,
			stack_class_key(classes, class_of_row(matcher, rows[i].row), common),
			rows[i].row};
	qsort(alike, count, sizeof(*alike), by_class);
	for (size_t i = 0; i < count; i++)
		rows[i].row = alike[i].row;
	free(alike);
}

static void sort_changed(const struct matcher *matcher, struct changed *rows, size_t count)
{
	size_t columns = comparison_columns(matcher->comparison);

	for (unsigned key = CHANGED_KEYS; key--;) {
		for (size_t i = 0; i < count; i++) {
			if (count - i > PREFETCH_AHEAD)
				__builtin_prefetch(
					&matcher->sums[rows[i + PREFETCH_AHEAD].row * columns]);
			rows[i].key = key_of(matcher, rows[i].row, key);
		}
		sort_by_key(rows, count);
		rank_rows(rows, count);
	}
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && rows[from].rank == rows[to].rank;)
			to++;
		if (to - from > 1)
			sort_alike(matcher, &rows[from], to - from);
	}
}

/* Returns true if a row changed. In a trend, any difference between two snapshots of one part is a
 * change. */
static bool is_changed(
	const struct comparison *comparison, const struct row *row, const struct delta *delta)
{
	struct block_totals swing;

	if (!comparison->axis)
		return delta->requested_bytes || delta->block_count;
	swing = series_swing(comparison->axis, row->totals);
	return swing.requested_bytes || swing.block_count;
}

/* For a window of a recording: adds the rows that have only blocks of other fates than the selected
 * one. (The fate of a block records when it was allocated and freed, see enum block_fate.) */
static void add_others(const struct matcher *matcher, uint32_t *places, size_t *count)
{
	for (size_t i = 0; i < matcher->comparison->dumps->cell_count; i++) {
		uint32_t row = matcher->rows[0][i];

		if (row == ROW_NONE || !places[row])
			continue;
		places[row] = 0;
		++*count;
	}
}

/* Returns an array, indexed by row, with ROW_NONE for unchanged rows and 0 for changed rows. Adds
 * the number of changed rows to `*count`. */
static uint32_t *find_changed(const struct matcher *matcher, size_t *count)
{
	uint32_t *places = xmalloc(matcher->row_count * sizeof(*places));
	size_t columns = comparison_columns(matcher->comparison);

	for (size_t i = 0; i < matcher->row_count; i++) {
		const struct row row = {.totals = &matcher->sums[i * columns]};
		struct delta delta = row_delta(matcher->comparison, &row);
		bool is_one = matcher->comparison->has_unchanged ||
			      is_changed(matcher->comparison, &row, &delta);

		places[i] = is_one ? 0 : ROW_NONE;
		*count += is_one;
	}
	if (comparison_is_window(matcher->comparison))
		add_others(matcher, places, count);
	return places;
}

/* Sorts the changed rows and stores the position of each in `places`. `changed` has room for two
 * elements per changed row. */
static void find_places(const struct matcher *matcher, uint32_t *places, struct changed *changed)
{
	size_t count = 0;

	for (uint32_t i = 0; i < matcher->row_count; i++) {
		if (places[i] != ROW_NONE)
			changed[count++] = (struct changed){.row = i};
	}
	if (count)
		sort_changed(matcher, changed, count);
	for (uint32_t i = 0; i < count; i++)
		places[changed[i].row] = i;
}

/* Moves the sums of the changed rows to the front and frees the rest. */
static void sums_compact(struct matcher *matcher, const uint32_t *places)
{
	struct comparison *comparison = matcher->comparison;
	size_t columns = comparison_columns(comparison), bytes = columns * sizeof(*matcher->sums);
	size_t row_count = 0;

	for (size_t i = 0; i < matcher->row_count; i++) {
		if (places[i] != ROW_NONE)
			memmove(&matcher->sums[columns * row_count++], &matcher->sums[columns * i],
				bytes);
	}
	comparison->sums = xrealloc(matcher->sums, row_count * bytes);
	matcher->sums = NULL;
}

static void rows_make(struct matcher *matcher)
{
	struct comparison *comparison = matcher->comparison;
	const struct stack_classes *classes = &matcher->classes;
	uint32_t *places = find_changed(matcher, &comparison->row_count);
	struct block_totals *sums;

	/* Sort in the array that will later hold the rows. */
	_Static_assert(2 * sizeof(struct changed) <= sizeof(struct row), "there is room");
	comparison->rows = xmalloc(comparison->row_count * sizeof(*comparison->rows));
	find_places(matcher, places, (void *)comparison->rows);
	sums_compact(matcher, places);
	sums = comparison->sums;
	for (uint32_t i = 0; i < matcher->row_count; i++) {
		const struct stack_class *row_class = &classes->list[class_of_row(matcher, i)];
		struct row *row;

		if (matcher->row_count - i > PREFETCH_AHEAD &&
			places[i + PREFETCH_AHEAD] != ROW_NONE)
			__builtin_prefetch(&comparison->rows[places[i + PREFETCH_AHEAD]], 1);
		if (places[i] == ROW_NONE)
			continue;
		row = &comparison->rows[places[i]];
		*row = (struct row){
			.kind = row_class->kind, .heap = heap_of_row(matcher, i), .totals = sums};
		if (row->kind == ROW_ONE_OF)
			row->candidate_count = (uint32_t)classes->lists[row_class->stack].count;
		sums += comparison_columns(comparison);
	}
	for (size_t dump = 0; dump < comparison->dump_count; dump++) {
		for (size_t i = 0; i < comparison->dumps[dump].cell_count; i++) {
			uint32_t *row = &matcher->rows[dump][i];

			if (*row != ROW_NONE)
				*row = places[*row];
		}
	}
	free(places);
}

static void cell_rows_free(struct comparison *comparison)
{
	for (size_t i = 0; comparison->cell_rows && i < comparison->dump_count; i++)
		free(comparison->cell_rows[i]);
	free(comparison->cell_rows);
	comparison->cell_rows = NULL;
}

void comparison_make(struct comparison *comparison, const struct dump_sums *dumps,
	size_t dump_count, const struct match_request *request)
{
	struct matcher matcher = {.comparison = comparison,
		.request = request,
		.rows = xcalloc(dump_count, sizeof(*matcher.rows))};

	*comparison = (struct comparison){.dumps = dumps,
		.dump_count = dump_count,
		.is_sum = request->is_sum,
		.has_unchanged = request->keeps_unchanged && !request->axis,
		.axis = request->axis,
		.has_overhead = true,
		.lacks_rows = dumps->quality.lacks_rows,
		.locations = xcalloc(1, sizeof(*comparison->locations)),
		.names = xcalloc(1, sizeof(*comparison->names))};
	arena_init(&comparison->arena);
	for (size_t i = 0; i < dump_count; i++) {
		comparison->has_overhead &= !dumps[i].quality.lacks_overhead;
		comparison->lacks_blocks |= dumps[i].quality.lacks_blocks;
	}
	totals_count(comparison, request);
	stackless_sizes_choose(&comparison->stackless_sizes, dumps, dump_count);
	locations_make(comparison->locations, dumps, dump_count, request->is_one_process);
	names_init(comparison->names, comparison->locations, request->symbols);
	table_init(&matcher.heap_row_numbers);
	stack_classes_make(&matcher.classes, dumps, dump_count, comparison->locations,
		comparison->names, request);
	matcher.classes.stackless_sizes = &comparison->stackless_sizes;
	class_pairs_init(&matcher.pairs, &matcher.classes, dump_count);
	for (size_t i = 0; i < dump_count; i++)
		dump_match(&matcher, i);
	join_builds(&matcher);
	class_pairs_release(&matcher.pairs);
	stack_classes_close(&matcher.classes);
	rows_make(&matcher);
	stack_classes_forget(&matcher.classes);
	rows_label(comparison, &matcher.classes, matcher.rows);
	if (comparison->axis)
		series_judge_rows(comparison);
	comparison->cell_rows = matcher.rows;
	if (!comparison_is_window(comparison) && !dumps->single.wants_listed)
		cell_rows_free(comparison);
	free(matcher.sums);
	free(matcher.heap_rows);
	table_release(&matcher.heap_row_numbers);
	stack_classes_release(&matcher.classes);
}

void comparison_release(struct comparison *comparison)
{
	if (comparison->names)
		names_release(comparison->names);
	if (comparison->locations)
		locations_release(comparison->locations);
	free(comparison->names);
	free(comparison->locations);
	free(comparison->sums);
	free(comparison->trends);
	free(comparison->rows);
	cell_rows_free(comparison);
	arena_release(&comparison->arena);
	*comparison = (struct comparison){0};
}
