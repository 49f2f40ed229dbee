/* speedscope's own format, according to its schema. Weights cannot be negative, so growth and
 * shrinking are separate profiles. */
#include "diff/report/report.h"

#include "diff/report/graph.h"
#include "diff/report/json.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct profile {
	const char *name;
	uint64_t (*weight)(const struct change *change);
};

static uint64_t growth_bytes(const struct change *change)
{
	uint64_t old = change->old.requested_bytes, now = change->now.requested_bytes;

	return now > old ? now - old : 0;
}

static uint64_t shrink_bytes(const struct change *change)
{
	return growth_bytes(&(struct change){.old = change->now, .now = change->old});
}

static uint64_t new_bytes(const struct change *change)
{
	return change->now.requested_bytes;
}

static uint64_t old_bytes(const struct change *change)
{
	return change->old.requested_bytes;
}

static void write_frames(struct json *json, const struct graph *graph)
{
	json_open_line(json, "shared", '{');
	json_open(json, "frames", '[');
	for (size_t i = 0; i < graph->box_count; i++) {
		const struct graph_box *box = &graph->boxes[i];

		json_open_line(json, NULL, '{');
		json_text(json, "name", box->name);
		if (box->file)
			json_text(json, "file", box->file);
		if (box->line)
			json_number(json, "line", box->line);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void write_profile(
	struct json *json, const struct graph *graph, const struct profile *profile)
{
	uint64_t sum = 0;

	json_open_line(json, NULL, '{');
	json_text(json, "type", "sampled");
	json_text(json, "name", profile->name);
	json_text(json, "unit", "bytes");
	json_open(json, "samples", '[');
	for (size_t i = 0; i < graph->line_count; i++) {
		const struct graph_line *line = &graph->lines[i];

		if (!profile->weight(&line->change))
			continue;
		json_open_line(json, NULL, '[');
		for (size_t k = 0; k < line->count; k++)
			json_number(json, NULL, line->boxes[k]);
		json_close(json, ']');
	}
	json_close(json, ']');
	json_open_line(json, "weights", '[');
	for (size_t i = 0; i < graph->line_count; i++) {
		uint64_t weight = profile->weight(&graph->lines[i].change);

		sum += weight;
		if (weight)
			json_number(json, NULL, weight);
	}
	json_close(json, ']');
	json_number(json, "startValue", 0);
	json_number(json, "endValue", sum);
	json_close(json, '}');
}

void report_speedscope(struct out *out, const struct report *report)
{
	static const struct profile of_growth[] = {{"Growth", growth_bytes},
		{"Shrink", shrink_bytes}, {"New, of stacks that changed", new_bytes},
		{"Old, of stacks that changed", old_bytes}};
	const struct view *view = report->views;
	const bool is_growth = graph_is_growth(view);
	const struct profile of_one = {graph_what(view), new_bytes};
	struct json json = {.out = out, .is_first = true};
	struct graph graph;
	struct buf words;

	buf_init(&words);
	graph_inputs(view, &words);
	graph_make(&graph, view, GRAPH_PLACES);
	json_open(&json, NULL, '{');
	json_text(&json, "$schema", SCHEMA);
	json_text(&json, "exporter", "hdiff " HSNAP_VERSION);
	json_text(&json, "name", words.data);
	json_number(&json, "activeProfileIndex", 0);
	write_frames(&json, &graph);
	json_open_line(&json, "profiles", '[');
	for (size_t i = 0; i < (is_growth ? 4 : 1); i++)
		write_profile(&json, &graph, is_growth ? &of_growth[i] : &of_one);
	json_close(&json, ']');
	json_close(&json, '}');
	out_char(out, '\n');
	graph_release(&graph);
	buf_release(&words);
}
