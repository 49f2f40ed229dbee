/* Charts as text: tables with bars that fill the width of the terminal. */
#include <inttypes.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#define BAR_MIN 10
#define MARKS_MAX 3 /* per span */

static const char signs[RECORD_MEMORIES] = {
	'#', '+', '=', '|', '-'}; /* in the order of chart_memories */

struct text_chart {
	struct out *out;
	const struct chart *chart;
	unsigned base;
	unsigned time_width, bytes_width, count_width, bar_width;
};

/* Returns the width of a column with numbers up to `value`. */
static unsigned width_of(uint64_t value, unsigned base, unsigned least)
{
	unsigned width = 1;

	while (value /= base)
		width++;
	return width > least ? width : least;
}

/* Returns the number of columns left for bars. The last column of the terminal stays empty, because
 * some consoles wrap lines that fill it. */
static unsigned bar_width(const struct text_chart *text, unsigned used)
{
	unsigned columns = text->chart->style.columns;

	return used + BAR_MIN + 1 < columns ? columns - used - 1 : BAR_MIN;
}

static void write_head(const struct text_chart *text, const char *title)
{
	const struct chart *chart = text->chart;

	out_printf(text->out, "// hdiff " HSNAP_VERSION ": %s\n//\n", title);
	umdh_dump(text->out, "RECORDING", chart->sums);
	if (chart->is_filtered)
		out_text(text->out, "// only the selected stacks and heaps\n");
}

/* Returns the length of a bar, which is limited to `width` because in a damaged file, `part` may
 * exceed `whole`. */
static unsigned length_of(double part, double whole, unsigned width)
{
	part = part < whole ? part : whole;
	return whole > 0 ? (unsigned)(part / whole * width + 0.5) : 0;
}

static void write_times(struct out *out, char c, unsigned count)
{
	while (count--)
		out_char(out, c);
}

/* ---------------------------------------------------------------- over time */

/* Writes a bar for a span. The first part of the bar shows the usage of each type of memory at the
 * end of the span. Dots extend it to the highest usage in the span. */
static void write_use_bar(const struct text_chart *text, const struct use_span *span, double most)
{
	const struct use_window *window = &text->chart->over_time->window;
	double sum = 0;
	unsigned done = 0, length;

	for (size_t i = 0; i < RECORD_MEMORIES; i++) {
		if (!window->is_counted[chart_memories[i]])
			continue;
		sum += (double)span->end[chart_memories[i]].bytes;
		length = length_of(sum, most, text->bar_width);
		write_times(text->out, signs[i], length > done ? length - done : 0);
		done = length > done ? length : done;
	}
	length = length_of((double)span->highest_bytes, most, text->bar_width);
	write_times(text->out, '.', length > done ? length - done : 0);
}

static void write_time(const struct text_chart *text, uint64_t ms)
{
	out_number(text->out, ms / 1000, 10, text->time_width);
	out_printf(text->out, ".%03u", (unsigned)(ms % 1000));
}

static void write_marks(const struct text_chart *text, uint64_t end_ms, size_t *at)
{
	const struct record_mark *mark;
	size_t count = 0;

	for (; (mark = chart_mark(text->chart, at, end_ms)); count++) {
		if (count >= MARKS_MAX)
			continue;
		out_text(text->out, "// mark ");
		umdh_seconds(text->out, mark->time_ms);
		out_char(text->out, ' ');
		out_harmless(text->out, mark->label);
		out_char(text->out, '\n');
	}
	if (count > MARKS_MAX)
		out_printf(text->out, "// and %zu more mark%s\n", count - MARKS_MAX,
			text_plural(count - MARKS_MAX));
}

static void write_use_legend(const struct text_chart *text)
{
	const struct use_over_time *over_time = text->chart->over_time;
	const struct use_span *peak = &over_time->spans[over_time->peak];

	out_text(text->out, "// peak: ");
	out_number(text->out, peak->highest_bytes, text->base, 0);
	out_text(text->out, " bytes at ");
	umdh_seconds(text->out, peak->highest_ms);
	if (over_time->reserved_bytes) {
		out_text(text->out,
			"\n"
			"// reserved but uncommitted address space, not counted here: up to ");
		out_number(text->out, over_time->reserved_bytes, text->base, 0);
		out_text(text->out, " bytes");
	}
	out_text(text->out, "\n"
			    "//\n"
			    "// Each line shows what was in use at that time, and the highest use "
			    "since the previous\n"
			    "// line. Bars:");
	for (size_t i = 0; i < RECORD_MEMORIES; i++) {
		enum record_memory memory = chart_memories[i];

		if (over_time->is_there[memory] && over_time->window.is_counted[memory])
			out_printf(text->out, " %c %s,", signs[i], use_memory_name(memory));
	}
	out_text(text->out, " . the highest use.\n//\n");
}

