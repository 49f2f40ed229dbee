#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/printed/printed_parts.h"
#include "diff/read/frame.h"

#define NO_ROW SIZE_MAX

void read_rows_init(struct read_rows *rows, struct arena *arena)
{
	*rows = (struct read_rows){.arena = arena};
	table_init(&rows->numbers);
}

void read_rows_release(struct read_rows *rows)
{
	free(rows->items);
	free(rows->frames);
	free(rows->known);
	table_release(&rows->numbers);
}

int read_rows_add(struct read_rows *rows, const struct read_row *row)
{
	if (rows->count >= UINT32_MAX ||
		array_grow((void **)&rows->items, &rows->cap, rows->count, sizeof(*row)))
		return -ERR_NOMEM;
	rows->items[rows->count++] = *row;
	return 0;
}

/* Takes a frame apart that was not seen before. */
static int learn(struct read_rows *rows, struct words text)
{
	if (rows->known_count >= UINT32_MAX ||
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

	if ((!known && learn(rows, text)) || array_grow((void **)&rows->frames, &rows->frame_cap,
						     rows->frame_count, sizeof(*rows->frames)))
		return -ERR_NOMEM;
	rows->frames[rows->frame_count++] = (uint32_t)number;
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
	struct read_rows *from;
	struct comparison *to;
	int reading;
	size_t cap;
	struct table rows; /* of the comparison, by content */
	struct buf key;
};

/* UMDH's id of blocks that it has no stack for is 0. */
static enum row_kind kind_of(const struct read_row *row)
{
	if (row->frame_count)
		return ROW_STACK;
	return row->id[strspn(row->id, "0")] ? ROW_UNKNOWN : ROW_STACKLESS;
}

static int key_add(struct buf *key, uint64_t number)
{
	return buf_add(key, &number, sizeof(number));
}

/* What makes rows equal. */
static int key_make(struct merger *merger, const struct read_row *row)
{
	enum row_kind kind = kind_of(row);
	int rc;

	buf_clear(&merger->key);
	rc = key_add(&merger->key, (uint64_t)kind << 1 | row->is_own);
	if (!rc && row->is_own)
		rc = key_add(&merger->key, row->line);
	else if (!rc && kind == ROW_UNKNOWN)
		rc = buf_add_text(&merger->key, row->id);
	if (!rc && row->frame_count)
		rc = buf_add(&merger->key, merger->from->frames + row->frame_at,
			row->frame_count * sizeof(*merger->from->frames));
	return rc;
}

/* The frames of a row as a report wants them, or NULL. */
static struct frames *make_frames(struct merger *merger, const struct read_row *row)
{
	const struct read_rows *from = merger->from;
	struct arena *arena = &merger->to->arena;
	struct frames *frames = arena_alloc(arena, sizeof(*frames));

	if (!frames)
		return NULL;
	frames->items = arena_alloc(arena, row->frame_count * sizeof(*frames->items) + 1);
	if (!frames->items)
		return NULL;
	for (; frames->count < row->frame_count; frames->count++)
		frames->items[frames->count] =
			from->known[from->frames[row->frame_at + frames->count]];
	return frames;
}

static int row_add(struct merger *merger, const struct read_row *from)
{
	struct comparison *to = merger->to;
	struct row row = {.kind = kind_of(from), .frames = make_frames(merger, from)};

	row.of = arena_alloc(&to->arena, to->dump_count * sizeof(*row.of));
	if (!row.of || !row.frames ||
		array_grow((void **)&to->rows, &merger->cap, to->row_count, sizeof(row)) ||
		table_add(&merger->rows, merger->key.data, merger->key.len, to->row_count))
		return -ERR_NOMEM;
	to->rows[to->row_count++] = row;
	return 0;
}

static struct block_totals census_new(const struct read_row *row, int reading)
{
	return (struct block_totals){.block_count = row->count.value[reading],
		.requested_bytes = row->bytes.new.value[reading]};
}

static struct block_totals census_old(const struct read_row *row, int reading)
{
	struct block_totals old = {.requested_bytes = row->bytes.old.value[reading]};

	if (row->has_counts)
		old.block_count = row->counts.old.value[reading];
	else if (old.requested_bytes)
		old.block_count = row->count.value[reading];
	return old;
}

static bool fits(const struct block_totals *sum, const struct block_totals *more)
{
	return more->block_count <= INT64_MAX - sum->block_count &&
	       more->requested_bytes <= INT64_MAX - sum->requested_bytes;
}

static int row_merge(struct merger *merger, struct read_row *row, const struct block_totals *old,
	const struct block_totals *new)
{
	struct comparison *to = merger->to;
	uint64_t *known;

	if (key_make(merger, row))
		return -ERR_NOMEM;
	known = table_find(&merger->rows, merger->key.data, merger->key.len);
	row->to = known ? *known : to->row_count;
	if (!known && row_add(merger, row))
		return -ERR_NOMEM;
	block_totals_add(&to->rows[row->to].of[0], old);
	block_totals_add(&to->rows[row->to].of[1], new);
	block_totals_add(&to->old_total, old);
	block_totals_add(&to->new_total, new);
	to->rows[row->to].id_count++;
	to->lacks_counts |= !row->has_counts && old->requested_bytes;
	return 0;
}

static int merge(struct merger *merger, const struct read_refusal *refusal)
{
	struct comparison *to = merger->to;
	int rc = 0;

	for (size_t i = 0; !rc && i < merger->from->count; i++) {
		struct read_row *row = &merger->from->items[i];
		struct block_totals new = census_new(row, merger->reading);
		struct block_totals old = census_old(row, merger->reading);

		row->to = NO_ROW;
		if (!read_row_holds(row, merger->reading))
			rc = refusal->refuse(
				refusal->ctx, row->line, "its numbers contradict each other");
		else if (!fits(&to->new_total, &new) || !fits(&to->old_total, &old))
			rc = refusal->refuse(refusal->ctx, row->line,
				"the rows add up to more than any address space holds");
		else
			rc = row_merge(merger, row, &old, &new);
	}
	return rc;
}

/* Gives the rows their ids, each once, in the order of the file. */
static int label(struct merger *merger)
{
	struct row *rows = merger->to->rows;
	struct buf *key = &merger->key;
	struct table seen;
	int rc = 0;

	for (size_t i = 0; i < merger->to->row_count; i++) {
		rows[i].ids =
			arena_alloc(&merger->to->arena, rows[i].id_count * sizeof(*rows[i].ids));
		if (!rows[i].ids)
			return -ERR_NOMEM;
		rows[i].id_count = 0;
	}
	table_init(&seen);
	for (size_t i = 0; !rc && i < merger->from->count; i++) {
		const struct read_row *row = &merger->from->items[i];

		if (row->to == NO_ROW)
			continue;
		buf_clear(key);
		if (key_add(key, row->to) || buf_add_text(key, row->id))
			rc = -ERR_NOMEM;
		else if (!table_find(&seen, key->data, key->len)) {
			rows[row->to].ids[rows[row->to].id_count++] = row->id;
			rc = table_add(&seen, key->data, key->len, 0);
		}
	}
	table_release(&seen);
	return rc;
}

/* ---------------------------------------------------------------- rows to be shown */

struct sorted {
	struct row row;
	struct delta delta;
	size_t place; /* in the file */
};

static int by_growth(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->delta.requested_bytes != y->delta.requested_bytes)
		return x->delta.requested_bytes > y->delta.requested_bytes ? -1 : 1;
	if (x->delta.block_count != y->delta.block_count)
		return x->delta.block_count > y->delta.block_count ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* Drops the rows that cancel and sorts the others. */
static int finish(struct comparison *to)
{
	struct sorted *sorted = calloc(to->row_count + 1, sizeof(*sorted));
	size_t count = 0;

	if (!sorted)
		return -ERR_NOMEM;
	for (size_t i = 0; i < to->row_count; i++) {
		struct delta delta = row_delta(to, &to->rows[i]);

		if (delta.requested_bytes || delta.block_count)
			sorted[count++] = (struct sorted){to->rows[i], delta, i};
	}
	if (count)
		qsort(sorted, count, sizeof(*sorted), by_growth);
	for (size_t i = 0; i < count; i++)
		to->rows[i] = sorted[i].row;
	to->row_count = count;
	free(sorted);
	return 0;
}

int read_rows_settle(struct read_rows *rows, int reading, struct comparison *comparison,
	const struct read_refusal *refusal)
{
	struct merger merger = {.from = rows, .to = comparison, .reading = reading};
	int rc;

	table_init(&merger.rows);
	buf_init(&merger.key);
	rc = merge(&merger, refusal);
	if (!rc)
		rc = label(&merger);
	if (!rc)
		rc = finish(comparison);
	buf_release(&merger.key);
	table_release(&merger.rows);
	return rc;
}

/* ---------------------------------------------------------------- the total line */

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

bool read_total_settle(const struct total_text *total, int reading, struct comparison *to)
{
	int64_t rows = comparison_delta(to).requested_bytes, bytes, overhead;
	struct block_totals old = to->old_total, new = to->new_total;

	if (!total_holds(total, reading))
		return false;
	bytes = total_part(total, 0, reading);
	overhead = total->has_overhead ? total_part(total, 1, reading) : 0;
	if (rows < 0 ? bytes > INT64_MAX + rows : bytes < rows - INT64_MAX)
		return false;
	if (!grow(&old.requested_bytes, &new.requested_bytes, bytes - rows, 0, 0) ||
		!grow(&old.overhead_bytes, &new.overhead_bytes, overhead, old.requested_bytes,
			new.requested_bytes))
		return false;
	to->old_total = old;
	to->new_total = new;
	to->has_overhead = total->has_overhead;
	to->lacks_rows = bytes != rows;
	return bytes == rows;
}
