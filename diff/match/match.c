#include "diff/match/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/locations.h"
#include "diff/match/match_parts.h"
#include "diff/match/row_series.h"
#include "diff/read/stack_store.h"

/* Adds sums of several processes, which together may be more than a signed number holds: that stands for
 * it then. */
static void totals_add(struct block_totals *to, const struct block_totals *more)
{
	block_totals_add(to, more);
	to->block_count = to->block_count > INT64_MAX ? INT64_MAX : to->block_count;
	to->requested_bytes = to->requested_bytes > INT64_MAX ? INT64_MAX : to->requested_bytes;
	to->overhead_bytes = to->overhead_bytes > INT64_MAX ? INT64_MAX : to->overhead_bytes;
}

/* What the dumps add up to that count as old, or as new: of all, and of address space alone. */
static void count_ends(
	const struct comparison *comparison, struct change *total, struct change *reserved)
{
	const struct trend_axis *axis = comparison->axis;

	for (size_t i = 0; i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (axis ? axis_begins(axis, i) : !i && comparison_columns(comparison) > 1) {
			totals_add(&total->old, &dump->total);
			totals_add(&reserved->old, &dump->reserved);
		}
		if (axis ? axis_ends(axis, i) :
			   comparison->is_sum || i + 1 == comparison->dump_count) {
			totals_add(&total->new, &dump->total);
			totals_add(&reserved->new, &dump->reserved);
		}
	}
}

/* Of a trend, what any snapshot has. */
static void find_reserved(struct comparison *comparison)
{
	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct block_totals *reserved = &comparison->dumps[i].reserved;

		comparison->hides_reserved |= reserved->block_count != 0;
		if (reserved->requested_bytes > comparison->reserved_most)
			comparison->reserved_most = reserved->requested_bytes;
	}
}

/* Fills in a comparison's totals, of dumps and axis that it has. Address space is counted when it was asked
 * for, and else told apart. */
static void totals_count(struct comparison *comparison, const struct match_request *request)
{
	struct change total = {0}, reserved = {0};
	bool is_asked = false;

	count_ends(comparison, &total, &reserved);
	for (size_t i = 0; i < request->heap_count; i++)
		is_asked |= request->heaps[i] == HEAP_RESERVED;
	if (is_asked) {
		totals_add(&total.old, &reserved.old);
		totals_add(&total.new, &reserved.new);
	} else {
		comparison->reserved = reserved;
		comparison->hides_reserved = reserved.new.block_count || reserved.old.block_count;
		find_reserved(comparison);
	}
	comparison->old_total = total.old;
	comparison->new_total = total.new;
}

/* What is one row when heaps are kept apart. */
struct heap_row_key {
	uint64_t heap;
	uint32_t content;
};

/* Rows are numbered as they come up: like their contents, or, by heap, like tallies. */
struct matcher {
	struct comparison *to;
	const struct match_request *request;
	struct stack_classes contents;
	struct hash_index tally_index;
	struct heap_row_key *tallies;
	size_t tally_count, tally_cap;
	struct block_totals *sums; /* by row and dump */
	size_t row_count, row_cap;
	uint32_t **rows; /* by dump and cell */
};

static struct delta subtract(struct block_totals new, struct block_totals old)
{
	/* Each is at most INT64_MAX, see read_dump.c. */
	return (struct delta){(int64_t) new.block_count - (int64_t)old.block_count,
		(int64_t) new.requested_bytes - (int64_t)old.requested_bytes,
		(int64_t) new.overhead_bytes - (int64_t)old.overhead_bytes};
}

struct block_totals row_new(const struct comparison *comparison, const struct row *row)
{
	return comparison->axis ? series_last(comparison->axis, row->of) :
				  row->of[comparison_columns(comparison) - 1];
}

