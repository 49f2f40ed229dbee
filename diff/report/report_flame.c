/* A flame graph as a stand-alone SVG picture without scripts. When the pointer is on a box, the box
 * shows its figures. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/report/clean.h"
#include "diff/report/graph.h"
#include "diff/report/numbers.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"

#define WIDTH 1200
#define MARGIN 10
#define TOP 80
#define BOX_HEIGHT 17
#define LEVELS_MAX 300
#define COLUMN 6.7 /* width of a character, with a margin because fonts differ */
#define SHADES 9

struct flame {
	struct out *out; /* NULL: boxes are only measured */
	struct graph graph;
	bool is_growth;
	/* For each line, the sums of all previous lines. The sums may wrap around; their
	 * differences are still correct. */
	struct flame_sums {
		uint64_t old, now, grown, shrunk;
	} * sums;
	double scale; /* units of width per byte */
	size_t levels; /* number of levels with a box that is wide enough to draw */
	size_t left_out; /* number of boxes too narrow to draw */
	bool is_cut; /* further levels exist */
};

static const char style[] =
	"text{fill:#222}.paper{fill:#fff}.b rect{stroke:#fff;stroke-width:.5}\n"
	".b text{fill:#111;font:11px monospace;pointer-events:none}.b:hover rect{stroke:#000}\n"
	".n{fill:#ddd}\n";
static const char dark_style[] =
	"@media (prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#181818}\n"
	".b rect{stroke:#181818}.b:hover rect{stroke:#fff}}\n";

/* ---------------------------------------------------------------- colours */

/* Writes style classes with SHADES colours, from pale (g0) to full (g8). */
static void write_shades(
	struct out *out, char css_class, const unsigned pale[3], const unsigned full[3])
{
	for (unsigned i = 0; i < SHADES; i++) {
		out_printf(out, ".%c%u{fill:#", css_class, i);
		for (unsigned k = 0; k < 3; k++)
			out_printf(out, "%02x",
				(pale[k] * (SHADES - 1 - i) + full[k] * i) / (SHADES - 1));
		out_text(out, "}");
	}
	out_char(out, '\n');
}

static void write_style(const struct flame *flame)
{
	struct out *out = flame->out;

	out_printf(out, "<style>\n%s", style);
	if (flame->is_growth) {
		write_shades(out, 'g', (const unsigned[]){0xfc, 0xe3, 0xdd},
			(const unsigned[]){0xf0, 0x50, 0x3c});
		write_shades(out, 's', (const unsigned[]){0xdf, 0xea, 0xf8},
			(const unsigned[]){0x4a, 0x8e, 0xdc});
	} else {
		write_shades(out, 'h', (const unsigned[]){0xfa, 0xd8, 0x7a},
			(const unsigned[]){0xf0, 0x94, 0x50});
	}
	out_printf(out, "%s</style>\n", dark_style);
}

/* Writes a box's style class. In a graph of growth, the shade depends on the square root of the
 * box's share, so that small shares are visible. In any other graph, the shade depends on the name,
 * so that neighbours look different. */
static void write_class(
	const struct flame *flame, const char *name, const struct flame_sums *sums, double share)
{
	uint32_t hash = 2166136261; /* FNV-1a; must be reproducible */
	unsigned shade = 0;

	if (flame->is_growth && sums->grown == sums->shrunk) {
		out_char(flame->out, 'n');
		return;
	}
	for (double next = 0.5; flame->is_growth && shade < SHADES - 1 &&
				share > next * next / (SHADES - 1) / (SHADES - 1);
		next++)
		shade++;
	if (flame->is_growth) {
		out_printf(flame->out, "%c%u", sums->grown > sums->shrunk ? 'g' : 's', shade);
		return;
	}
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619;
	out_printf(flame->out, "h%u", (unsigned)(hash >> 8) % SHADES);
}

/* ---------------------------------------------------------------- boxes */

/* Writes as much of a name as fits. If the whole name is too long, first leaves out the module. */
static void write_name(struct out *out, const char *name, size_t columns)
{
	const char *function = strchr(name, '!');
	struct buf text;
	size_t used = 0;

	if (function && function[1] && strlen(name) > columns)
		name = function + 1;
	buf_init(&text);
	for (size_t len, wide; *name; name += len, used += wide) {
		uint32_t code = 0;

		len = text_utf8(name, &code);
		len = len ? len : 1;
		wide = code < 0x1100 ? 1 : 2;
		if (used + wide + (name[len] != '\0') > columns) {
			buf_add_text(&text, "\xe2\x80\xa6");
			break;
		}
		buf_add(&text, name, len);
	}
	xml_text(out, text.data);
	buf_release(&text);
}

