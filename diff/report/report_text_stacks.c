/* The largest stacks in the report for people: their sums, frames, sizes, ages and contents. */
#include "diff/report/report_text.h"

#include <inttypes.h>

#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/match/row_series.h"
#include "diff/read/read_use.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

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
	report_text_freers(text, sums);
	if (!sums->by_fate[FATE_AIFI].block_count)
		return;
	out_printf(out,
		"      allocated and freed: %s; lived %s ms on average, median %" PRIu64 "\n",
		report_count(sums->by_fate[FATE_AIFI].block_count, count),
		report_fraction(report_window_life(sums), number), sums->median_ms);
}

enum {
	SIZES_MAX = 8, /* maximum number of different sizes that are listed singly */
	SIZES = 15, /* width of a range of sizes */
};

/* Writes a range of sizes: a single size, or from one power of two to the next. */
static void write_size(
	struct text_report *text, const struct size_change *size, uint64_t last_bytes)
{
	const struct change blocks = {
		.old.block_count = size->old_count, .now.block_count = size->new_count};
	char first[REPORT_COUNT_BYTES], last[REPORT_COUNT_BYTES], count[REPORT_COUNT_BYTES];

	report_count(size->bytes, first);
	buf_clear(&text->word);
	if (last_bytes == size->bytes)
		buf_printf(&text->word, "%s", first);
	else
		buf_printf(&text->word, "%s-%s", first, report_count(last_bytes, last));
	out_printf(text->out, "      %*s", SIZES, text->word.data);
	report_text_blocks(text, &blocks, TEXT_BLOCKS);
	if (!text->is_single)
		out_printf(text->out, "%*s", TEXT_BLOCKS, report_count(size->new_count, count));
	out_char(text->out, '\n');
}

/* Writes the sizes of a row's blocks. If there are only a few sizes, lists each of them. Otherwise,
 * groups them by powers of two. */
static void write_sizes(struct text_report *text, const struct row_blocks *blocks)
{
	out_printf(text->out, "      %*s%*s", SIZES, "size", TEXT_BLOCKS,
		text->is_single ? "blocks" : "growth");
	if (!text->is_single)
		out_printf(text->out, "%*s", TEXT_BLOCKS, "now");
	out_char(text->out, '\n');
	for (size_t i = 0; blocks->size_count <= SIZES_MAX && i < blocks->size_count; i++)
		write_size(text, &blocks->sizes[i], blocks->sizes[i].bytes);
	for (size_t i = 0; blocks->size_count > SIZES_MAX && i < blocks->size_count;) {
		size_t size_class = use_class(blocks->sizes[i].bytes, 0);
		struct size_change sum = {.bytes = use_class_first(size_class, 0)};

		for (; i < blocks->size_count && use_class(blocks->sizes[i].bytes, 0) == size_class;
			i++) {
			sum.old_count += blocks->sizes[i].old_count;
			sum.new_count += blocks->sizes[i].new_count;
		}
		write_size(text, &sum, use_class_first(size_class + 1, 0) - 1);
	}
}

static void write_pinned(struct text_report *text, const struct row_pinned *row)
{
	char pinned[REPORT_SIZE_BYTES], size[REPORT_SIZE_BYTES];
	char blocks[REPORT_COUNT_BYTES], count[REPORT_COUNT_BYTES];

	out_printf(text->out, "      pins %s: %s in %s block%s",
		report_size(row->part_bytes, pinned),
		report_size(row->blocks.requested_bytes, size),
		report_count(row->blocks.block_count, blocks),
		text_plural(row->blocks.block_count));
	out_printf(text->out, ", in %s container%s\n", report_count(row->container_count, count),
		text_plural(row->container_count));
}

static void write_age(struct text_report *text, const struct row_blocks *blocks)
{
	char size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	out_printf(text->out, "      already there: %s in %s",
		report_size(blocks->kept.requested_bytes, size),
		report_count(blocks->kept.block_count, count));
	out_printf(text->out, "; new: %s in %s", report_size(blocks->came.requested_bytes, size),
		report_count(blocks->came.block_count, count));
	out_printf(text->out, "; freed: %s in %s\n",
		report_size(blocks->gone.requested_bytes, size),
		report_count(blocks->gone.block_count, count));
}

/* Writes a word of a block: the value, the bytes as text and, for an address, the target. */
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
		report_text_add_function(&text->word, &text->frames.items[0], true);
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
		report_text_add_function(&text->word, frame, true);
		report_shorten(&text->word, 0, text->columns - 6);
		out_printf(text->out, "      %s", text->word.data);
		buf_clear(&text->word);
		report_text_add_place(&text->word, frame);
		if (text->word.len) {
			report_text_colour(text, "2");
			out_printf(text->out, "  %s", text->word.data);
			report_text_colour(text, "0");
		}
		out_text(text->out, frame->is_inline ? " [inline]\n" : "\n");
	}
}

void report_text_stack(struct text_report *text, size_t shown)
{
	uint32_t number = text->view->rows[shown];
	const struct row *row = &text->comparison->rows[number];
	struct change change = row_change(text->comparison, row), now = {.now = change.now};
	char space[ROW_WORDS_BYTES], size[REPORT_SIZE_BYTES], count[REPORT_COUNT_BYTES];

	out_printf(text->out, "%*zu ", TEXT_NUMBER - 1, shown + 1);
	report_text_sum(text, &change);
	if (!text->is_single)
		out_printf(text->out, "; now %s in %s", report_size(now.now.requested_bytes, size),
			text->comparison->lacks_blocks ? "?" :
							 report_count(now.now.block_count, count));
	if (row->heap && heap_name(row->heap))
		out_printf(text->out, "; %s", heap_name(row->heap));
	else if (row->heap)
		out_printf(text->out, "; heap %" PRIX64, row->heap);
	out_char(text->out, '\n');
	if (text->comparison->axis) {
		out_text(text->out, "      ");
		report_text_trend(text, row_trend(text->comparison, row), row->totals);
	}
	if (text->view->window)
		write_window(text, &text->view->window[shown + 1]);
	if (text->view->pinned.rows)
		write_pinned(text, &text->view->pinned.rows[number]);
	if (text->view->has_age && row->kind != ROW_STACKLESS)
		write_age(text, &text->view->blocks[shown]);
	if (text->view->has_sizes)
		write_sizes(text, &text->view->blocks[shown]);
	view_frames(text->view, number, &text->frames);
	strip_start_up(text->whole->start_up, &text->frames, text->view->is_inverted);
	if (row->kind == ROW_AMBIGUOUS)
		out_printf(text->out, "      (ambiguous: one of %zu stacks)\n",
			text->frames.part_count + 1);
	if (row->id_stack_count > 1)
		out_printf(text->out, "      (%u different stacks have this id: one is shown)\n",
			row->id_stack_count);
	if (!text->frames.count)
		out_printf(text->out, "      %s\n", report_row_words(row, space));
	write_frames(text);
	if (text->view->contents)
		write_contents(text, &text->view->contents[shown]);
	out_char(text->out, '\n');
}