struct block_totals row_old(const struct comparison *comparison, const struct row *row)
{
	if (comparison->axis)
		return series_first(comparison->axis, row->of);
	return comparison_columns(comparison) > 1 ? row->of[0] : (struct block_totals){0};
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

/* The number of the row of a content in a heap. */
static int tally_of(struct matcher *matcher, uint32_t content, uint64_t heap, uint32_t *number)
{
	struct hasher hasher = hasher_begin(&matcher->tally_index.key);
	struct hash_probe probe;
	uint32_t hash, known;

	hasher_add(&hasher, content);
	hasher_add(&hasher, heap);
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&matcher->tally_index, hash);
	while ((known = hash_index_next(&matcher->tally_index, &probe)) != INDEX_NONE) {
		if (matcher->tallies[known].content == content &&
			matcher->tallies[known].heap == heap) {
			*number = known;
			return 0;
		}
	}
	if (matcher->tally_count >= ROW_NONE - 1 ||
		array_grow((void **)&matcher->tallies, &matcher->tally_cap, matcher->tally_count,
			sizeof(*matcher->tallies)) ||
		hash_index_add(&matcher->tally_index, hash, (uint32_t)matcher->tally_count))
		return -ERR_NOMEM;
	*number = (uint32_t)matcher->tally_count;
	matcher->tallies[matcher->tally_count++] = (struct heap_row_key){heap, content};
	return 0;
}

static uint32_t content_of_row(const struct matcher *matcher, uint32_t row)
{
	return matcher->request->by_heap ? matcher->tallies[row].content : row;
}

static uint64_t heap_of_row(const struct matcher *matcher, uint32_t row)
{
	return matcher->request->by_heap ? matcher->tallies[row].heap : 0;
}

/* Counts a cell of the dump to its row. */
static int count(struct matcher *matcher, size_t dump, const struct stack_total *cell, uint32_t row)
{
	size_t columns = comparison_columns(matcher->to);
	struct block_totals *to;

	for (; matcher->row_count <= row; matcher->row_count++) {
		if (array_grow((void **)&matcher->sums, &matcher->row_cap, matcher->row_count,
			    columns * sizeof(*to)))
			return -ERR_NOMEM;
		memset(&matcher->sums[matcher->row_count * columns], 0, columns * sizeof(*to));
	}
	to = &matcher->sums[row * columns + (matcher->to->is_sum ? 0 : dump)];
	totals_add(to, &cell->sums);
	return 0;
}

/* The stacks of one dump while it is matched. */
struct dump_stacks {
	size_t dump;
	uint32_t *contents; /* of each stack */
	/* Of entries that name but an id which has several stacks, by the first of these; INDEX_NONE:
	 * not known yet. NULL until there are such entries. */
	uint32_t *bare;
};

static int bare_make(struct dump_stacks *of, size_t stack_count)
{
	size_t bytes = (stack_count + 1) * sizeof(*of->bare);

	of->bare = malloc(bytes);
	if (!of->bare)
		return -ERR_NOMEM;
	memset(of->bare, 0xff, bytes); /* INDEX_NONE */
	return 0;
}

/* Their content: one of the stacks under the id of stack number first. */
static int bare_content(
	struct matcher *matcher, struct dump_stacks *of, uint32_t first, uint32_t *content)
{
	const struct dump_sums *sums = &matcher->to->dumps[of->dump];
	uint32_t *all = NULL;
	size_t count = 0, cap = 0;
	int rc = 0;

	if (!of->bare && bare_make(of, sums->stacks.count))
		return -ERR_NOMEM;
	*content = of->bare[first];
	if (*content != INDEX_NONE)
		return 0;
	for (uint32_t at = first; !rc && at != STACK_NONE; at = sums_same_id(sums, at)) {
		rc = array_grow((void **)&all, &cap, count, sizeof(*all));
		if (!rc)
			all[count++] = of->contents[at];
	}
	if (!rc)
		rc = content_one_of(&matcher->contents, all, count, content);
	of->bare[first] = *content;
	free(all);
	return rc;
}

static int cell_content(struct matcher *matcher, struct dump_stacks *of,
	const struct stack_total *cell, uint32_t *content)
{
	if (cell->stack == STACK_NONE)
		return content_of(&matcher->contents, of->dump, STACK_NONE, content);
	if (cell->is_bare)
		return bare_content(matcher, of, cell->stack, content);
	*content = of->contents[cell->stack];
	return 0;
}

static bool is_wanted(const struct match_request *request, uint64_t heap)
{
	for (size_t i = 0; i < request->heap_count; i++) {
		if (request->heaps[i] == heap)
			return true;
	}
	return !request->heap_count && heap != HEAP_RESERVED;
}