static struct flame_sums sums_of(const struct flame *flame, size_t from, size_t end)
{
	const struct flame_sums *a = &flame->sums[from], *b = &flame->sums[end];

	return (struct flame_sums){
		b->old - a->old, b->now - a->now, b->grown - a->grown, b->shrunk - a->shrunk};
}

/* Returns the sum of all growth and all shrinking in bytes. The width of a box is proportional to
 * this sum. */
static double involved(const struct flame_sums *sums)
{
	return (double)sums->grown + (double)sums->shrunk;
}

static void write_figures(const struct flame *flame, const struct flame_sums *sums, double share)
{
	struct growth growth = growth_of(sums->now, sums->old);
	char text[FRACTION_TEXT_BYTES];

	if (flame->is_growth)
		out_printf(flame->out,
			"%c%" PRIu64 " bytes (%" PRIu64 " - %" PRIu64 "), grew %" PRIu64
			", shrank %" PRIu64,
			growth.sign, growth.amount, sums->now, sums->old, sums->grown,
			sums->shrunk);
	else
		out_printf(flame->out, "%" PRIu64 " byte%s", sums->now, text_plural(sums->now));
	out_printf(flame->out, ", %s %%", report_fraction(share * 100, text));
}

/* Draws the box of lines [from, end), or only measures it. */
static void write_box(struct flame *flame, const char *name, size_t from, size_t end, size_t level)
{
	const struct flame_sums sums = sums_of(flame, from, end), before = sums_of(flame, 0, from),
				all = sums_of(flame, 0, flame->graph.line_count);
	const double net = (double)growth_of(sums.grown, sums.shrunk).amount;
	const double x = MARGIN + involved(&before) * flame->scale,
		     width = involved(&sums) * flame->scale,
		     y = TOP + BOX_HEIGHT * (double)(flame->levels - 1 - level);
	struct out *out = flame->out;

	if (!out && width < 1)
		flame->left_out++;
	if (!out && width >= 1 && flame->levels <= level)
		flame->levels = level + 1;
	if (!out || width < 1)
		return;
	out_text(out, "<g class=\"b\"><title>");
	xml_text(out, name);
	out_text(out, ": ");
	write_figures(flame, &sums, involved(&sums) / involved(&all));
	out_text(out, "</title><rect class=\"");
	write_class(flame, name, &sums, net / involved(&all));
	out_char(out, '"');
	svg_attribute(out, "x", x);
	svg_attribute(out, "y", y);
	svg_attribute(out, "width", width);
	out_printf(out, " height=\"%d\"/>", BOX_HEIGHT);
	if (width >= 3 * COLUMN + 6) {
		out_text(out, "<text");
		svg_attribute(out, "x", x + 3);
		svg_attribute(out, "y", y + 12);
		out_char(out, '>');
		write_name(out, name, (size_t)((width - 6) / COLUMN));
		out_text(out, "</text>");
	}
	out_text(out, "</g>\n");
}

/* Draws the boxes that are above the box of lines [from, end), starting at `level`. Lines that end
 * below this level come first in the range, and are skipped. */
static void write_boxes(struct flame *flame, size_t from, size_t end, size_t level)
{
	const struct graph *graph = &flame->graph;
	size_t next;

	while (from < end && graph->lines[from].count < level)
		from++;
	for (; from < end; from = next) {
		uint32_t box = graph->lines[from].boxes[level - 1];

		next = from + 1;
		while (next < end && graph->lines[next].boxes[level - 1] == box)
			next++;
		if (level == LEVELS_MAX) {
			flame->is_cut = true;
			continue;
		}
		write_box(flame, graph->boxes[box].name, from, next, level);
		write_boxes(flame, from, next, level + 1);
	}
}

/* ---------------------------------------------------------------- the report */

