/* The report for people: two lines about the inputs, the largest rows in one line each, their sums,
 * and the largest stacks. It fits in 80 columns and uses more if available. Other forms are for
 * programs. */
#include "diff/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/match/row_series.h"
#include "diff/read/read_use.h"
#include "diff/report/report_parts.h"

enum {
	TABLE_MAX = 10, /* maximum number of rows in the table, if stacks follow */
	SIZES_MAX = 8, /* maximum number of a stack's sizes that are listed singly */
	FIRST = 5, /* number of first rows whose share is stated */
	COLUMNS_MIN = 60,
	COLUMNS_MAX = 200,
	WIDE = 100, /* from this number of columns, lines contain more */
};

struct text_report {
	struct out *out;
	const struct report *whole;
	const struct view *view;
	const struct comparison *comparison;
	bool is_single; /* nothing is old: figures are sizes, not growth */
	unsigned columns;
	struct spark spark;
	struct buf word; /* scratch */
	struct frames frames;
};

static void write_colour(struct text_report *text, const char *code)
{
	if (text->whole->style.is_coloured)
		out_printf(text->out, "\033[%sm", code);
}

/* ---------------------------------------------------------------- numbers */

/* Writes "+12.3 MiB", right-justified, in the colour for growth or for shrinking. */
static void write_bytes(struct text_report *text, const struct change *change, unsigned width)
{
	struct growth growth = growth_of(change->new.requested_bytes, change->old.requested_bytes);
	char size[REPORT_SIZE_BYTES], word[REPORT_SIZE_BYTES + 1];

	snprintf(word, sizeof(word), "%s%s",
		text->is_single ? "" :
		growth.amount	? (growth.sign == '+' ? "+" : "-") :
				  "",
		report_size(growth.amount, size));
	if (growth.amount && !text->is_single)
		write_colour(text, growth.sign == '+' ? "31" : "36");
	out_printf(text->out, "%*s", (int)width, word);
	if (growth.amount && !text->is_single)
		write_colour(text, "0");
}

static void write_blocks(struct text_report *text, const struct change *change, unsigned width)
{
	struct growth growth = growth_of(change->new.block_count, change->old.block_count);
	char count[REPORT_COUNT_BYTES], word[REPORT_COUNT_BYTES + 1];

	snprintf(word, sizeof(word), "%s%s",
		text->is_single || !growth.amount ? "" :
		growth.sign == '+'		  ? "+" :
						    "-",
		report_count(growth.amount, count));
	out_printf(text->out, "%*s", (int)width, word);
}

/* Writes "+28.4 GiB/h (11.8 to 50.8)". All numbers have the unit of the rate or, if the rate is 0,
 * of its bounds. */
static void write_rate(
	struct text_report *text, const struct trend *trend, bool with_bounds, unsigned width)
{
	static const char units[] = "BKMGTPE";
	double rate = trend->bytes_per_hour, most = fabs(rate);
	char word[60], unit[5];
	unsigned power = 0;

	if (most < 1 && with_bounds)
		most = -trend->low_bytes_per_hour > trend->high_bytes_per_hour ?
			       -trend->low_bytes_per_hour :
			       trend->high_bytes_per_hour;
	for (; most >= 1023.95 && units[power + 1]; most /= 1024)
		power++;
	snprintf(unit, sizeof(unit), power ? "%ciB" : "%c", units[power]);
	snprintf(word, sizeof(word), "%s%s %s/h", rate >= 1 ? "+" : "",
		report_tenths(ldexp(rate, -10 * (int)power), (char[REPORT_SIZE_BYTES]){0}), unit);
	out_printf(text->out, "%*s", (int)width, word);
	if (!with_bounds)
		return;
	out_printf(text->out, " (%s to %s)",
		report_tenths(ldexp(trend->low_bytes_per_hour, -10 * (int)power),
			(char[REPORT_SIZE_BYTES]){0}),
		report_tenths(ldexp(trend->high_bytes_per_hour, -10 * (int)power),
			(char[REPORT_SIZE_BYTES]){0}));
}