/* The row of each cell, and its sums. */
static int cells_match(struct matcher *matcher, struct dump_stacks *of)
{
	const struct dump_sums *sums = &matcher->to->dumps[of->dump];
	struct cell_walk walk = stack_totals_walk(sums);
	const struct stack_total *cell;
	int rc = 0;

	for (size_t i = 0; !rc && (cell = stack_totals_next(&walk)); i++) {
		uint64_t heap = sums->heaps[cell->heap];
		uint32_t content = ROW_NONE, row = ROW_NONE;

		if (is_wanted(matcher->request, heap)) {
			rc = cell_content(matcher, of, cell, &content);
			row = content;
			if (!rc && matcher->request->by_heap)
				rc = tally_of(matcher, content, heap, &row);
			if (!rc)
				rc = count(matcher, of->dump, cell, row);
		}
		matcher->rows[of->dump][i] = row;
	}
	return rc;
}

static int dump_match(struct matcher *matcher, size_t dump)
{
	const struct dump_sums *sums = &matcher->to->dumps[dump];
	struct dump_stacks of = {
		.dump = dump, .contents = malloc((sums->stacks.count + 1) * sizeof(uint32_t))};
	int rc = of.contents ? 0 : -ERR_NOMEM;

	matcher->rows[dump] = malloc((sums->cell_count + 1) * sizeof(uint32_t));
	if (!matcher->rows[dump])
		rc = -ERR_NOMEM;
	for (uint32_t i = 0; !rc && i < sums->stacks.count; i++)
		rc = content_of(&matcher->contents, dump, i, &of.contents[i]);
	if (!rc)
		rc = cells_match(matcher, &of);
	free(of.contents);
	free(of.bare);
	return rc;
}

/* ---------------------------------------------------------------- rows */

/* A row that changed, as it is sorted. */
struct changed {
	const struct matcher *matcher;
	int64_t requested_bytes, block_count;
	uint32_t row;
};

static int by_growth(const void *a, const void *b)
{
	const struct changed *x = a, *y = b;
	uint64_t left, right;
	int order;

	if (x->requested_bytes != y->requested_bytes)
		return x->requested_bytes > y->requested_bytes ? -1 : 1;
	if (x->block_count != y->block_count)
		return x->block_count > y->block_count ? -1 : 1;
	order = content_order(&x->matcher->contents, content_of_row(x->matcher, x->row),
		content_of_row(x->matcher, y->row));
	if (order)
		return order;
	left = heap_of_row(x->matcher, x->row);
	right = heap_of_row(x->matcher, y->row);
	return left < right ? -1 : left > right;
}

static struct delta delta_of(const struct matcher *matcher, size_t row)
{
	size_t columns = comparison_columns(matcher->to);
	const struct trend_axis *axis = matcher->to->axis;
	const struct block_totals *of = &matcher->sums[row * columns];

	if (axis)
		return subtract(series_last(axis, of), series_first(axis, of));
	return subtract(of[columns - 1], columns > 1 ? of[0] : (struct block_totals){0});
}

/* Whether a row is to be shown: in a trend, what differs between any two snapshots of a process is. */
static bool is_changed(const struct matcher *matcher, size_t row)
{
	const struct trend_axis *axis = matcher->to->axis;
	struct block_totals swing;
	struct delta delta;

	if (axis) {
		swing = series_swing(axis, &matcher->sums[row * axis->count]);
		return swing.requested_bytes || swing.block_count;
	}
	delta = delta_of(matcher, row);
	return delta.requested_bytes || delta.block_count;
}

/* The rows that do not cancel, sorted. NULL: out of memory. */
static struct changed *find_changed(const struct matcher *matcher, size_t *count)
{
	struct changed *changed;
	size_t kept = 0;

	*count = 0;
	for (size_t i = 0; i < matcher->row_count; i++)
		*count += is_changed(matcher, i);
	changed = malloc((*count + 1) * sizeof(*changed));
	for (size_t i = 0; changed && i < matcher->row_count; i++) {
		struct delta delta = delta_of(matcher, i);

		if (is_changed(matcher, i))
			changed[kept++] = (struct changed){
				matcher, delta.requested_bytes, delta.block_count, (uint32_t)i};
	}
	if (changed)
		qsort(changed, kept, sizeof(*changed), by_growth);
	return changed;
}

static void row_fill(const struct matcher *matcher, struct row *row, uint32_t number)
{
	const struct stack_classes *contents = &matcher->contents;
	const struct content *content = &contents->list[content_of_row(matcher, number)];

	*row = (struct row){.kind = content->kind, .heap = heap_of_row(matcher, number)};
	if (row->kind == ROW_ONE_OF)
		row->candidate_count = contents->lists[content->stack].count;
}

