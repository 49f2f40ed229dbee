#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/printed/printed_parts.h"
#include "diff/read/frame.h"

void whole_note(struct whole_text *whole, struct words comment)
{
	struct rest_text rest;
	struct all_text all;

	if (note_rest(comment, &rest)) {
		whole->has_rest = true;
		whole->rest = rest;
	} else if (note_all(comment, &all)) {
		whole->has_all = true;
		whole->all = all;
	}
}

/* What the whole grew by. */
struct whole {
	int64_t bytes, blocks, overhead;
	bool has_overhead;
};

/* *to = a + b, or a - b, where that fits. Neither is -2^63. */
static bool plus(int64_t a, int64_t b, int64_t *to)
{
	if (b > 0 ? a > INT64_MAX - b : a < -INT64_MAX - b)
		return false;
	*to = a + b;
	return true;
}

static bool minus(int64_t a, int64_t b, int64_t *to)
{
	return plus(a, -b, to);
}

/* Growth without a row counts to the side that has more. False: no sum of ours can hold it. */
static bool grow(uint64_t *old, uint64_t *new, int64_t growth, uint64_t old_more, uint64_t new_more)
{
	uint64_t *side = growth < 0 ? old : new;
	uint64_t more = growth < 0 ? (uint64_t)-growth : (uint64_t)growth;
	uint64_t beside = growth < 0 ? old_more : new_more;

	if (*side > INT64_MAX - beside || more > INT64_MAX - beside - *side)
		return false;
	*side += more;
	return true;
}

static bool all_holds(const struct all_text *all, int reading)
{
	return signed_holds(&all->requested, reading) && signed_holds(&all->blocks, reading) &&
	       (!all->has_overhead || signed_holds(&all->overhead, reading));
}

/* What the total line is of: the rows and those that are not shown. False: it does not fit. */
static bool add_rest(const struct whole_text *text, int reading, struct whole *whole)
{
	const struct rest_text *rest = &text->rest;

	return !text->has_rest ||
	       (signed_holds(&rest->bytes, reading) && signed_holds(&rest->blocks, reading) &&
		       plus(whole->bytes, signed_value(&rest->bytes, reading), &whole->bytes) &&
		       plus(whole->blocks, signed_value(&rest->blocks, reading), &whole->blocks));
}

/* Takes the growth of the whole from the words that tell most of it. */
static void take_whole(const struct whole_text *text, int reading, struct whole *whole)
{
	const struct total_text *total = &text->total;
	const struct all_text *all = &text->all;

	if (text->has_all && all_holds(all, reading)) {
		*whole = (struct whole){.bytes = signed_value(&all->requested, reading),
			.blocks = signed_value(&all->blocks, reading),
			.overhead = all->has_overhead ? signed_value(&all->overhead, reading) : 0,
			.has_overhead = all->has_overhead};
		return;
	}
	whole->bytes = total_part(total, 0, reading);
	whole->has_overhead = total->has_overhead;
	if (total->has_overhead)
		whole->overhead = total_part(total, 1, reading);
}

/* False: it is nonsense, and nothing was changed. */
static bool complete(struct comparison *to, const struct whole *whole)
{
	struct delta rows = comparison_delta(to);
	struct census old = to->old_total, new = to->new_total;
	int64_t bytes, blocks;

	if (!minus(whole->bytes, rows.requested_bytes, &bytes) ||
		!minus(whole->blocks, rows.block_count, &blocks) ||
		!grow(&old.requested_bytes, &new.requested_bytes, bytes, 0, 0) ||
		!grow(&old.block_count, &new.block_count, blocks, 0, 0) ||
		!grow(&old.overhead_bytes, &new.overhead_bytes, whole->overhead,
			old.requested_bytes, new.requested_bytes))
		return false;
	to->old_total = old;
	to->new_total = new;
	to->has_overhead = whole->has_overhead;
	to->lacks_rows |= bytes || blocks;
	return true;
}

bool whole_settle(const struct whole_text *text, int reading, struct comparison *to)
{
	struct delta rows = comparison_delta(to);
	struct whole whole = {.bytes = rows.requested_bytes, .blocks = rows.block_count};
	bool adds_up;

	to->lacks_rows = text->has_rest || text->has_all; /* also when these cancel */
	if (!text->has_total)
		return true;
	if (!total_holds(&text->total, reading))
		return false;
	adds_up = add_rest(text, reading, &whole) &&
		  whole.bytes == total_part(&text->total, 0, reading);
	take_whole(text, reading, &whole);
	return complete(to, &whole) && adds_up;
}