static void write_key(struct out *out, unsigned x, const char *css_class, const char *word)
{
	out_printf(out,
		"<rect class=\"%s\" x=\"%u\" y=\"56\" width=\"12\" height=\"12\"/>\n"
		"<text x=\"%u\" y=\"66\">%s</text>\n",
		css_class, x, x + 17, word);
}

static void write_head(const struct flame *flame, const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *dump =
		comparison->dumps ? &comparison->dumps[comparison->dump_count - 1] : NULL;
	size_t height = TOP + BOX_HEIGHT * flame->levels + MARGIN;
	const char *title = flame->is_growth ? "growth" : "memory";
	struct out *out = flame->out;
	struct buf words;

	out_printf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" width=\"%d\" "
		"height=\"%zu\" font-family=\"sans-serif\" font-size=\"12\">\n<title>%s</title>\n",
		WIDTH, height, WIDTH, height, title);
	write_style(flame);
	out_printf(out, "<rect class=\"paper\" width=\"%d\" height=\"%zu\"/>\n", WIDTH, height);
	out_printf(out, "<text x=\"%d\" y=\"24\" font-size=\"16\">%s", MARGIN, title);
	if (dump && dump->id.image) {
		out_text(out, ": ");
		xml_text(out, module_path_base(dump->id.image));
	}
	if (dump && dump->id.pid)
		out_printf(out, ", process %" PRIu32, dump->id.pid);
	if (dump && flame->is_growth && comparison->dumps->id.pid &&
		comparison->dumps->id.pid != dump->id.pid)
		out_printf(out, " since process %" PRIu32, comparison->dumps->id.pid);
	out_printf(out, "</text>\n<text x=\"%d\" y=\"44\">", MARGIN);
	buf_init(&words);
	graph_inputs(view, &words);
	xml_text(out, words.data);
	buf_release(&words);
	out_text(out, "</text>\n");
}

static void write_legend(const struct flame *flame)
{
	struct out *out = flame->out;
	unsigned x = MARGIN;

	if (flame->is_growth) {
		write_key(out, x, "g8", "grew");
		write_key(out, x + 60, "s8", "shrank");
		x += 140;
	}
	out_printf(out, "<text x=\"%u\" y=\"66\">width: %s", x,
		flame->is_growth ? "bytes that grew or shrank" : "bytes");
	if (flame->left_out)
		out_printf(out, "; %zu box%s narrower than a pixel %s left out", flame->left_out,
			flame->left_out == 1 ? " that is" : "es that are",
			flame->left_out == 1 ? "is" : "are");
	if (flame->is_cut)
		out_printf(out, "; stacks are cut above %d boxes", LEVELS_MAX);
	if (!involved(&flame->sums[flame->graph.line_count]))
		out_text(out, flame->is_growth ? "; nothing grew or shrank" : "; there are none");
	out_text(out, "</text>\n");
}

static void add_up(struct flame *flame)
{
	const struct graph *graph = &flame->graph;

	flame->sums = xcalloc(graph->line_count + 1, sizeof(*flame->sums));
	for (size_t i = 0; i < graph->line_count; i++) {
		uint64_t old = graph->lines[i].change.old.requested_bytes,
			 now = graph->lines[i].change.now.requested_bytes;
		const struct flame_sums *sums = &flame->sums[i];

		flame->sums[i + 1] = (struct flame_sums){sums->old + old, sums->now + now,
			sums->grown + (now > old ? now - old : 0),
			sums->shrunk + (old > now ? old - now : 0)};
	}
}

void report_flame(struct out *out, const struct report *report)
{
	struct flame flame = {.is_growth = graph_is_growth(report->views)};
	double all;

	graph_make(&flame.graph, report->views, 0);
	add_up(&flame);
	all = involved(&flame.sums[flame.graph.line_count]);
	flame.scale = all > 0 ? (WIDTH - 2 * MARGIN) / all : 0;
	for (int pass = 0; pass < 2; pass++) {
		flame.out = pass ? out : NULL;
		if (pass) {
			write_head(&flame, report->views);
			write_legend(&flame);
		}
		if (all > 0) {
			write_box(&flame, flame.is_growth ? "all that changed" : "all", 0,
				flame.graph.line_count, 0);
			write_boxes(&flame, 0, flame.graph.line_count, 1);
		}
	}
	out_text(out, "</svg>\n");
	free(flame.sums);
	graph_release(&flame.graph);
}