/* Writes a trend: "leaks, +28.4 GiB/h (11.8 to 50.8)", and its spark line. */
static void write_trend(
	struct text_report *text, const struct trend *trend, const struct block_totals *totals)
{
	out_text(text->out, trend_verdict_name(trend->verdict));
	if (report_has_rates(text->comparison)) {
		out_text(text->out, ", ");
		write_rate(text, trend, true, 0);
	}
	if (text->spark.style != SPARK_NONE)
		out_text(text->out, "  ");
	spark_print(text->out, &text->spark, totals);
	out_char(text->out, '\n');
}

/* ---------------------------------------------------------------- names */

/* Appends "parse.cpp:41", or nothing if the place is unknown. */
static void add_place(struct buf *word, const struct frame *frame)
{
	if (!frame->file || !frame->line)
		return;
	clean_text(word, module_path_base(frame->file), true);
	buf_printf(word, ":%" PRIu32, frame->line);
}

/* Appends the function. Includes its module if `with_module` is set or the file is unknown. */
static void add_function(struct buf *word, const struct frame *frame, bool with_module)
{
	struct frame shown = *frame;

	if (frame->function && !with_module && frame->file)
		shown.module = NULL;
	clean_frame(word, &shown, true);
}

/* Appends the caller: "app+1A12 < open_file". Leaves out its module if the previous frame has the
 * same module. */
static void add_caller(struct text_report *text, unsigned columns)
{
	const char *module = text->frames.items[0].module;
	const struct frame *caller =
		strip_caller(text->whole->strip, text->whole->start_up, &text->frames);
	struct frame shown;
	size_t from;

	if (!caller)
		return;
	shown = *caller;
	if (module && caller->module && !strcmp(module, caller->module))
		shown.module = NULL;
	buf_add_text(&text->word, " < ");
	from = text->word.len;
	clean_frame(&text->word, &shown, true);
	report_shorten(&text->word, from, columns);
}

/* Writes the one-line label of a row: the first function that belongs to the program itself. */
static void write_name(struct text_report *text, uint32_t number, unsigned columns)
{
	const struct row *row = &text->comparison->rows[number];
	char space[ROW_WORDS_BYTES];
	unsigned used, left, place = 0;

	buf_clear(&text->word);
	naming_frames(&text->view->naming, number, &text->frames);
	strip_frames(text->whole->strip, &text->frames);
	if (!text->frames.count) {
		report_write_cut(text->out, report_row_words(row, space), columns);
		return;
	}
	add_place(&text->word, &text->frames.items[0]);
	if (text->word.len)
		place = text_columns(text->word.data);
	if (place + 2 > columns / 2)
		place = 0;
	buf_clear(&text->word);
	add_function(&text->word, &text->frames.items[0], false);
	left = place ? columns - place - 2 : columns;
	report_shorten(&text->word, 0, left);
	add_caller(text, left);
	used = report_write_cut(text->out, text->word.data, left);
	if (!place || used + place + 2 > columns)
		return;
	buf_clear(&text->word);
	add_place(&text->word, &text->frames.items[0]);
	write_colour(text, "2");
	out_printf(text->out, "  %s", text->word.data);
	write_colour(text, "0");
}

/* ---------------------------------------------------------------- head */

/* Writes "of app.exe, process 4242", if known. */
static void write_process(struct text_report *text, const struct dump_sums *sums)
{
	if (sums->image) {
		out_text(text->out, " of ");
		out_harmless(text->out, module_path_base(sums->image));
	}
	if (sums->pid)
		out_printf(text->out, "%s process %lu", sums->image ? "," : " of",
			(unsigned long)sums->pid);
}

