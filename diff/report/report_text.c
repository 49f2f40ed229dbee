/* The report for people: two lines about the inputs, a table of the largest rows, sums, and the
 * largest stacks. It fits in 80 columns and uses more if available. Other forms are for
 * programs. */
#include "diff/report/report_text.h"

#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

enum {
	TABLE_MAX = 10, /* maximum number of rows in the table, if stacks follow */
	FIRST = 5, /* number of rows in the phrase "the first 5 are 80 %" */
	COLUMNS_MIN = 60,
	COLUMNS_MAX = 200,
	WIDE = 100, /* minimum number of columns for longer lines */
	OVERHEAD_MIN = 1 << 20, /* minimum growth of overhead that gets a line, in bytes */
};

/* Appends the caller of the first frame, as in "app+1A12 < open_file". Omits the caller's module if
 * the first frame is in the same module. */
static void add_caller(struct text_report *text, unsigned columns)
{
	const char *module = frame_module(&text->frames.items[0]);
	const struct frame *caller =
		strip_caller(text->whole->strip, text->whole->start_up, &text->frames);
	struct frame shown;
	size_t from;

	if (!caller)
		return;
	shown = *caller;
	if (module && caller->module && !strcmp(module, frame_module(caller)))
		shown.module = NULL;
	buf_add_text(&text->word, " < ");
	from = text->word.len;
	clean_frame(&text->word, &shown, true);
	report_shorten(&text->word, from, columns);
}

/* For blocks without a stack: appends their first word, as in "(no stack) 64 B, app!session". */
static void add_first_word(struct text_report *text, unsigned columns)
{
	size_t from;

	if (text->frames.count < 2)
		return;
	buf_add_text(&text->word, ", ");
	from = text->word.len;
	clean_frame(&text->word, &text->frames.items[1], true);
	if (text->frames.items[1].module)
		report_shorten(&text->word, from, columns);
}

#define AMBIGUOUS "(ambiguous) "

/* Writes the one-line label of a row: the first function that belongs to the program itself. */
static void write_name(struct text_report *text, uint32_t number, unsigned columns)
{
	const struct row *row = &text->comparison->rows[number];
	char space[ROW_WORDS_BYTES];
	unsigned used, left, place = 0;

	if (row->kind == ROW_AMBIGUOUS && columns > sizeof(AMBIGUOUS)) {
		out_text(text->out, AMBIGUOUS);
		columns -= sizeof(AMBIGUOUS) - 1;
	}
	buf_clear(&text->word);
	naming_frames(&text->view->naming, number, &text->frames);
	strip_frames(text->whole->strip, &text->frames);
	if (!text->frames.count || row->id_stack_count > 1) {
		report_write_cut(text->out, report_row_words(row, space), columns);
		return;
	}
	report_text_add_place(&text->word, &text->frames.items[0]);
	if (text->word.len)
		place = text_columns(text->word.data);
	if (place + 2 > columns / 2)
		place = 0;
	buf_clear(&text->word);
	report_text_add_function(&text->word, &text->frames.items[0], false);
	left = place ? columns - place - 2 : columns;
	if (row->kind == ROW_STACKLESS) {
		add_first_word(text, left);
	} else {
		report_shorten(&text->word, 0, left);
		add_caller(text, left);
	}
	used = report_write_cut(text->out, text->word.data, left);
	if (!place || used + place + 2 > columns)
		return;
	buf_clear(&text->word);
	report_text_add_place(&text->word, &text->frames.items[0]);
	report_text_colour(text, "2");
	out_printf(text->out, "  %s", text->word.data);
	report_text_colour(text, "0");
}

/* Widths of "100 %", "grew once", "+1023.9 MiB/h". */
enum { SHARE = 6, VERDICT = 10, RATE = 14 };

/* Writes a growth as a share of all growth, or a decrease as a share of all decreases. */
static void write_share(
	struct text_report *text, const struct report_ways *ways, const struct change *change)
{
	struct growth growth = growth_of(change->now.requested_bytes, change->old.requested_bytes);
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

static void write_pinned_headings(struct text_report *text)
{
	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s%*s%*s%*s  function\n", TEXT_NUMBER, "", TEXT_BYTES, "pinned",
		TEXT_BYTES, "alone", TEXT_BYTES, "shared", TEXT_BLOCKS, "blocks");
	report_text_colour(text, "0");
}

static void write_pinned_row(struct text_report *text, size_t shown)
{
	const uint32_t number = text->view->rows[shown];
	const struct row_pinned *row = &text->view->pinned.rows[number];
	const uint64_t bytes[] = {row->part_bytes, row->alone_bytes, row->shared_bytes};
	char size[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES];

	out_printf(text->out, "%*zu ", TEXT_NUMBER - 1, shown + 1);
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		out_printf(text->out, "%*s", TEXT_BYTES, report_size(bytes[i], size));
	out_printf(text->out, "%*s  ", TEXT_BLOCKS, report_count(row->blocks.block_count, blocks));
	write_name(text, number, text->columns - TEXT_NUMBER - 3 * TEXT_BYTES - TEXT_BLOCKS - 2);
	out_char(text->out, '\n');
}

