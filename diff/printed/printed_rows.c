/* Rows of a printed comparison: collects them, merges equal ones, sorts them, and completes the
 * totals. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/printed/printed_parts.h"
#include "diff/read/frame.h"

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

void read_rows_add(struct read_rows *rows, const struct read_row *row)
{
	array_grow((void **)&rows->items, &rows->cap, rows->count, sizeof(*row));
	rows->items[rows->count++] = *row;
}

/* Parses a frame. If text follows the frame's offset, removes this text and returns false. */
static bool parse_frame(struct frame *frame, struct arena *arena, struct words text, bool is_ours)
{
	const char *odd, *function;
	size_t len, at = 0;

	frame_parse(frame, arena, text.text, text.len);
	odd = is_ours ? NULL : frame_odd_end(frame);
	if (!odd)
		return true;
	function = frame->function;
	len = strlen(function);
	while (at + len < text.len && memcmp(text.text + at, function, len) != 0)
		at++;
	frame_parse(frame, arena, text.text, at + (size_t)(odd - function));
	return false;
}

bool read_rows_frame(struct read_rows *rows, struct words text, bool is_ours)
{
	const uint64_t *known = table_find(&rows->numbers, text.text, text.len);
	/* lowest bit: parse_frame() removed text */
	uint64_t frame = known ? *known : (uint64_t)rows->known_count << 1;

	if (!known) {
		array_grow((void **)&rows->known, &rows->known_cap, rows->known_count,
			sizeof(*rows->known));
		rows->has_code_page |= !text_is_utf8(text.text, text.len);
		frame |=
			!parse_frame(&rows->known[rows->known_count++], rows->arena, text, is_ours);
		table_add(&rows->numbers, text.text, text.len, frame);
	}
	array_grow(
		(void **)&rows->frames, &rows->frame_cap, rows->frame_count, sizeof(*rows->frames));
	rows->frames[rows->frame_count++] = (uint32_t)(frame >> 1);
	return !(frame & 1);
}

bool read_row_holds(const struct read_row *row, int reading)
{
	if (!row->count.fits[reading] || row->count.value[reading] > INT64_MAX ||
		!growth_holds(&row->bytes, reading))
		return false;
	return !row->has_counts ||
	       (growth_holds(&row->counts, reading) &&
		       row->counts.now.value[reading] == row->count.value[reading]);
}

/* ---------------------------------------------------------------- merging */

struct merger {
	const struct read_rows *from;
	struct comparison *comparison;
	size_t cap;
	struct table rows; /* maps content to the index of a row in the comparison */
	struct table ids; /* pairs of a row and an id */
	struct table listed; /* see is_listed() */
	struct buf key;
};

/* Returns the kind of a row. Blocks without a stack have id 0 in UMDH. */
static enum row_kind kind_of(const struct read_row *row)
{
	if (row->frame_count)
		return ROW_STACK;
	return row->id[strspn(row->id, "0")] ? ROW_UNKNOWN : ROW_STACKLESS;
}

static void key_begin(struct buf *key, uint64_t number)
{
	buf_clear(key);
	buf_add(key, &number, sizeof(number));
}

/* Returns the index of the comparison's row that is equal to a row of the file. Adds such a row if
 * the comparison has none. */
static size_t find_row(struct merger *merger, const struct read_row *row)
{
	const uint32_t *numbers = row->frame_count ? merger->from->frames + row->frame_at : NULL;
	struct comparison *comparison = merger->comparison;
	enum row_kind kind = kind_of(row);
	struct buf *key = &merger->key;
	struct frames *frames;
	const uint64_t *known;

	key_begin(key, (uint64_t)kind << 1 | row->is_own);
	if (row->is_own)
		buf_add(key, &row->line, sizeof(row->line));
	else if (kind == ROW_UNKNOWN || merger->from->by_id)
		buf_add(key, row->id, strlen(row->id) + 1);
	if (row->frame_count)
		buf_add(key, numbers, row->frame_count * sizeof(*numbers));
	known = table_find(&merger->rows, key->data, key->len);
	if (known)
		return (size_t)*known;
	frames = arena_alloc(&comparison->arena, sizeof(*frames));
	frames->items = arena_alloc(&comparison->arena, row->frame_count * sizeof(*frames->items));
	for (; frames->count < row->frame_count; frames->count++)
		frames->items[frames->count] = merger->from->known[numbers[frames->count]];
	array_grow((void **)&comparison->rows, &merger->cap, comparison->row_count,
		sizeof(*comparison->rows));
	table_add(&merger->rows, key->data, key->len, comparison->row_count);
	comparison->rows[comparison->row_count] = (struct row){.kind = kind,
		.frames = frames,
		.is_torn = row->is_own,
		.totals = arena_alloc(
			&comparison->arena, comparison->dump_count * sizeof(struct block_totals))};
	return comparison->row_count++;
}

/* Adds an id to a row unless the row already has it. */
static void add_id(struct merger *merger, size_t number, const char *id)
{
	struct row *row = &merger->comparison->rows[number];
	struct buf *key = &merger->key;

	key_begin(key, number);
	buf_add_text(key, id);
	if (table_find(&merger->ids, key->data, key->len))
		return;
	table_add(&merger->ids, key->data, key->len, 0);
	if (!(row->id_count & (row->id_count - 1))) { /* 0 or a power of two: full */
		const char **more = arena_alloc(
			&merger->comparison->arena, sizeof(*more) * 2 * (row->id_count + 1));

		if (row->id_count)
			memcpy(more, row->ids, row->id_count * sizeof(*more));
		row->ids = more;
	}
	/* the ids are in the arena, so they are writable */
	((const char **)(uintptr_t)row->ids)[row->id_count++] = id;
}

