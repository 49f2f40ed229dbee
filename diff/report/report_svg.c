/* Charts as stand-alone SVG pictures without scripts. When the pointer is on a part of a chart, its
 * figures are shown. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#define WIDTH 960
#define MARK_GAP 12 /* minimum distance between the labels of marks */
#define LABEL_MAX 48 /* in bytes */

struct svg {
	struct out *out;
	const struct chart *chart;
};

/* The rectangle in which values are drawn. */
struct plot {
	double left, top, width, height;
};

static const char style[] =
	"text{fill:#222}.paper{fill:#fff}.axis{stroke:#777}.grid{stroke:#ddd}\n"
	".heap{fill:#4a7ab5}.committed{fill:#e08a3c}.mapped{fill:#4a9d6f}.stack{fill:#a3649c}."
	"reserved{fill:#999}\n"
	".all{opacity:.4}.end{fill:none;stroke:#222}.mark{stroke:#b3367a;stroke-dasharray:4 3}\n"
	"text.label{fill:#b3367a}.peak{fill:none;stroke:#c22;stroke-width:2}\n"
	".note text{stroke:#fff;stroke-width:4;paint-order:stroke}\n"
	".pick{fill:#888;fill-opacity:0}.pick:hover{fill-opacity:.25}\n"
	"@media "
	"(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#181818}.grid{stroke:#3a3a3a}\n"
	".end{stroke:#fff}.mark{stroke:#e77db3}text.label{fill:#e77db3}.peak{stroke:#f66}\n"
	".note text{stroke:#181818}}\n";

/* ---------------------------------------------------------------- text and numbers */

/* Writes a coordinate. Writes 0 if the coordinate is outside the picture, which may happen for a
 * damaged file. */
static void write_coordinate(struct out *out, double value)
{
	uint64_t tenths = value > 0 && value < 10000 ? (uint64_t)(value * 10 + 0.5) : 0;

	out_number(out, tenths / 10, 10, 0);
	if (tenths % 10)
		out_printf(out, ".%u", (unsigned)(tenths % 10));
}

void svg_attribute(struct out *out, const char *name, double value)
{
	out_printf(out, " %s=\"", name);
	write_coordinate(out, value);
	out_char(out, '"');
}

static void write_line(
	struct out *out, const char *css_class, double x1, double y1, double x2, double y2)
{
	out_printf(out, "<line class=\"%s\"", css_class);
	svg_attribute(out, "x1", x1);
	svg_attribute(out, "y1", y1);
	svg_attribute(out, "x2", x2);
	svg_attribute(out, "y2", y2);
	out_text(out, "/>\n");
}

static void open_rect(
	struct out *out, const char *css_class, double x, double y, double width, double height)
{
	out_printf(out, "<rect class=\"%s\"", css_class);
	svg_attribute(out, "x", x);
	svg_attribute(out, "y", y);
	svg_attribute(out, "width", width);
	svg_attribute(out, "height", height);
}

/* `anchor` is "start", "middle" or "end". */
static void open_text(struct out *out, const char *anchor, double x, double y)
{
	out_text(out, "<text");
	svg_attribute(out, "x", x);
	svg_attribute(out, "y", y);
	out_printf(out, " text-anchor=\"%s\">", anchor);
}

/* Writes "1.5 MiB". */
static void write_bytes(struct out *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	char text[FRACTION_TEXT_BYTES];
	double value = (double)bytes;
	size_t unit = 0;

	for (uint64_t left = bytes; left >= 1024; left /= 1024, value /= 1024)
		unit++;
	out_printf(out, "%s %s", report_fraction(value, text), units[unit]);
}

/* Writes "1m30s" or "1.5s". */
static void write_moment(struct out *out, uint64_t ms)
{
	char text[FRACTION_TEXT_BYTES];

	if (ms % 1000 || ms > INT64_MAX)
		out_printf(out, "%ss", report_fraction((double)ms / 1000, text));
	else
		out_text(out, duration_text((int64_t)ms, text));
}

/* ---------------------------------------------------------------- common parts */

