/* Threads in the report for people: which thread freed the blocks of another. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "diff/query/group.h"
#include "diff/report/clean.h"
#include "diff/report/numbers.h"
#include "diff/report/report_text.h"

#define CROSSINGS_MAX 10 /* lines of the table without -n */
#define FREERS_MAX 3 /* threads listed for a stack */

/* Blocks that one thread allocated and another freed. */
struct crossing {
	const char *from;
	struct thread_sum to;
};

static int by_sum(const void *a, const void *b)
{
	const struct crossing *x = a, *y = b;

	if (x->to.sum.requested_bytes != y->to.sum.requested_bytes)
		return x->to.sum.requested_bytes > y->to.sum.requested_bytes ? -1 : 1;
	if (x->to.sum.block_count != y->to.sum.block_count)
		return x->to.sum.block_count > y->to.sum.block_count ? -1 : 1;
	return x->to.id < y->to.id ? -1 : x->to.id > y->to.id;
}

static void add_group(
	struct crossing **all, size_t *count, size_t *cap, const struct view *view, size_t shown)
{
	const struct view_group_row *group = &view->groups[shown];
	const struct window_sums *sums = &view->window[shown + 1];

	for (size_t i = 0; i < sums->freer_count; i++) {
		if (sums->freers[i].id == group->heap)
			continue;
		array_grow((void **)all, cap, *count, sizeof(**all));
		(*all)[(*count)++] = (struct crossing){group->name, sums->freers[i]};
	}
}

void report_text_crossings(struct text_report *text)
{
	const struct view *view = text->view;
	size_t count = 0, cap = 0, shown;
	struct crossing *all = NULL;
	char bytes[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES];

	for (size_t i = 0; i < view->shown_count; i++)
		add_group(&all, &count, &cap, view, i);
	if (!count)
		return;
	qsort(all, count, sizeof(*all), by_sum);
	shown = text->whole->style.is_whole_table || count < CROSSINGS_MAX ? count : CROSSINGS_MAX;
	out_char(text->out, '\n');
	report_text_colour(text, "2");
	out_printf(text->out, "%*s%*s  freed by another thread than allocated\n", TEXT_BYTES,
		"freed", TEXT_BLOCKS, "blocks");
	report_text_colour(text, "0");
	for (size_t i = 0; i < shown; i++) {
		struct buf name;

		buf_init(&name);
		group_thread_name(view, all[i].to.id, &name);
		out_printf(text->out, "%*s%*s  ", TEXT_BYTES,
			report_size(all[i].to.sum.requested_bytes, bytes), TEXT_BLOCKS,
			report_count(all[i].to.sum.block_count, blocks));
		buf_clear(&text->word);
		clean_text(&text->word, all[i].from, true);
		buf_add_text(&text->word, " -> ");
		clean_text(&text->word, name.data, true);
		report_write_cut(
			text->out, text->word.data, text->columns - TEXT_BYTES - TEXT_BLOCKS - 2);
		out_char(text->out, '\n');
		buf_release(&name);
	}
	if (shown < count)
		out_printf(text->out, "%zu more: -n %zu\n", count - shown, count);
	free(all);
}

void report_text_freers(struct text_report *text, const struct window_sums *sums)
{
	char bytes[REPORT_SIZE_BYTES], blocks[REPORT_COUNT_BYTES];
	struct buf name;

	if (!sums->freer_count)
		return;
	out_text(text->out, "      freed by ");
	buf_init(&name);
	buf_clear(&text->word);
	for (size_t i = 0; i < sums->freer_count && i < FREERS_MAX; i++) {
		group_thread_name(text->view, sums->freers[i].id, &name);
		buf_add_text(&text->word, i ? "; " : "");
		clean_text(&text->word, name.data, true);
		buf_printf(&text->word, ": %s in %s",
			report_size(sums->freers[i].sum.requested_bytes, bytes),
			report_count(sums->freers[i].sum.block_count, blocks));
	}
	buf_release(&name);
	out_text(text->out, text->word.data);
	if (sums->freer_count > FREERS_MAX)
		out_printf(text->out, "; and %zu more", sums->freer_count - FREERS_MAX);
	out_char(text->out, '\n');
}
