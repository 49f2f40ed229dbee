/* The table of heaps in the report for people. The first numbers are changes or, for a single dump,
 * sizes. The last two columns always describe NEW. */
#include "diff/report/report_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "diff/query/heap_view.h"
#include "diff/report/numbers.h"

enum { HEAP = 13, BLOCKS = 10, BYTES = 12, SHARE = 7 };

/* Writes "+12.3 MiB", or for a single dump "12.3 MiB". */
static void write_bytes(struct text_report *text, uint64_t now, uint64_t old)
{
	char size[REPORT_SIZE_BYTES], word[REPORT_SIZE_BYTES + 1];
	const char *sign = text->is_single || now == old ? "" : now > old ? "+" : "-";

	snprintf(word, sizeof(word), "%s%s", sign,
		report_size(now > old ? now - old : old - now, size));
	out_printf(text->out, "%*s", BYTES, word);
}

static void write_blocks(struct text_report *text, uint64_t now, uint64_t old)
{
	char count[REPORT_COUNT_BYTES], word[REPORT_COUNT_BYTES + 1];
	const char *sign = text->is_single || now == old ? "" : now > old ? "+" : "-";

	snprintf(word, sizeof(word), "%s%s", sign,
		report_count(now > old ? now - old : old - now, count));
	out_printf(text->out, "%*s", BLOCKS, word);
}

static void write_numbers(struct text_report *text, const struct heap_change *row)
{
	const struct heap_memory *old = &row->old, *now = &row->now;
	char size[REPORT_SIZE_BYTES];

	write_blocks(text, now->blocks.block_count, old->blocks.block_count);
	write_bytes(text, now->blocks.requested_bytes, old->blocks.requested_bytes);
	write_bytes(text, heap_free_bytes(now), heap_free_bytes(old));
	write_bytes(text, now->committed_bytes, old->committed_bytes);
	if (!text->is_single)
		out_printf(text->out, "%*s", BYTES, report_size(now->committed_bytes, size));
	out_printf(text->out, "%*u %%", SHARE - 2,
		report_percent(heap_free_bytes(now), now->committed_bytes));
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
}