#define NO_ROW UINT32_MAX

void read_rows_init(struct read_rows *rows, struct arena *arena)
{
	*rows = (struct read_rows){.arena = arena};
	table_init(&rows->numbers);
}

void read_rows_release(struct read_rows *rows)
{
	free(rows->items);
	free(rows->frames);
	free(rows->ids);
	free(rows->known);
	table_release(&rows->numbers);
}

/* UMDH's id of blocks that it has no stack for is 0. */
static enum row_kind kind_without_stack(const char *id)
{
	return id[strspn(id, "0")] ? ROW_UNKNOWN : ROW_STACKLESS;
}

int read_rows_add(struct read_rows *rows, const struct read_row *row)
{
	struct read_row *own;

	if (rows->count >= NO_ROW ||
		array_grow((void **)&rows->items, &rows->cap, rows->count, sizeof(*row)))
		return -ERR_NOMEM;
	own = &rows->items[rows->count++];
	*own = *row;
	if (!own->frame_count && own->kind <= ROW_AMBIGUOUS)
		own->kind = kind_without_stack(rows->ids[own->id_at]);
	return 0;
}

static int add_number(struct read_rows *rows, uint32_t number)
{
	if (array_grow((void **)&rows->frames, &rows->frame_cap, rows->frame_count, sizeof(number)))
		return -ERR_NOMEM;
	rows->frames[rows->frame_count++] = number;
	return 0;
}

/* Takes a frame apart that was not seen before. */
static int learn(struct read_rows *rows, struct words text)
{
	if (rows->known_count >= READ_PART ||
		array_grow((void **)&rows->known, &rows->known_cap, rows->known_count,
			sizeof(*rows->known)) ||
		frame_parse(&rows->known[rows->known_count], rows->arena, text.text, text.len) ||
		table_add(&rows->numbers, text.text, text.len, rows->known_count))
		return -ERR_NOMEM;
	rows->known_count++;
	return 0;
}

int read_rows_frame(struct read_rows *rows, struct words text)
{
	const uint64_t *known = table_find(&rows->numbers, text.text, text.len);
	uint64_t number = known ? *known : rows->known_count;

	if (!known && learn(rows, text))
		return -ERR_NOMEM;
	return add_number(rows, (uint32_t)number);
}

int read_rows_part(struct read_rows *rows)
{
	return add_number(rows, READ_PART);
}

static void turn(uint32_t *items, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint32_t other = items[i];

		items[i] = items[count - 1 - i];
		items[count - 1 - i] = other;
	}
}

void read_rows_turn(struct read_rows *rows, size_t frame_at)
{
	size_t from = frame_at;

	for (size_t i = frame_at; i <= rows->frame_count; i++) {
		if (i < rows->frame_count && rows->frames[i] != READ_PART)
			continue;
		if (i > from)
			turn(rows->frames + from, i - from);
		from = i + 1;
	}
}

int read_rows_id(struct read_rows *rows, struct words id)
{
	const char *own = arena_text(rows->arena, id.text, id.len);

	if (!own ||
		array_grow((void **)&rows->ids, &rows->id_cap, rows->id_count, sizeof(*rows->ids)))
		return -ERR_NOMEM;
	rows->ids[rows->id_count++] = own;
	return 0;
}

bool read_row_holds(const struct read_row *row, int reading)
{
	if (!row->count.fits[reading] || row->count.value[reading] > INT64_MAX ||
		!growth_holds(&row->bytes, reading))
		return false;
	return !row->has_counts ||
	       (growth_holds(&row->counts, reading) &&
		       row->counts.new.value[reading] == row->count.value[reading]);
}

size_t read_rows_uncounted(const struct read_rows *rows, int reading)
{
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++)
		count += !rows->items[i].has_counts && rows->items[i].bytes.old.value[reading];
	return count;
}

uint64_t read_rows_growth(const struct read_rows *rows, int reading)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rows->count; i++) {
		const struct growth_text *bytes = &rows->items[i].bytes;

		if (read_row_holds(&rows->items[i], reading))
			sum += bytes->new.value[reading] - bytes->old.value[reading];
	}
	return sum;
}

/* ---------------------------------------------------------------- merging */

struct merger {
	const struct read_rows *from;
	struct comparison *to;
	int reading;
	size_t cap;
	struct table rows; /* of the comparison, by content */
	struct buf key;
	uint32_t *row_of; /* each of from's; NO_ROW: none */
	const struct read_row **first; /* of each row of the comparison */
	size_t first_cap;
};