static void write_begin(struct svg *svg, const char *title, unsigned height)
{
	const struct dump_sums *sums = svg->chart->sums;
	struct out *out = svg->out;

	out_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" "
		"height=\"%u\" font-family=\"sans-serif\" font-size=\"12\">\n<title>%s</title>\n"
		"<style>\n%s</style>\n<rect class=\"paper\" width=\"%d\" height=\"%u\"/>\n",
		WIDTH, height, WIDTH, height, title, style, WIDTH, height);
	out_printf(out, "<text x=\"16\" y=\"24\" font-size=\"16\">%s: ", title);
	xml_text(svg->out, sums->id.image ? module_path_base(sums->id.image) : sums->id.path);
	if (sums->id.pid)
		out_printf(out, ", process %" PRIu32, sums->id.pid);
	out_text(out, "</text>\n<text x=\"16\" y=\"44\">");
	xml_text(svg->out, sums->id.path);
	out_text(out, ", ");
	umdh_seconds(out, sums->window.from_ms);
	out_text(out, " to ");
	umdh_seconds(out, sums->window.to_ms);
	if (svg->chart->is_filtered)
		out_text(out, ", only the selected stacks and heaps");
	if (sums->quality.is_incomplete || sums->quality.is_cut)
		out_text(out, ", INCOMPLETE");
	if (sums->quality.sample_bytes)
		out_printf(out, ", ESTIMATES: one in %" PRIu64 " bytes was recorded",
			sums->quality.sample_bytes);
	out_text(out, "</text>\n");
}

/* Writes an entry of the colour key at `x`. Returns the x coordinate after the entry. */
static double write_key(
	struct out *out, double x, double y, const char *css_class, const char *word)
{
	open_rect(out, css_class, x, y - 10, 12, 12);
	out_text(out, "/>\n");
	open_text(out, "start", x + 17, y);
	out_printf(out, "%s</text>\n", word);
	return x + 17 + 7 * (double)strlen(word) + 16;
}

static void write_axes(struct out *out, const struct plot *plot)
{
	double bottom = plot->top + plot->height;

	write_line(out, "axis", plot->left, bottom, plot->left + plot->width, bottom);
	write_line(out, "axis", plot->left, plot->top, plot->left, bottom);
}

/* Draws a horizontal line at a height from 0 to 1 and opens its label. The caller writes the
 * label's text. */
static void open_level(struct out *out, const struct plot *plot, double height)
{
	double y = plot->top + plot->height * (1 - height);

	write_line(out, "grid", plot->left, y, plot->left + plot->width, y);
	open_text(out, "end", plot->left - 6, y + 4);
}

/* ---------------------------------------------------------------- over time */

struct time_plot {
	struct plot plot;
	uint64_t from_ms, length_ms; /* at least 1 */
	uint64_t top_bytes; /* number of bytes at the upper edge */
};

static double x_of(const struct time_plot *time, uint64_t ms)
{
	return time->plot.left +
	       (double)(ms - time->from_ms) / (double)time->length_ms * time->plot.width;
}

static double y_of(const struct time_plot *time, uint64_t bytes)
{
	return time->plot.top + (1 - (double)bytes / (double)time->top_bytes) * time->plot.height;
}

static void write_scales(struct out *out, const struct time_plot *time, uint64_t step)
{
	const struct plot *plot = &time->plot;
	uint64_t tick_ms = use_step_ms(time->length_ms, 10),
		 to_ms = time->from_ms + time->length_ms;

	for (uint64_t bytes = 0; bytes <= time->top_bytes; bytes += step) {
		open_level(out, plot, (double)bytes / (double)time->top_bytes);
		write_bytes(out, bytes);
		out_text(out, "</text>\n");
	}
	for (uint64_t ms = time->from_ms;;) {
		double x = x_of(time, ms);

		if (ms % tick_ms == 0) {
			write_line(out, "axis", x, plot->top + plot->height, x,
				plot->top + plot->height + 5);
			open_text(out, "middle", x, plot->top + plot->height + 19);
			write_moment(out, ms);
			out_text(out, "</text>\n");
		}
		if (to_ms - ms < tick_ms - ms % tick_ms)
			break;
		ms += tick_ms - ms % tick_ms;
	}
	open_text(out, "middle", plot->left + plot->width / 2, plot->top + plot->height + 38);
	out_text(out, "time since the beginning of the recording</text>\n");
	write_axes(out, plot);
}

/* Draws the highest usage of each span. The types of memory are stacked as bands. */
static void write_bands(
	struct out *out, const struct time_plot *time, const struct use_over_time *over_time)
{
	size_t count = over_time->span_count;
	uint64_t *below = xcalloc(count, sizeof(*below));

