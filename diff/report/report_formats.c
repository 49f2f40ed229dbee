/* The list of report formats. */
#include <stdbool.h>

#include "diff/report/report.h"

const struct report_format report_formats[] = {
	{.name = "text",
		.write = report_text,
		.has_window = true,
		.has_blocks = true,
		.write_chart = chart_text,
		.shown_max = 20,
		.span_max = 50},
	{.name = "umdh", .write = report_umdh, .has_window = true},
	{.name = "html",
		.write = report_html,
		.has_window = true,
		.write_chart = chart_html,
		.span_max = 500},
	{.name = "json", .write = report_json, .has_window = true, .has_blocks = true},
	{.name = "jsonl", .write = report_jsonl, .is_of_dumps = true},
	{.name = "csv",
		.write = report_csv,
		.has_window = true,
		.write_chart = chart_csv,
		.span_max = 500},
	{.name = "pprof", .write = report_pprof, .is_of_one = true, .is_packed = true},
	{.name = "speedscope", .write = report_speedscope, .is_of_one = true},
	{.name = "dhat", .write = report_dhat, .is_of_one = true},
	{.name = "folded", .write = report_folded, .is_of_one = true},
	{.name = "svg",
		.write = report_flame,
		.is_of_one = true,
		.write_chart = chart_svg,
		.span_max = 500},
	{.name = NULL},
};