static void add_file(struct buf *word, const char *before, const struct dump_sums *sums)
{
	char time[DATE_TEXT_BYTES];

	buf_add_text(word, before);
	clean_text(word, sums->path, true);
	/* "2026-11-24T03:43:15.021Z" without its fraction */
	if (*report_dump_time(sums, time))
		buf_printf(word, ", %.19s%s", time, strlen(time) > 19 ? "Z" : "");
}

static bool has_notes(const struct dump_sums *sums)
{
	return sums->fate != FATE_LIVE || sums->is_attached || sums->sample_bytes || sums->is_cut;
}

static void write_file(struct text_report *text, const char *before, const struct dump_sums *sums)
{
	buf_clear(&text->word);
	add_file(&text->word, before, sums);
	out_text(text->out, text->word.data);
	umdh_dump_notes(text->out, sums);
	out_char(text->out, '\n');
}

/* Writes both files, on one line if they fit. */
static void write_files(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;
	const struct dump_sums *first = comparison->dumps,
			       *last = first + comparison->dump_count - 1;

	if (comparison->is_sum)
		return;
	if (text->is_single) {
		write_file(text, "in ", last);
		return;
	}
	buf_clear(&text->word);
	add_file(&text->word, "from ", first);
	add_file(&text->word, " to ", last);
	if (!has_notes(first) && !has_notes(last) &&
		text_columns(text->word.data) <= text->columns) {
		out_printf(text->out, "%s\n", text->word.data);
		return;
	}
	write_file(text, "from ", first);
	write_file(text, "to   ", last);
}

static void write_span(
	struct text_report *text, const struct dump_sums *first, const struct dump_sums *last)
{
	char span[DURATION_TEXT_BYTES];

	if (first->time_ms && last->time_ms > first->time_ms)
		out_printf(text->out, "%s in %s", text->comparison->axis ? "" : ",",
			duration_text(last->time_ms - first->time_ms, span));
	out_char(text->out, '\n');
}

static void write_title(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;
	const struct dump_sums *first = comparison->dumps,
			       *last = first + comparison->dump_count - 1;

	if (comparison->axis) {
		out_text(text->out, "Trend");
		if (comparison->image) {
			out_text(text->out, " of ");
			out_harmless(text->out, comparison->image);
		} else {
			write_process(text, first);
		}
		out_printf(text->out, ": %zu snapshot%s", comparison->dump_count,
			text_plural(comparison->dump_count));
	} else if (comparison->is_sum) {
		out_printf(text->out, "What %zu dumps have together", comparison->dump_count);
	} else {
		out_text(text->out, text->is_single ? "Memory" : "Growth");
		write_process(text, last);
	}
	write_span(text, first, last);
}

static void write_warnings(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;

	if (comparison->dumps)
		umdh_series_warnings(text->out, "", comparison);
	umdh_warnings(text->out, "", comparison->read_from ? comparison->read_from : "",
		comparison->warnings, comparison->warning_count);
}

static void write_head(struct text_report *text)
{
	const struct comparison *comparison = text->comparison;

	write_colour(text, "1");
	if (comparison->dumps) {
		write_title(text);
	} else {
		out_text(text->out, "Growth as ");
		out_harmless(text->out, comparison->read_from ? comparison->read_from : "-");
		out_text(text->out,
			comparison->is_cut ? " has it, which is cut short\n" : " has it\n");
	}
	write_colour(text, "0");
	if (comparison->dumps)
		write_files(text);
	write_warnings(text);
	if (comparison->axis) {
		out_text(text->out, text->view->is_filtered ? "selected: " : "in all: ");
		write_trend(text, &text->view->trend, text->view->series);
	}
	out_char(text->out, '\n');
}

/* ---------------------------------------------------------------- table */

/* Widths of "+1023.9 MiB", "+123,456", "100 %", "grew once", "+1023.9 MiB/h". */
enum { BYTES = 11, BLOCKS = 10, SIZES = 15, SHARE = 6, VERDICT = 10, RATE = 14, NUMBER = 4 };