/* Moves the sums of rows that are left to the front, and gives the others' memory back. */
static void sums_keep(struct matcher *matcher, const uint32_t *final)
{
	struct comparison *to = matcher->to;
	size_t columns = comparison_columns(to), bytes = columns * sizeof(*matcher->sums);
	size_t kept = 0;
	struct block_totals *less;

	for (size_t i = 0; i < matcher->row_count; i++) {
		if (final[i] != ROW_NONE)
			memmove(&matcher->sums[columns * kept++], &matcher->sums[columns * i],
				bytes);
	}
	less = realloc(matcher->sums, (kept + 1) * bytes);
	to->sums = less ? less : matcher->sums;
	matcher->sums = NULL;
	kept = 0;
	for (size_t i = 0; i < matcher->row_count; i++) {
		if (final[i] != ROW_NONE)
			to->rows[final[i]].of = &to->sums[columns * kept++];
	}
}

static void cells_renumber(struct matcher *matcher, const uint32_t *final)
{
	for (size_t dump = 0; dump < matcher->to->dump_count; dump++) {
		for (size_t i = 0; i < matcher->to->dumps[dump].cell_count; i++) {
			uint32_t *row = &matcher->rows[dump][i];

			if (*row != ROW_NONE)
				*row = final[*row];
		}
	}
}

/* Makes the rows of those that changed, in order. */
static int rows_make(struct matcher *matcher)
{
	struct comparison *to = matcher->to;
	uint32_t *final = malloc((matcher->row_count + 1) * sizeof(*final));
	size_t count = 0;
	struct changed *changed = find_changed(matcher, &count);
	int rc = 0;

	to->rows = malloc((count + 1) * sizeof(*to->rows));
	if (!final || !changed || !to->rows) {
		rc = -ERR_NOMEM;
		goto out;
	}
	to->row_count = count;
	memset(final, 0xff, (matcher->row_count + 1) * sizeof(*final)); /* ROW_NONE */
	for (size_t i = 0; i < count; i++) {
		row_fill(matcher, &to->rows[i], changed[i].row);
		final[changed[i].row] = (uint32_t)i;
	}
	sums_keep(matcher, final);
	cells_renumber(matcher, final);
out:
	free(changed);
	free(final);
	return rc;
}

/* ---------------------------------------------------------------- start and end */

static int begin(struct matcher *matcher)
{
	struct comparison *to = matcher->to;

	hash_index_init(&matcher->tally_index);
	to->places = calloc(1, sizeof(*to->places));
	to->names = calloc(1, sizeof(*to->names));
	matcher->rows = calloc(to->dump_count, sizeof(*matcher->rows));
	if (!to->places || !to->names || !matcher->rows ||
		locations_make(to->places, to->dumps, to->dump_count))
		return -ERR_NOMEM;
	names_init(to->names, to->places, matcher->request->symbols);
	return stack_classes_make(&matcher->contents, to->dumps, to->dump_count, to->places,
		to->names, matcher->request);
}

static void end(struct matcher *matcher)
{
	for (size_t i = 0; matcher->rows && i < matcher->to->dump_count; i++)
		free(matcher->rows[i]);
	free(matcher->rows);
	free(matcher->sums);
	free(matcher->tallies);
	hash_index_release(&matcher->tally_index);
	stack_classes_release(&matcher->contents);
}

int comparison_make(struct comparison *comparison, const struct dump_sums *dumps, size_t dump_count,
	const struct match_request *request)
{
	struct matcher matcher = {.to = comparison, .request = request};
	int rc;

	*comparison = (struct comparison){.dumps = dumps,
		.dump_count = dump_count,
		.is_sum = request->is_sum,
		.axis = request->axis,
		.has_overhead = true};
	totals_count(comparison, request);
	arena_init(&comparison->arena);
	rc = begin(&matcher);
	for (size_t i = 0; !rc && i < dump_count; i++)
		rc = dump_match(&matcher, i);
	if (!rc)
		rc = rows_make(&matcher);
	if (!rc)
		rc = rows_label(comparison, &matcher.contents, matcher.rows);
	if (!rc && comparison->axis)
		rc = series_judge_rows(comparison);
	end(&matcher);
	return rc;
}

void comparison_release(struct comparison *comparison)
{
	if (comparison->names)
		names_release(comparison->names);
	if (comparison->places)
		locations_release(comparison->places);
	free(comparison->names);
	free(comparison->places);
	free(comparison->sums);
	free(comparison->rows);
	arena_release(&comparison->arena);
	*comparison = (struct comparison){0};
}