/* Returns true if a row of the file was listed before, with the same id, stack and numbers. A person
 * may have pasted it twice. */
static bool is_listed(struct merger *merger, size_t number, const char *id,
	const struct block_totals *old, const struct block_totals *now)
{
	struct buf *key = &merger->key;

	key_begin(key, number);
	buf_add(key, old, sizeof(*old));
	buf_add(key, now, sizeof(*now));
	buf_add_text(key, id);
	if (table_find(&merger->listed, key->data, key->len))
		return true;
	table_add(&merger->listed, key->data, key->len, 0);
	return false;
}

static bool fits(const struct block_totals *sum, const struct block_totals *more)
{
	return more->block_count <= INT64_MAX - sum->block_count &&
	       more->requested_bytes <= INT64_MAX - sum->requested_bytes;
}

/* Adds a row of the file. Returns NULL, or the reason why the row is unusable. */
static const char *merge(struct merger *merger, const struct read_row *row, int reading)
{
	struct comparison *comparison = merger->comparison;
	struct block_totals old = {.requested_bytes = row->bytes.old.value[reading]};
	struct block_totals now = {.block_count = row->count.value[reading],
		.requested_bytes = row->bytes.now.value[reading]};
	size_t number;

	if (row->has_counts)
		old.block_count = row->counts.old.value[reading];
	else if (old.requested_bytes)
		old.block_count = now.block_count;
	if (!read_row_holds(row, reading))
		return "its numbers contradict each other";
	if (!fits(&comparison->new_total, &now) || !fits(&comparison->old_total, &old))
		return "the rows add up to more than any address space holds";
	number = find_row(merger, row);
	if (row->frame_count && is_listed(merger, number, row->id, &old, &now))
		return "the same row was listed before";
	add_id(merger, number, row->id);
	block_totals_add(&comparison->rows[number].totals[0], &old);
	block_totals_add(&comparison->rows[number].totals[1], &now);
	block_totals_add(&comparison->old_total, &old);
	block_totals_add(&comparison->new_total, &now);
	comparison->lacks_counts |= !row->has_counts && old.requested_bytes;
	return NULL;
}

/* ---------------------------------------------------------------- order */

struct sorted {
	struct row row;
	struct delta delta;
	size_t place; /* position in the file */
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

/* Drops merged rows without growth, and sorts the rest. */
static void finish(struct comparison *comparison)
{
	struct sorted *sorted = xcalloc(comparison->row_count, sizeof(*sorted));
	size_t count = 0;

	for (size_t i = 0; i < comparison->row_count; i++) {
		struct delta delta = row_delta(comparison, &comparison->rows[i]);

		if (delta.requested_bytes || delta.block_count)
			sorted[count++] = (struct sorted){comparison->rows[i], delta, i};
	}
	qsort(sorted, count, sizeof(*sorted), by_growth);
	for (size_t i = 0; i < count; i++)
		comparison->rows[i] = sorted[i].row;
	comparison->row_count = count;
	free(sorted);
}

void read_rows_finish(struct read_rows *rows, int reading, struct comparison *comparison,
	void (*refuse)(void *ctx, uint64_t line, const char *why), void *ctx)
{
	struct merger merger = {.from = rows, .comparison = comparison};

	table_init(&merger.rows);
	table_init(&merger.ids);
	table_init(&merger.listed);
	for (size_t i = 0; i < rows->count; i++) {
		const char *why = merge(&merger, &rows->items[i], reading);

		if (why)
			refuse(ctx, rows->items[i].line, why);
	}
	finish(comparison);
	buf_release(&merger.key);
	table_release(&merger.listed);
	table_release(&merger.ids);
	table_release(&merger.rows);
}

/* ---------------------------------------------------------------- the total line */

/* Accounts for growth that no row explains. Adds growth to NEW, and the absolute value of a
 * decrease to OLD. */
static void grow(uint64_t *old, uint64_t *now, int64_t growth)
{
	if (growth < 0)
		*old -= (uint64_t)growth;
	else
		*now += (uint64_t)growth;
}

/* Returns true if the bytes fit in a signed number. The sums did not overflow before: each is a
 * total of at most INT64_MAX plus the absolute value of a signed number. */
static bool is_sum(const struct block_totals *sum)
{
	return sum->requested_bytes <= INT64_MAX &&
	       sum->overhead_bytes <= INT64_MAX - sum->requested_bytes;
}

bool read_total_finish(const struct total_text *total, int reading, struct comparison *comparison)
{
	struct block_totals old = comparison->old_total, now = comparison->new_total;
	int64_t rest;

	if (!total_holds(total, reading) ||
		__builtin_sub_overflow(total_part(total, 0, reading),
			comparison_delta(comparison).requested_bytes, &rest))
		return false;
	grow(&old.requested_bytes, &now.requested_bytes, rest);
	if (total->has_overhead)
		grow(&old.overhead_bytes, &now.overhead_bytes, total_part(total, 1, reading));
	if (!is_sum(&old) || !is_sum(&now))
		return false;
	comparison->old_total = old;
	comparison->new_total = now;
	comparison->has_overhead = total->has_overhead;
	comparison->lacks_rows = rest != 0;
	return !rest;
}