/* Writes the share of a change among all changes in its direction. */
static void write_share(
	struct text_report *text, const struct report_ways *ways, const struct change *change)
{
	struct growth growth = growth_of(change->new.requested_bytes, change->old.requested_bytes);
	uint64_t whole = growth.sign == '+' ? ways->grown_bytes : ways->shrunk_bytes;
	unsigned share = report_percent(growth.amount, whole);

	if (!growth.amount || !whole)
		out_printf(text->out, "%*s", SHARE, "");
	else if (!share)
		out_printf(text->out, "%*s", SHARE, "<1 %");
	else
		out_printf(text->out, "%*u %%", SHARE - 2, share);
}

static void write_judged_headings(struct text_report *text)
{
	bool has_rates = report_has_rates(text->comparison);

	out_printf(text->out, "  %-*s%*s", VERDICT, "verdict", has_rates ? RATE : 0,
		has_rates ? "rate" : "");
}

static void write_headings(struct text_report *text, const char *name)
{
	write_colour(text, "2");
	out_printf(text->out, "%*s%*s%*s%*s", NUMBER, "", BYTES,
		text->is_single ? "bytes" : "growth", BLOCKS, "blocks", SHARE, "share");
	if (text->comparison->axis)
		write_judged_headings(text);
	out_printf(text->out, "  %s\n", name);
	write_colour(text, "0");
}

/* Writes the verdict and the rate. Returns the number of columns left. */
static unsigned write_judged(struct text_report *text, const struct trend *trend, unsigned left)
{
	out_text(text->out, "  ");
	buf_clear(&text->word);
	out_printf(text->out, "%-*s", VERDICT, trend_verdict_name(trend->verdict));
	if (!report_has_rates(text->comparison))
		return left - VERDICT - 2;
	write_rate(text, trend, false, RATE);
	return left - VERDICT - RATE - 2;
}

static void write_table_row(struct text_report *text, size_t shown, const struct report_ways *ways)
{
	uint32_t number = text->view->rows[shown];
	const struct row *row = &text->comparison->rows[number];
	struct change change = row_change(text->comparison, row);
	unsigned left = text->columns - NUMBER - BYTES - BLOCKS - SHARE - 2;

	out_printf(text->out, "%*zu ", NUMBER - 1, shown + 1);
	write_bytes(text, &change, BYTES);
	write_blocks(text, &change, BLOCKS);
	write_share(text, ways, &change);
	if (text->comparison->axis)
		left = write_judged(text, row_trend(text->comparison, row), left);
	out_text(text->out, "  ");
	write_name(text, number, left);
	out_char(text->out, '\n');
}

static void write_table(struct text_report *text, const struct report_ways *ways)
{
	size_t count = text->view->shown_count;

	if (!text->whole->style.is_whole_table && count > TABLE_MAX)
		count = TABLE_MAX;
	if (!count)
		return;
	write_headings(text, "function");
	for (size_t i = 0; i < count; i++)
		write_table_row(text, i, ways);
	out_char(text->out, '\n');
}

/* ---------------------------------------------------------------- totals */

static void write_sum(struct text_report *text, const struct change *change)
{
	write_bytes(text, change, 0);
	out_text(text->out, ", ");
	write_blocks(text, change, 0);
	out_text(
		text->out, growth_of(change->new.block_count, change->old.block_count).amount == 1 ?
				   " block" :
				   " blocks");
}

static void write_ways(struct text_report *text, const struct report_ways *ways)
{
	struct out *out = text->out;
	unsigned share = report_percent(ways->first_bytes, ways->grown_bytes);

	if (!text->view->row_count) {
		out_printf(out, "No stack%s changed",
			text->view->is_filtered ? " that was selected" : "");
	} else if (text->is_single) {
		out_printf(out, "%zu stack%s", ways->grown_count, text_plural(ways->grown_count));
	} else {
		out_printf(out, "%zu stack%s grew, %zu shrank", ways->grown_count,
			text_plural(ways->grown_count), ways->shrunk_count);
	}
	if (ways->grown_count > FIRST && ways->first_bytes)
		out_printf(out, "; the first %d are %u %%", FIRST, share);
	out_text(out, text->view->is_filtered ? "\nselected: " : "\nin all: ");
	write_sum(text, &text->view->selected);
	out_char(out, '\n');
}

