/*
 * The data of a recording in a page: use of memory at the edges of spans, and when the blocks of
 * each stack were allocated and freed (diff/query/lives.h). The page's script reads it.
 *
 * The table has the form of page_table.h. Each row consists of: the number of its entries; the size of its blocks, or 0
 * if they differ, plus 1; and its entries. An entry consists of: birth, minus that of the entry
 * before; death, minus birth; the number of blocks; and, if sizes differ, their bytes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/record/record.h"
#include "diff/query/lives.h"
#include "diff/query/view.h"
#include "diff/read/read_use.h"
#include "diff/report/json.h"
#include "diff/report/page_table.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

#define ENTRY_BYTES 5 /* of an entry in the table, on average */
#define ROWS_BYTES 3500000 /* further rows are merged */

/* ---------------------------------------------------------------- the table */

/* Returns the size of the entries' blocks, or UINT64_MAX if the sizes differ. */
static uint64_t size_of(const struct life_entry *entries, size_t count)
{
	uint64_t size = entries->blocks ? entries->bytes / entries->blocks : 0;

	for (size_t i = 0; i < count; i++) {
		if (entries[i].bytes != size * entries[i].blocks)
			return UINT64_MAX;
	}
	return size;
}

/* Appends the entries of one row. */
static void add_entries(struct buf *table, const struct life_entry *entries, size_t count)
{
	const uint64_t size = count ? size_of(entries, count) : 0;
	unsigned birth = 0;

	page_add_number(table, count);
	page_add_number(table, size + 1);
	for (size_t i = 0; i < count; i++) {
		page_add_number(table, entries[i].birth - birth);
		page_add_number(table, entries[i].death - entries[i].birth);
		page_add_number(table, entries[i].blocks);
		if (size == UINT64_MAX)
			page_add_number(table, entries[i].bytes);
		birth = entries[i].birth;
	}
}

/* ---------------------------------------------------------------- rows */

static uint64_t weight_of(const struct window_sums *sums)
{
	uint64_t kept = sums->by_fate[FATE_AIFO].requested_bytes + sums->peak_bytes;
	uint64_t passed = sums->by_fate[FATE_AIFI].requested_bytes / 256;

	return kept > passed ? kept : passed;
}

/* Finds the rows with entries. Returns their number. */
static size_t find_rows(const struct view *view, struct page_row *rows)
{
	const struct lives *lives = view->lives;
	uint32_t *places = xcalloc(view->comparison->row_count + 1, sizeof(*places));
	size_t count = 0;

	for (size_t i = 0; i < view->shown_count; i++)
		places[view->rows[i]] = (uint32_t)i + 1;
	for (size_t i = 0, end; i < lives->entry_count; i = end) {
		const uint32_t row = lives->entries[i].row;

		for (end = i; end < lives->entry_count && lives->entries[end].row == row; end++)
			continue;
		if (row != LIFE_OTHER && places[row])
			rows[count++] = (struct page_row){.shown = places[row] - 1,
				.first = i,
				.count = end - i,
				.bytes = (end - i) * ENTRY_BYTES,
				.weight = weight_of(&view->window[places[row]])};
	}
	free(places);
	return count;
}

static void write_life(struct json *json, const struct window_sums *sums, struct frames *frames)
{
	if (sums->by_fate[FATE_AIFI].block_count)
		json_fraction(json, "mean_ms", report_window_life(sums));
	if (!sums->freed_by)
		return;
	view_freed_by_frames(json->view, sums, frames);
	json_open(json, "freed_by", '{');
	json_number(json, "bytes", sums->freed_by_sum.requested_bytes);
	json_open(json, "frames", '[');
	for (size_t i = 0; i < frames->count; i++)
		json_number(json, NULL, page_frame_number(json->frames, &frames->items[i]));
	json_close(json, ']');
	json_close(json, '}');
}

static void write_row(struct json *json, size_t shown, struct frames *frames)
{
	const uint32_t number = json->view->rows[shown];
	const struct row *row = &json->comparison->rows[number];

	json_open_line(json, NULL, '{');
	json_text(json, "kind", report_row_kind(row->kind));
	json_open(json, "ids", '[');
	for (size_t i = 0; i < row->id_count; i++)
		json_text(json, NULL, row->ids[i]);
	json_close(json, ']');
	if (row->heap)
		json_heap(json, "heap", row->heap);
	view_frames(json->view, number, frames);
	json_open(json, "frames", '[');
	for (size_t i = 0; i < frames->count; i++)
		json_number(json, NULL, page_frame_number(json->frames, &frames->items[i]));
	json_close(json, ']');
	write_life(json, &json->view->window[shown + 1], frames);
	json_close(json, '}');
}

