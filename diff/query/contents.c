/* Contents of a row's blocks, if the dump has them, and names of addresses in the contents. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/view.h"

/* Returns the index of the first content whose stack has this id or a greater one. */
static size_t find_contents(const struct dump_sums *sums, const char *id)
{
	size_t low = 0, high = sums->single.content_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(sums->single.contents[middle].stack, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct dump_pointer *pointer_at(
	const struct dump_sums *sums, const struct dump_content *content, uint32_t offset)
{
	const struct dump_pointer *pointers = &sums->single.pointers[content->pointer_at];

	for (size_t i = 0; i < content->pointer_count; i++) {
		if (pointers[i].offset == offset)
			return &pointers[i];
	}
	return NULL;
}

/* Splits a content into words. Names can be looked up only for return addresses, which follow a
 * call. Therefore, if a word is an address in a module, the address plus 1 is looked up. */
static void split_words(
	struct view *view, const struct dump_sums *sums, struct shown_content *shown)
{
	const struct dump_content *content = shown->content;
	const uint32_t step = content->bits / 8;

	shown->words = arena_alloc(&view->arena, (content->len / step + 1) * sizeof(*shown->words));
	for (uint32_t at = 0; at < content->len; at += step) {
		uint32_t len = content->len - at < step ? content->len - at : step;
		struct shown_word *word = &shown->words[shown->word_count++];

		*word = (struct shown_word){.offset = at,
			.len = len,
			.value = content_word(content->bytes + at, len, content->bits)};
		word->to = pointer_at(sums, content, at);
		if (len == step && !word->to && word->value + 1 &&
			module_at(sums->module_list.items, sums->module_list.count, word->value)) {
			word->return_addr = word->value + 1;
			word->is_in_module = true;
		}
	}
}

static struct stack stack_of(const struct shown_word *word)
{
	return (struct stack){.frames = (uint64_t *)&word->return_addr, .frame_count = 1};
}

/* Looks up all names of one dump at once. */
static void find_names(struct view *view, size_t dump)
{
	const struct dump_sums *sums = &view->comparison->dumps[dump];
	struct stack *stacks = NULL;
	size_t count = 0, cap = 0;

	for (size_t i = 0; i < view->shown_count; i++) {
		struct row_contents *row = &view->contents[i];

		for (size_t k = 0; row->dump == sums && k < row->count; k++) {
			for (size_t w = 0; w < row->items[k].word_count; w++) {
				if (!row->items[k].words[w].is_in_module)
					continue;
				array_grow((void **)&stacks, &cap, count, sizeof(*stacks));
				stacks[count++] = stack_of(&row->items[k].words[w]);
			}
		}
	}
	naming_find_stacks(&view->naming, dump, stacks, count);
	free(stacks);
}

#define CONTENTS_MAX 10 /* maximum number for a row that has blocks of many sizes */

/* Returns true if a row shows a content that has the id of the row's stack. All groups of blocks
 * without a stack have the same id. `count` is the number of contents that the row has so far. */
static bool is_of_row(const struct view *view, const struct row *row,
	const struct dump_content *content, size_t count)
{
	const struct stackless_sizes *sizes = &view->comparison->stackless_sizes;
	const struct stack group = {.id = STACKLESS_ID,
		.frames = content->frames,
		.frame_count = (uint16_t)content->frame_count};

	if (!stackless_is(row->stack))
		return true;
	if (content->frame_count != row->stack->frame_count ||
		(count >= CONTENTS_MAX &&
			stackless_is_range(stackless_frame(sizes, row->stack, 0))))
		return false;
	for (uint32_t i = 0; i < content->frame_count; i++) {
		if (stackless_frame(sizes, &group, i) != stackless_frame(sizes, row->stack, i))
			return false;
	}
	return true;
}

void view_contents(struct view *view)
{
	const struct comparison *comparison = view->comparison;
	bool has_some = false;

	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++)
		has_some |= comparison->dumps[i].single.content_count != 0;
	if (!has_some || view->group != GROUP_STACK)
		return;
	view->contents = xcalloc(view->shown_count + 1, sizeof(*view->contents));
	for (size_t i = 0; i < view->shown_count; i++) {
		const struct row *row = &comparison->rows[view->rows[i]];
		const struct dump_sums *dump = &comparison->dumps[row->dump];
		struct row_contents *to = &view->contents[i];
		size_t first, end;

		to->dump = dump;
		if (!row->stack || !row->stack->id)
			continue;
		first = end = find_contents(dump, row->stack->id);
		while (end < dump->single.content_count &&
			!strcmp(dump->single.contents[end].stack, row->stack->id))
			end++;
		to->items = arena_alloc(&view->arena, (end - first + 1) * sizeof(*to->items));
		for (; first < end; first++) {
			struct shown_content *shown;

			if (!is_of_row(view, row, &dump->single.contents[first], to->count))
				continue;
			shown = &to->items[to->count++];
			*shown = (struct shown_content){.content = &dump->single.contents[first]};
			split_words(view, dump, shown);
		}
	}
	for (size_t i = 0; i < comparison->dump_count; i++)
		find_names(view, i);
}

bool view_word_frame(const struct view *view, const struct dump_sums *dump,
	const struct shown_word *word, struct frames *frames)
{
	struct stack stack = stack_of(word);
	struct frame *frame;

	if (!word->is_in_module)
		return false;
	naming_stack_frames(&view->naming, dump, &stack, frames);
	if (!frames->count)
		return false;
	/* the function that contains the address; the others are inlined into it */
	frame = &frames->items[frames->count - 1];
	frame->addr = word->value;
	frame->offset_bytes -= frame->offset_bytes != 0;
	frame->file = NULL;
	frame->line = 0;
	frames->items[0] = *frame;
	frames->count = 1;
	return true;
}