	for (size_t k = 0; k < RECORD_MEMORIES; k++) {
		enum record_memory memory = chart_memories[k];

		if (!over_time->window.is_counted[memory] || !over_time->is_there[memory])
			continue;
		out_printf(out, "<path class=\"%s\" d=\"M", use_memory_name(memory));
		write_coordinate(out, x_of(time, over_time->spans[0].end_ms));
		out_char(out, ' ');
		write_coordinate(out, y_of(time, below[1]));
		for (size_t i = 1; i < count; i++) {
			out_char(out, 'V');
			write_coordinate(out,
				y_of(time, below[i] + over_time->spans[i].highest[memory].bytes));
			out_char(out, 'H');
			write_coordinate(out, x_of(time, over_time->spans[i].end_ms));
		}
		for (size_t i = count; --i;) {
			out_char(out, 'V');
			write_coordinate(out, y_of(time, below[i]));
			out_char(out, 'H');
			write_coordinate(out, x_of(time, over_time->spans[i - 1].end_ms));
			below[i] += over_time->spans[i].highest[memory].bytes;
		}
		out_text(out, "Z\"/>\n");
	}
	free(below);
}

/* Draws the usage at the end of each span. */
static void write_end_line(
	struct out *out, const struct time_plot *time, const struct use_over_time *over_time)
{
	out_text(out, "<path class=\"end\" d=\"");
	for (size_t i = 0; i < over_time->span_count; i++) {
		const struct use_span *span = &over_time->spans[i];

		out_char(out, i ? 'L' : 'M');
		write_coordinate(out, x_of(time, span->end_ms));
		out_char(out, ' ');
		write_coordinate(out, y_of(time, use_sum(&over_time->window, span->end).bytes));
	}
	out_text(out, "\"/>\n");
}

static void write_peak(struct out *out, const struct time_plot *time, const struct use_span *peak)
{
	double x = x_of(time, peak->highest_ms), y = y_of(time, peak->highest_bytes);
	bool is_left = x < time->plot.left + time->plot.width / 2;

	if (!peak->highest_bytes)
		return;
	out_text(out, "<circle class=\"peak\"");
	svg_attribute(out, "cx", x);
	svg_attribute(out, "cy", y);
	out_text(out, " r=\"4\"/>\n");
	out_text(out, "<g class=\"note\">\n");
	open_text(out, is_left ? "start" : "end", is_left ? x + 8 : x - 8, y - 5);
	out_text(out, "peak ");
	write_bytes(out, peak->highest_bytes);
	out_text(out, " at ");
	umdh_seconds(out, peak->highest_ms);
	out_text(out, "</text>\n</g>\n");
}

/* Draws a line for each mark, unless it is too close to the previous line. Adds the mark's label if
 * there is room. */
static void write_mark_lines(struct svg *svg, const struct time_plot *time)
{
	const struct plot *plot = &time->plot;
	const struct record_mark *mark;
	double last_line = -1, last_label = -MARK_GAP;
	char label[LABEL_MAX + 1];
	size_t at = 0;

	while ((mark = chart_mark(svg->chart, &at, UINT64_MAX))) {
		uint64_t ms = mark->time_ms < time->from_ms ? time->from_ms : mark->time_ms;
		double x;

		ms = ms - time->from_ms > time->length_ms ? time->from_ms + time->length_ms : ms;
		x = x_of(time, ms);
		if (x - last_line < 1)
			continue;
		last_line = x;
		write_line(svg->out, "mark", x, plot->top, x, plot->top + plot->height);
		if (x - last_label < MARK_GAP)
			continue;
		last_label = x;
		snprintf(label, sizeof(label), "%s", mark->label);
		out_text(svg->out,
			"<text class=\"label\" text-anchor=\"end\" transform=\"translate(");
		write_coordinate(svg->out, x + 11);
		out_char(svg->out, ' ');
		write_coordinate(svg->out, plot->top + 4);
		out_text(svg->out, ")rotate(-90)\">");
		xml_text(svg->out, label);
		out_text(svg->out, "</text>\n");
	}
}

/* Draws an invisible area for each span, which shows the span's figures when the pointer is on
 * it. */