/* Reports growth of stacks that end in an allocator. Also of stacks that end in a frame without a
 * name, if symbols would show that it is not an allocator. */
static void write_uncalled(struct text_report *text, const struct report_ways *ways)
{
	unsigned share = report_percent(text->view->uncalled_bytes, ways->grown_bytes);

	if (share)
		out_printf(text->out,
			"no caller recorded: %u %% of %s; these stacks end in an allocator, as\n"
			"those of code without frame pointers do: --sizes, or stacks by hsnap "
			"attach\n",
			share, text->is_single ? "the memory" : "the growth");
}

/* Writes the sums of blocks that are in no row, if such blocks exist. */
static void write_apart(struct text_report *text)
{
	const struct view *view = text->view;
	struct change left_out = report_left_out(view);

	if (view->suppressed_count) {
		out_printf(text->out, "suppressed: %zu stack%s, ", view->suppressed_count,
			text_plural(view->suppressed_count));
		write_sum(text, &view->suppressed);
		out_char(text->out, '\n');
	}
	if (view->is_filtered) {
		out_text(text->out, "left out: ");
		write_sum(text, &left_out);
		out_text(text->out, "; all: ");
		write_sum(text, &view->all);
		out_char(text->out, '\n');
	}
	if (text->comparison->hides_reserved) {
		out_text(text->out, "not counted: address space that is only reserved, ");
		write_bytes(text, &text->comparison->reserved, 0);
		out_text(text->out, " (--heap reserved)\n");
	}
}

/* ---------------------------------------------------------------- stacks */

static void write_window(struct text_report *text, const struct window_sums *sums)
{
	const struct block_totals *size = &sums->by_fate[FATE_AI],
				  *kept = &sums->by_fate[FATE_AIFO];
	char bytes[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES], number[FRACTION_TEXT_BYTES];
	struct out *out = text->out;

	out_printf(out, "      allocated %s in %s", report_size(size->requested_bytes, bytes),
		report_count(size->block_count, count));
	out_printf(out, ", kept %s in %s", report_size(kept->requested_bytes, bytes),
		report_count(kept->block_count, count));
	out_printf(out, "; at most %s at ", report_size(sums->peak_bytes, bytes));
	umdh_seconds(out, sums->peak_ms);
	out_char(out, '\n');
	if (!sums->by_fate[FATE_AIFI].block_count)
		return;
	out_printf(out, "      came and went: %s; lived %s ms on average, median %" PRIu64 "\n",
		report_count(sums->by_fate[FATE_AIFI].block_count, count),
		report_fraction(report_window_life(sums), number), sums->median_ms);
}

/* Writes a range of sizes: one size, or a power of two up to the next. */
static void write_size(
	struct text_report *text, const struct size_change *size, uint64_t last_bytes)
{
	const struct change blocks = {
		.old.block_count = size->old_count, .new.block_count = size->new_count};
	char first[REPORT_COUNT_BYTES], last[REPORT_COUNT_BYTES], count[REPORT_COUNT_BYTES];

	report_count(size->bytes, first);
	buf_clear(&text->word);
	if (last_bytes == size->bytes)
		buf_printf(&text->word, "%s", first);
	else
		buf_printf(&text->word, "%s-%s", first, report_count(last_bytes, last));
	out_printf(text->out, "      %*s", SIZES, text->word.data);
	write_blocks(text, &blocks, BLOCKS);
	if (!text->is_single)
		out_printf(text->out, "%*s", BLOCKS, report_count(size->new_count, count));
	out_char(text->out, '\n');
}

/* Writes the sizes of a row's blocks: singly if they are few, otherwise grouped by powers of
 * two. */
