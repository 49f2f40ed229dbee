/* The window of a recording in JSON: sums by fate, times, lifetimes, threads and who freed.
 * man/hdiff-json.5 documents it and must change with it. */
#include "diff/query/view.h"
#include "diff/report/json.h"
#include "diff/report/report_parts.h"

static void write_frame(struct json *json, const struct frame *frame)
{
	if (json->frames) {
		json_number(json, NULL, page_frame_number(json->frames, frame));
		return;
	}
	json_open_frame(json, frame);
	json_close(json, '}');
}

void json_frames(struct json *json, const char *key, const struct frame *items, size_t count)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < count; i++)
		write_frame(json, &items[i]);
	json_close(json, ']');
}

static void write_span(struct json *json, const char *key, const struct time_span *span)
{
	if (span->first_ms > span->last_ms)
		return;
	json_open(json, key, '{');
	json_number(json, "first_ms", span->first_ms);
	json_number(json, "last_ms", span->last_ms);
	json_close(json, '}');
}

void json_some(struct json *json, const char *key, const struct block_totals *some)
{
	json_open(json, key, '{');
	json_number(json, "bytes", some->requested_bytes);
	json_number(json, "blocks", some->block_count);
	json_close(json, '}');
}

static void write_fate(struct json *json, enum block_fate fate, const struct window_sums *sums)
{
	json_some(json, block_fate_name(fate), &sums->by_fate[fate]);
}

static void write_freed_by(struct json *json, const struct window_sums *sums)
{
	struct frames frames;

	frames_init(&frames);
	view_freed_by_frames(json->view, sums, &frames);
	json_open(json, "freed_by", '{');
	json_number(json, "stacks", sums->freed_by_count);
	json_number(json, "bytes", sums->freed_by_sum.requested_bytes);
	json_number(json, "blocks", sums->freed_by_sum.block_count);
	json_frames(json, "frames", frames.items, frames.count);
	json_close(json, '}');
	frames_release(&frames);
}

static void write_thread(struct json *json, const struct dump_sums *dump, uint32_t id)
{
	const char *name = sums_thread_name(dump, id);

	json_number(json, "thread", id);
	if (name)
		json_text(json, "name", name);
}

static void write_freers(struct json *json, const struct window_sums *sums)
{
	json_open(json, "freed_by_threads", '[');
	for (size_t i = 0; i < sums->freer_count; i++) {
		json_open(json, NULL, '{');
		write_thread(json, json->view->comparison->dumps, sums->freers[i].id);
		json_number(json, "bytes", sums->freers[i].sum.requested_bytes);
		json_number(json, "blocks", sums->freers[i].sum.block_count);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_window(struct json *json, const struct window_sums *sums)
{
	json_open(json, "window", '{');
	write_fate(json, FATE_AI, sums);
	for (int fate = FATE_AIFO; fate <= FATE_AOFO; fate++)
		write_fate(json, (enum block_fate)fate, sums);
	json_fraction(json, "allocated_per_second", report_window_rate(json->comparison, sums));
	json_open(json, "peak", '{');
	json_number(json, "bytes", sums->peak_bytes);
	json_number(json, "first_ms", sums->peak_ms);
	json_close(json, '}');
	write_span(json, "allocated", &sums->allocated);
	write_span(json, "freed", &sums->freed);
	if (sums->by_fate[FATE_AIFI].block_count) {
		json_open(json, "lifetime", '{');
		json_number(json, "shortest_ms", sums->shortest_ms);
		json_fraction(json, "mean_ms", report_window_life(sums));
		json_number(json, "median_ms", sums->median_ms);
		json_number(json, "longest_ms", sums->longest_ms);
		json_close(json, '}');
	}
	json_open(json, "threads", '[');
	for (size_t i = 0; i < sums->thread_count; i++)
		json_number(json, NULL, sums->threads[i]);
	json_close(json, ']');
	json_open(json, "heaps", '[');
	for (size_t i = 0; i < sums->heap_count; i++)
		json_heap(json, NULL, sums->heaps[i]);
	json_close(json, ']');
	if (sums->freed_by)
		write_freed_by(json, sums);
	if (json->view->comparison->dumps->threads)
		write_freers(json, sums);
	json_close(json, '}');
}