static void write_figures(
	struct out *out, const struct time_plot *time, const struct use_over_time *over_time)
{
	for (size_t i = 1; i < over_time->span_count; i++) {
		const struct use_span *span = &over_time->spans[i];
		struct use use = use_sum(&over_time->window, span->end);
		double x = x_of(time, span[-1].end_ms);

		open_rect(out, "pick", x, time->plot.top, x_of(time, span->end_ms) - x,
			time->plot.height);
		out_text(out, "><title>");
		umdh_seconds(out, span->end_ms);
		out_printf(out, ": %" PRIu64 " byte%s in %" PRIu64 " block%s", use.bytes,
			text_plural(use.bytes), use.count, text_plural(use.count));
		for (size_t k = 0; k < RECORD_MEMORIES; k++) {
			if (over_time->is_there[chart_memories[k]])
				out_printf(out, ", %s %" PRIu64, use_memory_name(chart_memories[k]),
					span->end[chart_memories[k]].bytes);
		}
		out_printf(out, "; highest %" PRIu64 " at ", span->highest_bytes);
		umdh_seconds(out, span->highest_ms);
		out_text(out, "</title></rect>\n");
	}
}

static void write_over_time(struct svg *svg)
{
	const struct use_over_time *over_time = svg->chart->over_time;
	const struct use_span *peak = &over_time->spans[over_time->peak];
	struct time_plot time = {.plot = {.left = 90, .top = 90, .width = 840, .height = 320},
		.from_ms = over_time->window.from_ms,
		.length_ms = over_time->window.to_ms - over_time->window.from_ms};
	uint64_t step = 1;
	double x = 16;

	time.length_ms += !time.length_ms;
	while (peak->highest_bytes / step > 7)
		step *= 2;
	time.top_bytes = (peak->highest_bytes / step + 1) * step;
	write_begin(svg, "use of memory over time", 470);
	for (size_t k = 0; k < RECORD_MEMORIES; k++) {
		const char *name = use_memory_name(chart_memories[k]);

		if (over_time->is_there[chart_memories[k]] &&
			over_time->window.is_counted[chart_memories[k]])
			x = write_key(svg->out, x, 66, name, name);
	}
	open_text(svg->out, "start", x, 66);
	out_text(svg->out, "areas: the highest use in each span; line: use at its end</text>\n");
	write_scales(svg->out, &time, step);
	write_bands(svg->out, &time, over_time);
	write_end_line(svg->out, &time, over_time);
	write_mark_lines(svg, &time);
	write_peak(svg->out, &time, peak);
	write_figures(svg->out, &time, over_time);
	out_text(svg->out, "</svg>\n");
}

/* ---------------------------------------------------------------- sizes */

#define PANEL_HEIGHT 300
#define CLASSES_MIN 12 /* minimum number of classes shown; with fewer, bars would be too wide */

/* The range of classes to draw, from the first to the last class that is not empty. The range is
 * extended to start at a power of two. */
struct size_range {
	enum record_memory memory;
	size_t first, end;
};

static bool find_range(const struct use_sizes *sizes, struct size_range *range)
{
	bool is_any = false;

	for (size_t i = 0; i < USE_CLASSES; i++) {
		if (!sizes->allocated[range->memory][i].count &&
			!sizes->live[range->memory][i].count)
			continue;
		if (!is_any)
			range->first = i / 4 * 4;
		range->end = i + 1;
		is_any = true;
	}
	if (is_any && range->end - range->first < CLASSES_MIN)
		range->end = range->first + CLASSES_MIN;
	if (range->end > USE_CLASSES)
		range->end = USE_CLASSES;
	return is_any;
}

static uint64_t figure_of(const struct use *use, bool by_bytes)
{
	return by_bytes ? use->bytes : use->count;
}

/* Draws a scale with powers of ten for blocks, or powers of two for bytes. */
static void write_size_scale(struct out *out, const struct plot *plot, uint64_t most, bool by_bytes)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
	unsigned powers = 0, step = 1;

	for (uint64_t left = most; left /= by_bytes ? 2 : 10;)
		powers++;
	while (powers / step > 6)
		step++;
	for (unsigned power = 0; power <= powers; power += step) {
		uint64_t value = 1;

		for (unsigned i = 0; i < power; i++)
			value *= by_bytes ? 2 : 10;
		open_level(out, plot, chart_log(value) / chart_log(most));
		if (by_bytes)
			write_bytes(out, value);
		else
			out_printf(out, "%s%s", (const char *const[]){"1", "10", "100"}[power % 3],
				units[power / 3]);
		out_text(out, "</text>\n");
	}
}