static void write_over_time(struct text_chart *text)
{
	const struct use_over_time *over_time = text->chart->over_time;
	uint64_t most = over_time->spans[over_time->peak].highest_bytes, most_count = 0;
	unsigned used;
	size_t mark = 0;

	for (size_t i = 0; i < over_time->span_count; i++) {
		uint64_t count = use_sum(&over_time->window, over_time->spans[i].end).count;

		most_count = count > most_count ? count : most_count;
	}
	text->time_width = width_of(over_time->window.to_ms / 1000, 10, 2);
	text->bytes_width = width_of(most, text->base, 7);
	text->count_width = width_of(most_count, text->base, 6);
	used = text->time_width + 4 + 1 + text->bytes_width + 1 + text->count_width + 1 +
	       text->bytes_width + 1 + (unsigned)strlen(" peak");
	text->bar_width = bar_width(text, used);
	write_head(text, "use over time");
	write_use_legend(text);
	out_printf(text->out, "//%*s %*s %*s %*s\n", (int)text->time_width + 2, "s",
		(int)text->bytes_width, "bytes", (int)text->count_width, "blocks",
		(int)text->bytes_width, "highest");
	for (size_t i = 0; i < over_time->span_count; i++) {
		const struct use_span *span = &over_time->spans[i];
		struct use use = use_sum(&over_time->window, span->end);

		write_marks(text, i + 1 < over_time->span_count ? span->end_ms : UINT64_MAX, &mark);
		write_time(text, span->end_ms);
		out_char(text->out, ' ');
		out_number(text->out, use.bytes, text->base, text->bytes_width);
		out_char(text->out, ' ');
		out_number(text->out, use.count, text->base, text->count_width);
		out_char(text->out, ' ');
		out_number(text->out, span->highest_bytes, text->base, text->bytes_width);
		if (span->highest_bytes)
			out_char(text->out, ' ');
		write_use_bar(text, span, (double)most);
		if (most && i == over_time->peak)
			out_text(text->out, " peak");
		out_char(text->out, '\n');
	}
}

/* ---------------------------------------------------------------- sizes */

/* A row of the table of sizes. It covers the sizes from one power of two up to the next, which are
 * the classes [first, end). */
struct size_row {
	size_t first, end;
	struct use allocated, live;
};

/* Makes rows for 0, 1, 2 to 3, 4 to 7 bytes and so on. Omits empty rows at both ends. Returns the
 * number of rows. */
#define SIZE_ROWS 65

static size_t gather_rows(
	const struct use_sizes *sizes, enum record_memory memory, struct size_row rows[SIZE_ROWS])
{
	size_t count = 0;

	for (size_t first = 0, end; first < USE_CLASSES; first = end) {
		struct size_row row = {.first = first};

		end = first < 2 ? first + 1 : first < 4 ? 4 : first + 4;
		row.end = end;
		for (size_t i = first; i < end; i++) {
			const struct use *allocated = &sizes->allocated[memory][i];
			const struct use *live = &sizes->live[memory][i];

			row.allocated.bytes += allocated->bytes;
			row.allocated.count += allocated->count;
			row.live.bytes += live->bytes;
			row.live.count += live->count;
		}
		if (row.allocated.count || row.live.count)
			rows[count++] = row;
	}
	return count;
}

static void write_sizes_of(
	struct text_chart *text, const struct size_row *rows, size_t count, const char *name)
{
	const unsigned base = text->base;
	unsigned size_width = width_of(use_class_bytes(rows[count - 1].end) - 1, 10, 4), used;
	struct use most = {0};

	for (size_t i = 0; i < count; i++) {
		const struct use *uses[] = {&rows[i].allocated, &rows[i].live};

		for (int k = 0; k < 2; k++) {
			most.bytes = uses[k]->bytes > most.bytes ? uses[k]->bytes : most.bytes;
			most.count = uses[k]->count > most.count ? uses[k]->count : most.count;
		}
	}
	text->count_width = width_of(most.count, base, 9);
	text->bytes_width = width_of(most.bytes, base, 5);
	used = 2 * (size_width + 1 + text->count_width + 1 + text->bytes_width + 1);
	text->bar_width = bar_width(text, used);
	out_printf(text->out, "//\n// %s\n//%*s %*s %*s %*s %*s %*s\n", name, (int)size_width - 2,
		"from", (int)size_width, "to", (int)text->count_width, "allocated",
		(int)text->bytes_width, "bytes", (int)text->count_width, "live",
		(int)text->bytes_width, "bytes");
	for (size_t i = 0; i < count; i++) {
		const struct size_row *row = &rows[i];
		const struct use *uses[] = {&row->allocated, &row->live};
		unsigned live = length_of(
			chart_log(row->live.count), chart_log(most.count), text->bar_width);
		unsigned all = length_of(
			chart_log(row->allocated.count), chart_log(most.count), text->bar_width);

		out_number(text->out, use_class_bytes(row->first), 10, size_width);
		out_char(text->out, ' ');
		out_number(text->out, use_class_bytes(row->end) - 1, 10, size_width);
		for (int k = 0; k < 2; k++) {
			out_char(text->out, ' ');
			out_number(text->out, uses[k]->count, base, text->count_width);
			out_char(text->out, ' ');
			out_number(text->out, uses[k]->bytes, base, text->bytes_width);
		}
		if (live || all)
			out_char(text->out, ' ');
		write_times(text->out, '#', live);
		write_times(text->out, '.', all > live ? all - live : 0);
		out_char(text->out, '\n');
	}
}

static void write_sizes(struct text_chart *text)
{
	struct size_row rows[SIZE_ROWS];
	bool is_none = true;

	write_head(text, "sizes of allocations");
	out_text(text->out, "//\n"
			    "// Each line is a range of sizes: what was allocated in that time, "
			    "and what is live at the\n"
			    "// end. Bars count blocks, and each step means twice as many: # live, "
			    ". allocated.\n");
	for (size_t i = 0; i < RECORD_MEMORIES; i++) {
		enum record_memory memory = chart_memories[i];
		size_t count = gather_rows(text->chart->sizes, memory, rows);

		if (count)
			write_sizes_of(text, rows, count, use_memory_name(memory));
		is_none &= !count;
	}
	if (is_none)
		out_text(text->out, "//\n// nothing was allocated\n");
}

void chart_text(struct out *out, const struct chart *chart)
{
	struct text_chart text = {.out = out, .chart = chart, .base = chart->style.hex ? 16 : 10};

	if (chart->over_time)
		write_over_time(&text);
	else
		write_sizes(&text);
}