static void write_pinned_sum(struct text_report *text)
{
	const struct pinned_view *pinned = &text->view->pinned;
	char count[REPORT_COUNT_BYTES], committed[REPORT_SIZE_BYTES], used[REPORT_SIZE_BYTES];

	out_printf(text->out, "%s container%s: %s committed",
		report_count(pinned->container_count, count), text_plural(pinned->container_count),
		report_size(pinned->committed_bytes, committed));
	out_printf(text->out, ", %s used by %s block%s\n",
		report_size(pinned->blocks.requested_bytes + pinned->blocks.overhead_bytes, used),
		report_count(pinned->blocks.block_count, count),
		text_plural(pinned->blocks.block_count));
	if (pinned->stackless.blocks.block_count)
		out_printf(text->out, "without a stack: %s pinned by %s block%s\n",
			report_size(pinned->stackless.part_bytes, used),
			report_count(pinned->stackless.blocks.block_count, count),
			text_plural(pinned->stackless.blocks.block_count));
	if (pinned->left_count)
		out_printf(text->out, "not in the dump: %s smaller container%s\n",
			report_count(pinned->left_count, count), text_plural(pinned->left_count));
}

static void write_headings(struct text_report *text, const char *name)
{
	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s%*s%*s", TEXT_NUMBER, "", TEXT_BYTES,
		text->is_single ? "bytes" : "growth", TEXT_BLOCKS, "blocks", SHARE, "share");
	if (text->comparison->axis)
		write_judged_headings(text);
	out_printf(text->out, "  %s\n", name);
	report_text_colour(text, "0");
}

/* Writes the verdict and the rate. Returns the number of columns left. */
static unsigned write_judged(struct text_report *text, const struct trend *trend, unsigned left)
{
	out_text(text->out, "  ");
	buf_clear(&text->word);
	out_printf(text->out, "%-*s", VERDICT, trend_verdict_name(trend->verdict));
	if (!report_has_rates(text->comparison))
		return left - VERDICT - 2;
	report_text_rate(text, trend, false, RATE);
	return left - VERDICT - RATE - 2;
}

static void write_table_row(struct text_report *text, size_t shown, const struct report_ways *ways)
{
	uint32_t number = text->view->rows[shown];
	const struct row *row = &text->comparison->rows[number];
	struct change change = row_change(text->comparison, row);
	unsigned left = text->columns - TEXT_NUMBER - TEXT_BYTES - TEXT_BLOCKS - SHARE - 2;

	out_printf(text->out, "%*zu ", TEXT_NUMBER - 1, shown + 1);
	report_text_bytes(text, &change, TEXT_BYTES);
	report_text_blocks(text, &change, TEXT_BLOCKS);
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
	if (text->view->pinned.rows)
		write_pinned_headings(text);
	else
		write_headings(text, "function");
	for (size_t i = 0; i < count; i++) {
		if (text->view->pinned.rows)
			write_pinned_row(text, i);
		else
			write_table_row(text, i, ways);
	}
	out_char(text->out, '\n');
}

/* Writes a line about the growth of overhead. Writes nothing unless this growth exceeds the growth of
 * the blocks, and OVERHEAD_MIN if any stack changed. In a comparison, overhead of stacks without rows
 * is known only for all together. */
static void write_overhead(struct text_report *text)
{
	const struct view *view = text->view;
	const bool is_of_all = view->comparison->lacks_rows && view->comparison->has_overhead;
	const struct change *change = is_of_all ? &view->all : &view->selected;
	const uint64_t least = view->row_count ? OVERHEAD_MIN : 0;
	struct growth bytes = growth_of(change->now.requested_bytes, change->old.requested_bytes);
	struct change overhead = {.old.requested_bytes = change->old.overhead_bytes,
		.now.requested_bytes = change->now.overhead_bytes};

	if ((!is_of_all && !report_has_overhead(view)) ||
		growth_of(change->now.overhead_bytes, change->old.overhead_bytes).amount <=
			(bytes.amount > least ? bytes.amount : least))
		return;
	out_text(text->out, is_of_all ? "heap overhead of all: " : "heap overhead: ");
	report_text_bytes(text, &overhead, 0);
	out_text(text->out, ", more than the blocks themselves\n");
}

static bool shows_first(const struct view *view)
{
	return view->group != GROUP_STACK || view->shown_count >= FIRST;
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
	if (ways->grown_count > FIRST && ways->first_bytes && shows_first(text->view))
		out_printf(out, "; the first %d make up %u %%", FIRST, share);
	out_text(out, text->view->is_filtered ? "\nselected: " : "\nin all: ");
	report_text_sum(text, &text->view->selected);
	out_char(out, '\n');
	write_overhead(text);
}

/* Reports the growth of stacks without a known caller, see view_find_uncalled(). Each of their
 * frames belongs to an allocator, or has no name and may belong to one. */
