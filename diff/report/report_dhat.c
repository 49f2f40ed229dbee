/*
 * DHAT's format, version 2, for Valgrind's dh_view.html: bytes and blocks of each stack.
 *
 * For a comparison, only growth is included, because the viewer adds up figures and shows shares of
 * the sum. "t-gmax" and lifetimes (bklt) are left out, because hdiff does not know them for every
 * stack. */
#include "diff/report/report.h"

#include <inttypes.h>

#include "diff/report/clean.h"
#include "diff/report/graph.h"
#include "diff/report/json.h"

/* Returns the time between two dumps, the length of a window, or the age of the process, in
 * microseconds. Returns 0 if unknown. */
static uint64_t length_us(const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *first = comparison->dumps, *last;
	int64_t ms;

	if (!first)
		return 0;
	last = &first[comparison->dump_count - 1];
	if (last->window.fate != FATE_LIVE)
		return (last->window.to_ms - last->window.from_ms) * 1000;
	if (graph_is_growth(view))
		ms = first->id.time_ms && last->id.time_ms ? last->id.time_ms - first->id.time_ms :
							     0;
	else
		ms = last->id.time_ms && last->id.start_ms ? last->id.time_ms - last->id.start_ms :
							     0;
	return ms > 0 ? (uint64_t)ms * 1000 : 0;
}

static const char *verb_of(const struct view *view)
{
	static const char *const verbs[BLOCK_FATES] = {
		[FATE_LIVE] = "Live, allocated",
		[FATE_AIFO] = "Allocated and kept",
		[FATE_AIFI] = "Allocated and freed",
		[FATE_AOFI] = "Freed, allocated",
		[FATE_AOFO] = "Kept, allocated",
		[FATE_AI] = "Allocated",
		[FATE_ALL] = "Allocated",
	};
	const struct dump_sums *dumps = view->comparison->dumps;

	if (graph_is_growth(view))
		return "Grown, allocated";
	return verbs[dumps ? dumps[0].window.fate : FATE_LIVE];
}

/* Writes the frames as "module!function (file:line)". */
static void write_boxes(struct json *json, const struct graph *graph)
{
	struct buf text;

	buf_init(&text);
	json_open_line(json, "ftbl", '[');
	json_text(json, NULL, "[root]");
	for (size_t i = 0; i < graph->box_count; i++) {
		const struct graph_box *box = &graph->boxes[i];

		buf_clear(&text);
		buf_add_text(&text, box->name);
		if (box->file) {
			buf_add_text(&text, " (");
			clean_text(&text, box->file, true);
			if (box->line)
				buf_printf(&text, ":%" PRIu32, box->line);
			buf_add_text(&text, ")");
		}
		json_line(json);
		json_text(json, NULL, text.data);
	}
	json_close(json, ']');
	buf_release(&text);
}

/* Writes the stacks. Their frames are innermost first. */
static void write_points(struct json *json, const struct graph *graph)
{
	json_open_line(json, "pps", '[');
	for (size_t i = 0; i < graph->line_count; i++) {
		const struct graph_line *line = &graph->lines[i];
		const struct block_totals *old = &line->change.old, *now = &line->change.now;

		if (now->requested_bytes <= old->requested_bytes)
			continue;
		json_open_line(json, NULL, '{');
		json_growth(json, "tb", now->requested_bytes, old->requested_bytes, true);
		json_growth(json, "tbk", now->block_count, old->block_count, true);
		json_open(json, "fs", '[');
		for (size_t k = line->count; k--;)
			json_number(json, NULL, (uint64_t)line->boxes[k] + 1);
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

void report_dhat(struct out *out, const struct report *report)
{
	const struct view *view = report->views;
	const struct comparison *comparison = view->comparison;
	struct json json = {.out = out, .is_first = true};
	struct graph graph;
	struct buf words;

	buf_init(&words);
	buf_add_text(&words, "hdiff ");
	graph_inputs(view, &words);
	if (graph_is_growth(view))
		buf_add_text(&words, ", without what shrank");
	graph_make(&graph, view, GRAPH_PLACES);
	json_open(&json, NULL, '{');
	json_number(&json, "dhatFileVersion", 2);
	json_text(&json, "mode", "heap");
	json_text(&json, "verb", verb_of(view));
	json_bool(&json, "bklt", false);
	json_bool(&json, "bkacc", false);
	json_text(&json, "tu", "\xc2\xb5s");
	json_text(&json, "Mtu", "s");
	json_text(&json, "cmd", words.data);
	json_number(&json, "pid",
		comparison->dumps ? comparison->dumps[comparison->dump_count - 1].id.pid : 0);
	json_number(&json, "te", length_us(view));
	write_points(&json, &graph);
	write_boxes(&json, &graph);
	json_close(&json, '}');
	out_char(out, '\n');
	graph_release(&graph);
	buf_release(&words);
}
