/* The balance, the heaps and the pinned containers of a process in JSON. man/hdiff-json.5 documents them and must change
 * with this file. */
#include "diff/report/json.h"

#include "diff/query/balance_view.h"
#include "diff/query/heap_view.h"

void json_balance(struct json *json)
{
	const struct balance_view *balance = &json->view->balance;
	const size_t count = json->comparison->dump_count;

	if (!balance->count)
		return;
	json_open_line(json, "balance", '[');
	for (size_t i = 0; i < balance->count; i++) {
		const struct balance_row *row = &balance->rows[i];

		json_open_line(json, NULL, '{');
		json_text(json, "key", row->key);
		json_text(json, "unit", row->is_count ? "count" : "bytes");
		json_open(json, "values", '[');
		for (size_t k = 0; k < count; k++)
			json_known(json, NULL, row->values[k], row->values[k] != BALANCE_UNKNOWN);
		json_close(json, ']');
		if (count > 1)
			json_growth(json, "change", row->last, row->first, row->has_change);
		if (row->has_trend) {
			json_text(json, "verdict", trend_verdict_name(row->trend.verdict));
			if (json->has_rates)
				json_fraction(json, "per_hour", row->trend.bytes_per_hour);
			else
				json_known(json, "per_hour", 0, false);
		}
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void write_memory(
	struct json *json, const char *key, const struct heap_memory *memory, bool is_known)
{
	const struct heap_space *space = &memory->space;

	json_open(json, key, '{');
	json_known(json, "committed", memory->committed_bytes, is_known);
	json_known(json, "reserved", memory->reserved_bytes, is_known);
	json_known(json, "bytes", memory->blocks.requested_bytes, is_known);
	json_known(json, "blocks", memory->blocks.block_count, is_known);
	json_known(json, "overhead", memory->blocks.overhead_bytes, is_known);
	json_known(json, "free", heap_free_bytes(memory), is_known);
	json_known(json, "largest_free", space->free_run_bytes, is_known && space->is_known);
	json_known(json, "lfh_blocks", space->lfh.block_count, is_known && space->is_known);
	json_known(json, "lfh_bytes", space->lfh.requested_bytes, is_known && space->is_known);
	json_known(json, "vs_blocks", space->vs.block_count, is_known && space->is_known);
	json_known(json, "vs_bytes", space->vs.requested_bytes, is_known && space->is_known);
	json_close(json, '}');
}

static void write_creator(struct json *json, const struct heap_change *row)
{
	struct frames frames;

	frames_init(&frames);
	naming_stack_frames(&json->view->naming, &json->comparison->dumps[row->creator_dump],
		&row->creator, &frames);
	json_open(json, "created_by", '[');
	for (size_t i = 0; i < frames.count; i++) {
		json_open_frame(json, &frames.items[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
	frames_release(&frames);
}

static void write_heap(struct json *json, const struct heap_change *row, bool is_single)
{
	json_open_line(json, NULL, '{');
	json_hex(json, "heap", row->addr);
	json_text(json, "kind", row->kind);
	if (!is_single)
		write_memory(json, "old", &row->old, row->is_old);
	write_memory(json, "new", &row->now, row->is_now);
	if (row->creator.frame_count)
		write_creator(json, row);
	json_close(json, '}');
}

static void write_row_pinned(struct json *json, const char *key, const struct row_pinned *row)
{
	json_open(json, key, '{');
	json_number(json, "containers", row->container_count);
	json_number(json, "blocks", row->blocks.block_count);
	json_number(json, "bytes", row->blocks.requested_bytes);
	json_number(json, "pinned", row->part_bytes);
	json_number(json, "alone", row->alone_bytes);
	json_number(json, "shared", row->shared_bytes);
	json_close(json, '}');
}

static void write_pinned(struct json *json, const struct pinned_view *pinned)
{
	json_open_line(json, "pinned", '{');
	json_number(json, "containers", pinned->container_count);
	json_number(json, "left_out", pinned->left_count);
	json_number(json, "committed", pinned->committed_bytes);
	json_number(json, "blocks", pinned->blocks.block_count);
	json_number(json, "bytes", pinned->blocks.requested_bytes);
	json_number(json, "overhead", pinned->blocks.overhead_bytes);
	write_row_pinned(json, "stackless", &pinned->stackless);
	json_close(json, '}');
}

void json_heaps(struct json *json, bool shows_heaps)
{
	const struct heap_view *heaps = &json->view->heaps;

	if (shows_heaps) {
		json_open_line(json, "heaps", '[');
		for (size_t i = 0; i < heaps->count; i++)
			write_heap(json, &heaps->rows[i], heaps->is_single);
		json_close(json, ']');
	}
	if (json->view->pinned.rows)
		write_pinned(json, &json->view->pinned);
}

void json_row_pinned(struct json *json, uint32_t number)
{
	if (json->view->pinned.rows)
		write_row_pinned(json, "pinned", &json->view->pinned.rows[number]);
}
