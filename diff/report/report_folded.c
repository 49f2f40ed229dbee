/* Folded stacks. man/hdiff-csv.5 documents them and must change with this file. */
#include "diff/report/report.h"

#include "diff/report/graph.h"

static void write_line(struct out *out, const struct graph *graph, const struct graph_line *line)
{
	for (size_t i = 0; i < line->count; i++) {
		if (i)
			out_char(out, ';');
		out_text(out, graph->boxes[line->boxes[i]].name);
	}
}

static void write_bytes(struct out *out, const struct block_totals *totals)
{
	out_char(out, ' ');
	out_number(out, totals->requested_bytes, 10, 0);
}

void report_folded(struct out *out, const struct report *report)
{
	/* Ignores `style.hex`, because readers of this form need decimal numbers. */
	bool is_growth = graph_is_growth(report->views);
	bool is_reverse = report->style.is_reverse;
	struct graph graph;

	graph_make(&graph, report->views, GRAPH_FOLDED);
	for (size_t i = 0; i < graph.line_count && !out->err.code; i++) {
		const struct graph_line *line = &graph.lines[i];
		const struct block_totals *old = &line->change.old, *now = &line->change.now;

		if (!old->requested_bytes && !now->requested_bytes)
			continue;
		write_line(out, &graph, line);
		if (is_growth)
			write_bytes(out, is_reverse ? now : old);
		write_bytes(out, is_reverse && is_growth ? old : now);
		out_char(out, '\n');
	}
	graph_release(&graph);
}