static int key_add(struct buf *key, uint64_t number)
{
	return buf_add(key, &number, sizeof(number));
}

/* What makes rows equal. */
static int key_make(struct merger *merger, const struct read_row *row)
{
	const char *label = merger->from->ids[row->id_at];
	bool is_own = row->is_own || row->kind == ROW_ONE_OF; /* of which stacks is not said */
	int rc;

	buf_clear(&merger->key);
	rc = key_add(&merger->key, (uint64_t)row->kind << 1 | is_own);
	if (!rc && is_own)
		rc = key_add(&merger->key, row->line);
	else if (!rc && row->kind == ROW_UNKNOWN)
		rc = buf_add_text(&merger->key, label);
	if (!rc && row->frame_count)
		rc = buf_add(&merger->key, merger->from->frames + row->frame_at,
			row->frame_count * sizeof(*merger->from->frames));
	return rc;
}

static int row_add(struct merger *merger, const struct read_row *from)
{
	struct comparison *to = merger->to;
	struct row row = {.kind = from->kind, .candidate_count = from->candidate_count};

	row.of = arena_alloc(&to->arena, to->dump_count * sizeof(*row.of));
	if (!row.of || array_grow((void **)&to->rows, &merger->cap, to->row_count, sizeof(row)) ||
		array_grow((void **)&merger->first, &merger->first_cap, to->row_count,
			sizeof(*merger->first)) ||
		table_add(&merger->rows, merger->key.data, merger->key.len, to->row_count))
		return -ERR_NOMEM;
	merger->first[to->row_count] = from;
	to->rows[to->row_count++] = row;
	return 0;
}

static struct census census_new(const struct read_row *row, int reading)
{
	return (struct census){.block_count = row->count.value[reading],
		.requested_bytes = row->bytes.new.value[reading]};
}

static struct census census_old(const struct read_row *row, int reading)
{
	struct census old = {.requested_bytes = row->bytes.old.value[reading]};

	if (row->has_counts)
		old.block_count = row->counts.old.value[reading];
	else if (old.requested_bytes)
		old.block_count = row->count.value[reading];
	return old;
}

static bool fits(const struct census *sum, const struct census *more)
{
	return more->block_count <= INT64_MAX - sum->block_count &&
	       more->requested_bytes <= INT64_MAX - sum->requested_bytes;
}

static int row_merge(struct merger *merger, size_t index)
{
	const struct read_row *row = &merger->from->items[index];
	struct census new = census_new(row, merger->reading);
	struct census old = census_old(row, merger->reading);
	uint64_t *known;
	size_t at = merger->to->row_count;

	if (key_make(merger, row))
		return -ERR_NOMEM;
	known = table_find(&merger->rows, merger->key.data, merger->key.len);
	if (known)
		at = *known;
	else if (row_add(merger, row))
		return -ERR_NOMEM;
	merger->row_of[index] = (uint32_t)at;
	census_add(&merger->to->rows[at].of[0], &old);
	census_add(&merger->to->rows[at].of[1], &new);
	census_add(&merger->to->old_total, &old);
	census_add(&merger->to->new_total, &new);
	return 0;
}

static int merge(struct merger *merger, const struct read_refusal *refusal)
{
	struct comparison *to = merger->to;
	int rc = 0;

	for (size_t i = 0; !rc && i < merger->from->count; i++) {
		const struct read_row *row = &merger->from->items[i];
		struct census new = census_new(row, merger->reading);
		struct census old = census_old(row, merger->reading);

		merger->row_of[i] = NO_ROW;
		if (!read_row_holds(row, merger->reading))
			rc = refusal->refuse(
				refusal->ctx, row->line, "its numbers contradict each other");
		else if (!fits(&to->new_total, &new) || !fits(&to->old_total, &old))
			rc = refusal->refuse(refusal->ctx, row->line,
				"the rows add up to more than any address space holds");
		else
			rc = row_merge(merger, i);
	}
	return rc;
}

/* Adds an id to a row unless it is there. */
static int label_one(
	struct table *seen, struct buf *key, struct row *row, uint32_t index, const char *id)
{
	buf_clear(key);
	if (buf_add(key, &index, sizeof(index)) || buf_add_text(key, id))
		return -ERR_NOMEM;
	if (table_find(seen, key->data, key->len))
		return 0;
	row->ids[row->id_count++] = id;
	return table_add(seen, key->data, key->len, 0);
}