static void write_sizes(struct text_report *text, const struct row_blocks *blocks)
{
	out_printf(text->out, "      %*s%*s", SIZES, "size", BLOCKS,
		text->is_single ? "blocks" : "growth");
	if (!text->is_single)
		out_printf(text->out, "%*s", BLOCKS, "now");
	out_char(text->out, '\n');
	for (size_t i = 0; blocks->size_count <= SIZES_MAX && i < blocks->size_count; i++)
		write_size(text, &blocks->sizes[i], blocks->sizes[i].bytes);
	for (size_t i = 0; blocks->size_count > SIZES_MAX && i < blocks->size_count;) {
		size_t class = use_class(blocks->sizes[i].bytes, 0);
		struct size_change sum = {.bytes = use_class_first(class, 0)};

		for (; i < blocks->size_count && use_class(blocks->sizes[i].bytes, 0) == class;
			i++) {
			sum.old_count += blocks->sizes[i].old_count;
			sum.new_count += blocks->sizes[i].new_count;
		}
		write_size(text, &sum, use_class_first(class + 1, 0) - 1);
	}
}

static void write_age(struct text_report *text, const struct row_blocks *blocks)
{
	char size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	out_printf(text->out, "      were there before: %s in %s",
		report_size(blocks->kept.requested_bytes, size),
		report_count(blocks->kept.block_count, count));
	out_printf(text->out, "; came: %s in %s", report_size(blocks->came.requested_bytes, size),
		report_count(blocks->came.block_count, count));
	out_printf(text->out, "; went: %s in %s\n", report_size(blocks->gone.requested_bytes, size),
		report_count(blocks->gone.block_count, count));
}

/* Writes a word of a block: its value, its bytes as text, and the target if it is an address. */
static void write_word(struct text_report *text, const struct row_contents *row,
	const struct dump_content *content, const struct shown_word *word)
{
	struct out *out = text->out;
	char size[REPORT_COUNT_BYTES];

	out_printf(out, "        +%02" PRIX32 "  %0*" PRIX64 "  ", word->offset,
		(int)content->bits / 4, word->value);
	for (uint32_t i = 0; i < content->bits / 8; i++) {
		unsigned char byte = i < word->len ? content->bytes[word->offset + i] : ' ';

		out_char(out, byte >= ' ' && byte <= '~' ? (char)byte : '.');
	}
	if (word->to) {
		out_printf(out, "  block %" PRIX64 " of %s bytes", word->to->to,
			report_count(word->to->requested_bytes, size));
	} else if (view_word_frame(text->view, row->dump, word, &text->frames)) {
		buf_clear(&text->word);
		add_function(&text->word, &text->frames.items[0], true);
		out_printf(out, "  %s", text->word.data);
		if (text->frames.items[0].function && text->frames.items[0].offset_bytes)
			out_printf(out, "+%" PRIX64, text->frames.items[0].offset_bytes);
	}
	out_char(out, '\n');
}

/* Writes the contents of blocks, without trailing zeros. */
static void write_contents(struct text_report *text, const struct row_contents *row)
{
	char size[REPORT_COUNT_BYTES];

	for (size_t i = 0; i < row->count; i++) {
		const struct shown_content *shown = &row->items[i];
		size_t count = shown->word_count;

		while (count && !shown->words[count - 1].value)
			count--;
		out_printf(text->out, "      block %" PRIX64 " of %s bytes%s\n",
			shown->content->addr, report_count(shown->content->requested_bytes, size),
			count ? ":" : ": zeros");
		for (size_t k = 0; k < count; k++)
			write_word(text, row, shown->content, &shown->words[k]);
	}
}