/* Adds up the entries that are not of a listed row. The result has the order of the table. */
static struct life_entry *add_others(
	const struct view *view, const struct page_row *rows, size_t count, size_t *entry_count)
{
	const struct lives *lives = view->lives;
	const size_t side = lives->edge_count + 1;
	struct life_entry *all = xcalloc(side * side, sizeof(*all));
	bool *is_listed = xcalloc(view->comparison->row_count + 1, sizeof(*is_listed));

	*entry_count = 0;
	for (size_t i = 0; i < count; i++)
		is_listed[view->rows[rows[i].shown]] = rows[i].is_listed;
	for (size_t i = 0; i < lives->entry_count; i++) {
		const struct life_entry *entry = &lives->entries[i];
		struct life_entry *sum = &all[entry->birth * side + entry->death];

		if (entry->row != LIFE_OTHER && is_listed[entry->row])
			continue;
		sum->birth = entry->birth;
		sum->death = entry->death;
		sum->blocks += entry->blocks;
		sum->bytes += entry->bytes;
	}
	for (size_t i = 0; i < side * side; i++) {
		if (all[i].blocks)
			all[(*entry_count)++] = all[i];
	}
	free(is_listed);
	return all;
}

static void write_rows(struct json *json)
{
	const struct view *view = json->view;
	struct page_row *rows = xcalloc(view->shown_count + 1, sizeof(*rows));
	const size_t count = find_rows(view, rows),
		     listed = page_choose_rows(json, rows, count, ROWS_BYTES);
	size_t other_count;
	struct life_entry *others = add_others(view, rows, count, &other_count);
	struct frames frames;
	struct buf table;

	buf_init(&table);
	frames_init(&frames);
	json_open_line(json, "rows", '[');
	for (size_t i = 0; i < count && !json->out->err.code; i++) {
		if (!rows[i].is_listed)
			continue;
		write_row(json, rows[i].shown, &frames);
		add_entries(&table, view->lives->entries + rows[i].first, rows[i].count);
	}
	json_close(json, ']');
	add_entries(&table, others, other_count);
	json_number(json, "other_rows", other_count ? view->row_count - listed : 0);
	page_write_table(json, "lives", &table);
	frames_release(&frames);
	buf_release(&table);
	free(others);
	free(rows);
}

/* ---------------------------------------------------------------- the whole */

static void write_edge(struct json *json, const struct life_edge *edge)
{
	json_open_line(json, NULL, '{');
	json_number(json, "ms", edge->time_ms);
	if (edge->label)
		json_text(json, "label", edge->label);
	json_open(json, "use", '[');
	for (size_t i = 0; i < RECORD_MEMORIES; i++) {
		json_number(json, NULL, edge->bytes[i]);
		json_number(json, NULL, edge->blocks[i]);
	}
	json_close(json, ']');
	json_number(json, "highest", edge->highest_bytes);
	json_number(json, "highest_ms", edge->highest_ms);
	json_close(json, '}');
}

void page_lives(struct json *json)
{
	const struct lives *lives = json->view->lives;

	json_open_line(json, "recording", '{');
	json_open(json, "memories", '[');
	for (size_t i = 0; i < RECORD_MEMORIES; i++)
		json_text(json, NULL, use_memory_name((enum record_memory)i));
	json_close(json, ']');
	json_open_line(json, "edges", '[');
	for (size_t i = 0; i < lives->edge_count; i++)
		write_edge(json, &lives->edges[i]);
	json_close(json, ']');
	json_open_line(json, "marks", '[');
	for (size_t i = 0; i < lives->mark_count; i++) {
		json_open(json, NULL, '{');
		json_number(json, "ms", lives->marks[i].time_ms);
		json_text(json, "label", lives->marks[i].label);
		json_close(json, '}');
	}
	json_close(json, ']');
	write_rows(json);
	json_close(json, '}');
}