/* Gives the rows their ids, in the order of the file. */
static int label(struct merger *merger)
{
	const struct read_rows *from = merger->from;
	struct row *rows = merger->to->rows;
	struct table seen;
	int rc = 0;

	for (size_t i = 0; i < from->count; i++) {
		if (merger->row_of[i] != NO_ROW)
			rows[merger->row_of[i]].id_count += from->items[i].id_count;
	}
	for (size_t i = 0; i < merger->to->row_count; i++) {
		rows[i].ids =
			arena_alloc(&merger->to->arena, rows[i].id_count * sizeof(*rows[i].ids));
		if (!rows[i].ids)
			return -ERR_NOMEM;
		rows[i].id_count = 0;
	}
	table_init(&seen);
	for (size_t i = 0; !rc && i < from->count; i++) {
		const struct read_row *row = &from->items[i];
		uint32_t to = merger->row_of[i];

		for (size_t k = 0; !rc && to != NO_ROW && k < row->id_count; k++)
			rc = label_one(
				&seen, &merger->key, &rows[to], to, from->ids[row->id_at + k]);
	}
	table_release(&seen);
	return rc;
}

/* ---------------------------------------------------------------- rows to be shown */

struct sorted {
	struct row row;
	struct delta delta;
	const struct read_row *first;
};

static int by_growth(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->delta.requested_bytes != y->delta.requested_bytes)
		return x->delta.requested_bytes > y->delta.requested_bytes ? -1 : 1;
	if (x->delta.block_count != y->delta.block_count)
		return x->delta.block_count > y->delta.block_count ? -1 : 1;
	return x->first->line < y->first->line ? -1 : x->first->line > y->first->line;
}

/* The frames of a row as a report wants them. */
static int give_frames(struct merger *merger, struct row *row, const struct read_row *first)
{
	const struct read_rows *from = merger->from;
	struct arena *arena = &merger->to->arena;
	struct frames *frames = arena_alloc(arena, sizeof(*frames));
	size_t parts = 0;

	for (size_t i = 0; i < first->frame_count; i++)
		parts += from->frames[first->frame_at + i] == READ_PART;
	if (!frames)
		return -ERR_NOMEM;
	frames->items =
		arena_alloc(arena, (first->frame_count - parts) * sizeof(*frames->items) + 1);
	frames->part_at = arena_alloc(arena, parts * sizeof(*frames->part_at) + 1);
	if (!frames->items || !frames->part_at)
		return -ERR_NOMEM;
	for (size_t i = 0; i < first->frame_count; i++) {
		uint32_t number = from->frames[first->frame_at + i];

		if (number == READ_PART)
			frames->part_at[frames->part_count++] = frames->count;
		else
			frames->items[frames->count++] = from->known[number];
	}
	row->frames = frames;
	return 0;
}

/* Drops the rows that cancel, sorts the others and completes them. */
static int finish(struct merger *merger)
{
	struct comparison *to = merger->to;
	struct sorted *sorted = calloc(to->row_count + 1, sizeof(*sorted));
	size_t count = 0;
	int rc = sorted ? 0 : -ERR_NOMEM;

	for (size_t i = 0; !rc && i < to->row_count; i++) {
		struct delta delta = row_delta(to, &to->rows[i]);

		if (delta.requested_bytes || delta.block_count)
			sorted[count++] = (struct sorted){to->rows[i], delta, merger->first[i]};
	}
	if (count)
		qsort(sorted, count, sizeof(*sorted), by_growth);
	for (size_t i = 0; !rc && i < count; i++) {
		to->rows[i] = sorted[i].row;
		rc = give_frames(merger, &to->rows[i], sorted[i].first);
	}
	if (!rc)
		to->row_count = count;
	free(sorted);
	return rc;
}

int read_rows_settle(const struct read_rows *rows, int reading, struct comparison *comparison,
	const struct read_refusal *refusal)
{
	struct merger merger = {.from = rows, .to = comparison, .reading = reading};
	int rc;

	table_init(&merger.rows);
	buf_init(&merger.key);
	merger.row_of = calloc(rows->count + 1, sizeof(*merger.row_of));
	rc = merger.row_of ? merge(&merger, refusal) : -ERR_NOMEM;
	if (!rc)
		rc = label(&merger);
	if (!rc)
		rc = finish(&merger);
	free(merger.first);
	free(merger.row_of);
	buf_release(&merger.key);
	table_release(&merger.rows);
	return rc;
}