static void write_frames(struct text_report *text)
{
	for (size_t i = 0; i < text->frames.count; i++) {
		const struct frame *frame = &text->frames.items[i];

		buf_clear(&text->word);
		add_function(&text->word, frame, true);
		report_shorten(&text->word, 0, text->columns - 6);
		out_printf(text->out, "      %s", text->word.data);
		buf_clear(&text->word);
		add_place(&text->word, frame);
		if (text->word.len) {
			write_colour(text, "2");
			out_printf(text->out, "  %s", text->word.data);
			write_colour(text, "0");
		}
		out_text(text->out, frame->is_inline ? " [inline]\n" : "\n");
	}
}

static void write_stack(struct text_report *text, size_t shown)
{
	uint32_t number = text->view->rows[shown];
	const struct row *row = &text->comparison->rows[number];
	struct change change = row_change(text->comparison, row), now = {.new = change.new};
	char space[ROW_WORDS_BYTES], size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	out_printf(text->out, "%*zu ", NUMBER - 1, shown + 1);
	write_sum(text, &change);
	if (!text->is_single)
		out_printf(text->out, "; now %s in %s", report_size(now.new.requested_bytes, size),
			report_count(now.new.block_count, count));
	if (row->heap && heap_name(row->heap))
		out_printf(text->out, "; %s", heap_name(row->heap));
	else if (row->heap)
		out_printf(text->out, "; heap %" PRIX64, row->heap);
	out_char(text->out, '\n');
	if (text->comparison->axis) {
		out_text(text->out, "      ");
		write_trend(text, row_trend(text->comparison, row), row->totals);
	}
	if (text->view->window)
		write_window(text, &text->view->window[shown + 1]);
	if (text->view->has_age)
		write_age(text, &text->view->blocks[shown]);
	if (text->view->has_sizes)
		write_sizes(text, &text->view->blocks[shown]);
	view_frames(text->view, number, &text->frames);
	strip_start_up(text->whole->start_up, &text->frames, text->view->is_inverted);
	if (row->kind == ROW_AMBIGUOUS)
		out_printf(text->out, "      (ambiguous: one of %zu stacks)\n",
			text->frames.part_count + 1);
	if (!text->frames.count)
		out_printf(text->out, "      %s\n", report_row_words(row, space));
	write_frames(text);
	if (text->view->contents)
		write_contents(text, &text->view->contents[shown]);
	out_char(text->out, '\n');
}

/* ---------------------------------------------------------------- groups */

static bool has_self(const struct view_group_row *group)
{
	return group->self_of || group->self.old.block_count || group->self.new.block_count ||
	       group->self.old.requested_bytes || group->self.new.requested_bytes;
}

/* Writes a group. In a trend, its figures are those that groups are sorted by: `self` or
 * `total`. */
static void write_group_row(struct text_report *text, const struct view_group_row *group)
{
	bool is_total = text->view->sort == SORT_TOTAL, is_trend = text->comparison->axis;
	unsigned left = text->columns - BYTES - BLOCKS - 2;

	write_bytes(text, is_trend && is_total ? &group->total : &group->self, BYTES);
	write_blocks(text, is_trend && is_total ? &group->total : &group->self, BLOCKS);
	if (!is_trend) {
		out_char(text->out, ' ');
		write_bytes(text, &group->total, BYTES);
		left -= BYTES + 1;
	} else {
		left = write_judged(
			text, is_total ? &group->total_trend : &group->self_trend, left);
	}
	if (is_trend && text->columns >= WIDE && text->spark.style != SPARK_NONE) {
		out_text(text->out, "  ");
		spark_print(text->out, &text->spark, is_total ? group->total_of : group->self_of);
		left -= (unsigned)text->spark.count + 2;
	}
	out_text(text->out, "  ");
	buf_clear(&text->word);
	clean_text(&text->word, group->name, true);
	report_shorten(&text->word, 0, left);
	report_write_cut(text->out, text->word.data, left);
	out_char(text->out, '\n');
}

