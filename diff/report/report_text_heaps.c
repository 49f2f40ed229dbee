/* The table of heaps in the report for people. The first numbers are changes or, for a single dump,
 * sizes. The last two columns always describe NEW. */
#include "diff/report/report_text.h"

#include <inttypes.h>

#include "diff/query/heap_view.h"
#include "diff/report/numbers.h"
#include "diff/report/clean.h"

enum { HEAP = 13, BLOCKS = 10, BYTES = 12, SHARE = 7 };
/* Widths of columns in the second table. */
enum { RESERVED = 11, LARGEST = 14, SPLIT = 12, PART = 6 };

static void write_bytes(struct text_report *text, uint64_t now, uint64_t old)
{
	const struct change change = {.old.requested_bytes = old, .now.requested_bytes = now};

	report_text_bytes(text, &change, BYTES);
}

static void write_numbers(struct text_report *text, const struct heap_change *row)
{
	const struct heap_memory *old = &row->old, *now = &row->now;
	const struct change blocks = {.old = old->blocks, .now = now->blocks};
	char size[REPORT_SIZE_BYTES];

	report_text_blocks(text, &blocks, BLOCKS);
	report_text_bytes(text, &blocks, BYTES);
	write_bytes(text, heap_free_bytes(now), heap_free_bytes(old));
	write_bytes(text, now->committed_bytes, old->committed_bytes);
	if (!text->is_single)
		out_printf(text->out, "%*s", BYTES, report_size(now->committed_bytes, size));
	out_printf(text->out, "%*u %%", SHARE - 2,
		report_percent(heap_free_bytes(now), now->committed_bytes));
}

/* Writes a share of the heap's blocks, or a dash if the dump does not record it. */
static void write_share(struct text_report *text, const struct heap_memory *memory, uint64_t part,
	uint64_t whole, int width)
{
	if (memory->space.is_known)
		out_printf(text->out, "%*u %%", width - 2, report_percent(part, whole));
	else
		out_printf(text->out, "%*s", width, "-");
}

/* Writes how a heap uses its memory in NEW. */
static void write_space(struct text_report *text, const struct heap_memory *memory)
{
	const struct heap_space *space = &memory->space;
	const uint64_t blocks = memory->blocks.block_count, free = heap_free_bytes(memory);
	char size[REPORT_SIZE_BYTES];

	out_printf(text->out, "%*s", RESERVED, report_size(memory->reserved_bytes, size));
	out_printf(text->out, "%*s", LARGEST,
		space->is_known ? report_size(space->free_run_bytes, size) : "-");
	write_share(text, memory, free > space->free_run_bytes ? free - space->free_run_bytes : 0,
		free, SPLIT);
	write_share(text, memory, space->lfh.block_count, blocks, PART);
	write_share(text, memory, space->vs.block_count, blocks, PART);
}

/* Writes the first function of a stack that is not an allocator's. */
static void write_creator(struct text_report *text, const struct heap_change *row)
{
	const unsigned left = text->columns - HEAP - RESERVED - LARGEST - SPLIT - 2 * PART - 2;

	if (!row->creator.frame_count)
		return;
	naming_stack_frames(&text->view->naming, &text->comparison->dumps[row->creator_dump],
		&row->creator, &text->frames);
	strip_frames(text->whole->strip, &text->frames);
	buf_clear(&text->word);
	if (text->frames.count)
		report_text_add_function(&text->word, &text->frames.items[0], false);
	report_shorten(&text->word, 0, left);
	out_text(text->out, "  ");
	report_write_cut(text->out, text->word.data, left);
}

static void write_spaces(struct text_report *text)
{
	const struct heap_view *heaps = &text->view->heaps;

	report_text_colour(text, "2");
	out_printf(text->out, "\n%*s%*s%*s%*s%*s%*s  created by\n", HEAP, "heap", RESERVED,
		"reserved", LARGEST, "largest free", SPLIT, "fragmented", PART, "LFH", PART, "VS");
	report_text_colour(text, "0");
	for (size_t i = 0; i < heaps->count; i++) {
		if (!heaps->rows[i].is_now)
			continue;
		out_printf(text->out, "%*" PRIX64, HEAP, heaps->rows[i].addr);
		write_space(text, &heaps->rows[i].now);
		write_creator(text, &heaps->rows[i]);
		out_char(text->out, '\n');
	}
}

void report_text_heaps(struct text_report *text)
{
	const struct heap_view *heaps = &text->view->heaps;

	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s%*s%*s%*s", HEAP, "heap", BLOCKS, "blocks", BYTES, "live",
		BYTES, "free", BYTES, "committed");
	if (!text->is_single)
		out_printf(text->out, "%*s", BYTES, "now");
	out_printf(text->out, "%*s  kind\n", SHARE, "free");
	report_text_colour(text, "0");
	for (size_t i = 0; i < heaps->count; i++) {
		const struct heap_change *row = &heaps->rows[i];

		out_printf(text->out, "%*" PRIX64, HEAP, row->addr);
		write_numbers(text, row);
		out_text(text->out, "  ");
		out_harmless(text->out, row->kind);
		if (!text->is_single && row->is_old != row->is_now)
			out_text(text->out, row->is_now ? ", new" : ", destroyed");
		out_char(text->out, '\n');
	}
	out_printf(text->out, "%*s", HEAP, "all");
	write_numbers(text, &heaps->total);
	out_printf(text->out, "  %zu heap%s\n", heaps->count, heaps->count == 1 ? "" : "s");
	write_spaces(text);
}