static void write_class_bars(struct out *out, const struct use_sizes *sizes,
	const struct size_range *range, const struct plot *plot, uint64_t most, bool by_bytes)
{
	const double step = plot->width / (double)(range->end - range->first);
	char css_class[40];

	for (size_t i = range->first; i < range->end; i++) {
		const struct use *allocated = &sizes->allocated[range->memory][i];
		const struct use *live = &sizes->live[range->memory][i];
		const struct use *uses[] = {allocated, live};
		double x = plot->left + (double)(i - range->first) * step;

		if (!allocated->count && !live->count)
			continue;
		for (int k = 0; k < 2; k++) {
			double height = chart_log(figure_of(uses[k], by_bytes)) / chart_log(most) *
					plot->height;

			snprintf(css_class, sizeof(css_class), "%s%s",
				use_memory_name(range->memory), k ? "" : " all");
			open_rect(out, css_class, x + step * 0.1, plot->top + plot->height - height,
				step * 0.8, height);
			out_text(out, "/>\n");
		}
		open_rect(out, "pick", x, plot->top, step, plot->height);
		out_printf(out,
			"><title>%" PRIu64 " to %" PRIu64 " bytes: allocated %" PRIu64
			" blocks of %" PRIu64 " bytes, live %" PRIu64 " of %" PRIu64
			"</title></rect>\n",
			use_class_bytes(i), use_class_bytes(i + 1) - 1, allocated->count,
			allocated->bytes, live->count, live->bytes);
	}
}

/* Draws the blocks (or bytes) of one memory. */
static void write_panel(struct out *out, const struct use_sizes *sizes,
	const struct size_range *range, const struct plot *plot, bool by_bytes)
{
	const double step = plot->width / (double)(range->end - range->first);
	double bottom = plot->top + plot->height;
	size_t octaves = 1;
	uint64_t most = 1;

	for (size_t i = range->first; i < range->end; i++) {
		uint64_t all = figure_of(&sizes->allocated[range->memory][i], by_bytes);
		uint64_t live = figure_of(&sizes->live[range->memory][i], by_bytes);

		most = all > most ? all : most;
		most = live > most ? live : most;
	}
	write_size_scale(out, plot, most, by_bytes);
	while ((range->end - range->first) / (4 * octaves) > 6)
		octaves++;
	for (size_t i = range->first; i < range->end; i += 4 * octaves) {
		size_t first = i ? i : 1; /* a logarithmic scale has no 0 */
		double x = plot->left + (double)(first - range->first) * step;

		write_line(out, "axis", x, bottom, x, bottom + 5);
		open_text(out, "middle", x, bottom + 19);
		write_bytes(out, use_class_bytes(first));
		out_text(out, "</text>\n");
	}
	write_class_bars(out, sizes, range, plot, most, by_bytes);
	write_axes(out, plot);
	open_text(out, "start", plot->left, plot->top - 8);
	out_printf(out, "%s: %s, by the size of an allocation</text>\n",
		use_memory_name(range->memory), by_bytes ? "bytes" : "blocks");
}

static void write_sizes(struct svg *svg)
{
	const struct use_sizes *sizes = svg->chart->sizes;
	struct size_range ranges[RECORD_MEMORIES];
	unsigned count = 0;

	for (size_t k = 0; k < RECORD_MEMORIES; k++) {
		ranges[count] = (struct size_range){.memory = chart_memories[k]};
		count += find_range(sizes, &ranges[count]);
	}
	write_begin(svg, "sizes of allocations", 80 + PANEL_HEIGHT * count);
	open_text(svg->out, "start", 16, 66);
	out_text(svg->out,
		count ? "pale: allocated in that time; full: live at its end; both scales "
			"are logarithmic" :
			"nothing was allocated");
	out_text(svg->out, "</text>\n");
	for (unsigned i = 0; i < count; i++) {
		double top = 110 + PANEL_HEIGHT * (double)i;

		write_panel(svg->out, sizes, &ranges[i], &(struct plot){70, top, 390, 210}, false);
		write_panel(svg->out, sizes, &ranges[i], &(struct plot){550, top, 390, 210}, true);
	}
	out_text(svg->out, "</svg>\n");
}

void chart_svg(struct out *out, const struct chart *chart)
{
	struct svg svg = {.out = out, .chart = chart};

	if (chart->over_time)
		write_over_time(&svg);
	else
		write_sizes(&svg);
}