static void write_group_headings(struct text_report *text)
{
	bool has_bars = text->columns >= WIDE && text->spark.style != SPARK_NONE;

	write_colour(text, "2");
	out_printf(text->out, "%*s%*s", BYTES,
		text->comparison->axis && text->view->sort == SORT_TOTAL ? "total" : "self", BLOCKS,
		"blocks");
	if (!text->comparison->axis)
		out_printf(text->out, " %*s", BYTES, "total");
	else
		write_judged_headings(text);
	if (text->comparison->axis && has_bars)
		out_printf(text->out, "  %*s", (int)text->spark.count, "");
	out_printf(text->out, "  %s\n", report_group_kind(text->view->group));
	write_colour(text, "0");
}

/* Writes the groups. If groups are sorted by total, includes functions that only call others. */
static void write_groups(struct text_report *text)
{
	const struct view *view = text->view;
	size_t count = 0, shown = 0;

	write_group_headings(text);
	for (size_t i = 0; i < view->group_count; i++) {
		if (view->sort != SORT_TOTAL && !has_self(&view->groups[i]))
			continue;
		if (++count > view->shown_count)
			continue;
		write_group_row(text, &view->groups[i]);
		shown++;
	}
	if (view->group == GROUP_MEMORY)
		out_printf(text->out, "\n%zu of %zu kind%s of memory", shown, view->group_count,
			text_plural(view->group_count));
	else
		out_printf(text->out, "\n%zu of %zu %s%s", shown, view->group_count,
			report_group_kind(view->group), text_plural(view->group_count));
	if (count < view->group_count)
		out_printf(text->out, "; %zu pass through alone (--sort total)",
			view->group_count - count);
	out_char(text->out, '\n');
}

/* ---------------------------------------------------------------- the report */

static void write_more(struct text_report *text)
{
	size_t of = text->view->group == GROUP_STACK ? text->view->row_count : 0;

	if (text->view->shown_count < of)
		out_printf(text->out, "%zu more: -n %zu. ", of - text->view->shown_count, of);
	else if (!text->view->row_count)
		return;
	out_printf(text->out, "%s. Browser: -o html. UMDH's form: -o umdh.\n",
		!text->whole->style.is_tree ? "Call tree: --tree" :
		text->view->is_inverted	    ? "Top down: without --invert" :
					      "Bottom up: --invert");
}

static void write_view(struct text_report *text)
{
	const struct view *view = text->view;
	struct report_ways ways;

	write_head(text);
	report_ways(view, FIRST, &ways);
	if (text->whole->style.is_tree) {
		report_tree(text->out, view, text->whole, text->columns);
	} else if (view->group != GROUP_STACK) {
		write_groups(text);
	} else {
		write_table(text, &ways);
	}
	write_ways(text, &ways);
	write_uncalled(text, &ways);
	write_apart(text);
	if (view->group == GROUP_STACK && !text->whole->style.is_tree &&
		!text->whole->style.no_stacks && view->shown_count) {
		out_char(text->out, '\n');
		for (size_t i = 0; i < view->shown_count && !text->out->err.code; i++)
			write_stack(text, i);
	}
	write_more(text);
}

void report_text(struct out *out, const struct report *report)
{
	struct text_report text = {.out = out, .whole = report, .columns = report->style.columns};

	if (!text.columns)
		text.columns = 80;
	text.columns = text.columns < COLUMNS_MIN ? COLUMNS_MIN : text.columns;
	text.columns = text.columns > COLUMNS_MAX ? COLUMNS_MAX : text.columns;
	frames_init(&text.frames);
	buf_init(&text.word);
	for (size_t i = 0; i < report->view_count && !out->err.code; i++) {
		if (i)
			out_text(out, "\n\n");
		text.view = &report->views[i];
		text.comparison = text.view->comparison;
		text.is_single = text.comparison->dumps && !text.comparison->axis &&
				 comparison_columns(text.comparison) < 2;
		if (text.comparison->axis)
			spark_make(&text.spark, text.comparison->axis, report->style.spark,
				text.columns < WIDE ? 12 : 24);
		write_view(&text);
	}
	frames_release(&text.frames);
	buf_release(&text.word);
}