static void write_uncalled(struct text_report *text, const struct report_ways *ways)
{
	unsigned share = report_percent(text->view->uncalled_bytes, ways->grown_bytes);

	if (share)
		out_printf(text->out,
			"no caller recorded for %u %% of %s: these stacks end in an allocator, as "
			"they do\n"
			"in code without frame pointers; try --sizes, or record stacks with hsnap "
			"attach\n",
			share, text->is_single ? "the memory" : "the growth");
}

/* Writes the sums of blocks that are in no row, if any. */
static void write_apart(struct text_report *text)
{
	const struct view *view = text->view;
	struct change left_out = report_left_out(view);

	if (view->suppressed_count) {
		out_printf(text->out, "suppressed: %zu stack%s, ", view->suppressed_count,
			text_plural(view->suppressed_count));
		report_text_sum(text, &view->suppressed);
		out_char(text->out, '\n');
	}
	if (view->is_filtered) {
		out_text(text->out, "left out: ");
		report_text_rest(text, &left_out);
		out_text(text->out, "; all: ");
		report_text_rest(text, &view->all);
		out_char(text->out, '\n');
	}
	if (text->comparison->hides_reserved) {
		out_text(text->out, "not counted: address space that is only reserved, ");
		report_text_bytes(text, &text->comparison->reserved, 0);
		out_text(text->out, " (--heap reserved)\n");
	}
	if (text->comparison->handles.old.block_count ||
		text->comparison->handles.now.block_count) {
		out_text(text->out, "not counted: handles, ");
		report_text_blocks(text, &text->comparison->handles, 0);
		out_text(text->out, " (--heap handles)\n");
	}
}

static bool has_self(const struct view_group_row *group)
{
	return group->self_of || group->self.old.block_count || group->self.now.block_count ||
	       group->self.old.requested_bytes || group->self.now.requested_bytes;
}

/* Writes a group. In a trend, writes only the figures by which groups are sorted, which are those
 * of `self` or `total`. */
static void write_group_row(struct text_report *text, const struct view_group_row *group)
{
	bool is_total = text->view->sort == SORT_TOTAL, is_trend = text->comparison->axis;
	unsigned left = text->columns - TEXT_BYTES - TEXT_BLOCKS - 2;

	report_text_bytes(text, is_trend && is_total ? &group->total : &group->self, TEXT_BYTES);
	report_text_blocks(text, is_trend && is_total ? &group->total : &group->self, TEXT_BLOCKS);
	if (!is_trend) {
		out_char(text->out, ' ');
		report_text_bytes(text, &group->total, TEXT_BYTES);
		left -= TEXT_BYTES + 1;
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

	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s", TEXT_BYTES,
		text->comparison->axis && text->view->sort == SORT_TOTAL ? "total" : "self",
		TEXT_BLOCKS, "blocks");
	if (!text->comparison->axis)
		out_printf(text->out, " %*s", TEXT_BYTES, "total");
	else
		write_judged_headings(text);
	if (text->comparison->axis && has_bars)
		out_printf(text->out, "  %*s", (int)text->spark.count, "");
	out_printf(text->out, "  %s\n", report_group_kind(text->view->group));
	report_text_colour(text, "0");
}

/* Writes the groups. Groups without `self` sums contain functions that only call others. They are
 * included only if groups are sorted by total. */
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
		out_printf(text->out, "; %zu %s only passed through (--sort total)",
			view->group_count - count, view->group_count - count == 1 ? "is" : "are");
	out_char(text->out, '\n');
	if (view->group == GROUP_THREAD && view->window)
		report_text_crossings(text);
}

static void write_more(struct text_report *text)
{
	size_t of = text->view->group == GROUP_STACK ? text->view->row_count : 0;

	if (text->view->shown_count < of)
		out_printf(text->out, "%zu more: -n %zu. ", of - text->view->shown_count, of);
	else if (!text->view->row_count || text->view->pinned.rows)
		return;
	if (text->view->pinned.rows) {
		out_char(text->out, '\n');
		return;
	}
	out_printf(text->out, "%s. Browser: -o html.%s\n",
		!text->whole->style.is_tree ? "Call tree: --tree" :
		text->view->is_inverted	    ? "Top down: without --invert" :
					      "Bottom up: --invert",
		text->comparison->lacks_blocks ? "" : " UMDH's form: -o umdh.");
}

static void write_view(struct text_report *text)
{
	const struct view *view = text->view;
	struct report_ways ways;

	report_text_head(text);
	if (text->whole->style.shows_heaps) {
		report_text_heaps(text);
		return;
	}
	report_ways(view, FIRST, &ways);
	if (text->whole->style.is_tree) {
		report_tree(text->out, view, text->whole, text->columns);
	} else if (view->group != GROUP_STACK) {
		write_groups(text);
	} else {
		write_table(text, &ways);
	}
	if (view->pinned.rows) {
		write_pinned_sum(text);
	} else {
		write_ways(text, &ways);
		write_uncalled(text, &ways);
		write_apart(text);
	}
	if (view->group == GROUP_STACK && !text->whole->style.is_tree &&
		!text->whole->style.no_stacks && view->shown_count) {
		out_char(text->out, '\n');
		for (size_t i = 0; i < view->shown_count && !text->out->err.code; i++)
			report_text_stack(text, i);
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
