/*
 * The sums of a trend's rows in a page. The page's script reads them.
 *
 * The table has the form of page_table.h. Each row, and last the sum of the rows that do not fit,
 * consists of: the bytes of a block plus 1, or 0 if they differ; the number of blocks in each
 * snapshot; and, if the bytes of blocks differ, the bytes in each snapshot. Numbers of snapshots are
 * signed differences to the number before. A difference of 0 is followed by how many more there
 * are. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/query/view.h"
#include "diff/report/json.h"
#include "diff/report/page_table.h"

#define ROWS_BYTES 7500000 /* in all series of a page; further rows are merged */

static uint64_t number_of(const struct block_totals *totals, bool are_bytes)
{
	return are_bytes ? totals->requested_bytes : totals->block_count;
}

static void add_numbers(
	struct buf *table, const struct block_totals *totals, size_t count, bool are_bytes)
{
	uint64_t before = 0;

	for (size_t i = 0; i < count;) {
		const uint64_t now = number_of(&totals[i++], are_bytes);
		size_t same = 0;

		page_add_signed(table, (int64_t)(now - before));
		if (now == before) {
			for (; i < count && number_of(&totals[i], are_bytes) == now; i++)
				same++;
			page_add_number(table, same);
		}
		before = now;
	}
}

/* Returns the size of all blocks, or UINT64_MAX if sizes differ. */
static uint64_t size_of(const struct block_totals *totals, size_t count)
{
	uint64_t size = 0;

	for (size_t i = 0; i < count && !size; i++) {
		if (totals[i].block_count)
			size = totals[i].requested_bytes / totals[i].block_count;
	}
	for (size_t i = 0; i < count; i++) {
		if (totals[i].requested_bytes != size * totals[i].block_count)
			return UINT64_MAX;
	}
	return size;
}

static void add_row(struct buf *table, const struct block_totals *totals, size_t count)
{
	const uint64_t size = size_of(totals, count);

	page_add_number(table, size + 1);
	add_numbers(table, totals, count, false);
	if (size == UINT64_MAX)
		add_numbers(table, totals, count, true);
}

/* Returns a number that is larger for rows that change more. */
static uint64_t weight_of(const struct block_totals *totals, size_t count)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t bytes = totals[i].requested_bytes;

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	return (most - least > UINT64_MAX / 32 ? UINT64_MAX / 2 : 16 * (most - least)) + most / 2;
}

static const struct block_totals *totals_of(const struct json *json, size_t shown)
{
	return json->comparison->rows[json->view->rows[shown]].totals;
}

void page_series_begin(struct json *json, size_t series_count, struct page_series *series)
{
	const size_t count = json->view->shown_count, dumps = json->comparison->dump_count;
	struct page_row *rows = xcalloc(count + 1, sizeof(*rows));
	struct block_totals *others = xcalloc(dumps + 1, sizeof(*others));
	struct buf all;

	buf_init(&all);
	buf_init(&series->table);
	series->is_listed = xcalloc(count + 1, sizeof(*series->is_listed));
	for (size_t i = 0; i < count; i++) {
		rows[i] = (struct page_row){.shown = i,
			.first = all.len,
			.weight = weight_of(totals_of(json, i), dumps)};
		add_row(&all, totals_of(json, i), dumps);
		rows[i].count = all.len - rows[i].first;
		rows[i].bytes = rows[i].count * 4 / 3 + 200; /* with the trend */
	}
	series->other_count =
		count - page_choose_rows(json, rows, count, ROWS_BYTES / series_count);
	for (size_t i = 0; i < count; i++) {
		series->is_listed[i] = rows[i].is_listed;
		if (rows[i].is_listed)
			buf_add(&series->table, all.data + rows[i].first, rows[i].count);
		for (size_t k = 0; !rows[i].is_listed && k < dumps; k++)
			block_totals_add(&others[k], &totals_of(json, i)[k]);
	}
	add_row(&series->table, others, dumps);
	buf_release(&all);
	free(others);
	free(rows);
}

void page_series_end(struct json *json, struct page_series *series)
{
	json_number(json, "other_rows", series->other_count);
	page_write_table(json, "table", &series->table);
	buf_release(&series->table);
	free(series->is_listed);
}
