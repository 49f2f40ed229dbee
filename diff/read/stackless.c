/* Groups of blocks without a stack: labels instead of frames, and the sizes that have rows. */
#include "diff/read/stackless.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/stack_store.h"

#define RANGE_BIT ((uint64_t)1 << 55) /* the label is for the sizes up to the next power of two */
#define VALUE_BITS (((uint64_t)1 << 55) - 1)

#define BLOCKS_MIN 4 /* a size of fewer blocks has no row of its own */

static uint64_t label(unsigned kind, uint64_t value)
{
	return (uint64_t)kind << 56 | value;
}

uint32_t stackless_frames(const struct stackless_group *group, uint64_t frames[2])
{
	frames[0] = label(STACKLESS_LABEL_SIZE, group->bytes | (group->is_range ? RANGE_BIT : 0));
	switch (group->kind) {
	case STACKLESS_ANY: return 1;
	case STACKLESS_ADDRESS: frames[1] = group->word + 1; break;
	case STACKLESS_TEXT: frames[1] = label(STACKLESS_LABEL_TEXT, group->word); break;
	case STACKLESS_WIDE: frames[1] = label(STACKLESS_LABEL_WIDE, group->word); break;
	}
	return 2;
}

bool stackless_is_range(uint64_t frame)
{
	return frame >> 56 == STACKLESS_LABEL_SIZE && frame & RANGE_BIT;
}

bool stackless_size(const struct stack *stack, uint64_t *bytes)
{
	if (!stackless_is(stack) || stackless_is_range(stack_frame(stack, 0)))
		return false;
	*bytes = stack_frame(stack, 0) & VALUE_BITS;
	return true;
}

void stackless_name(uint64_t frame, char name[STACKLESS_NAME_BYTES])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	uint64_t value = frame & VALUE_BITS;
	char text[STACKLESS_TEXT_MAX + 1];
	size_t unit = 0;

	if (frame >> 56 == STACKLESS_LABEL_SIZE) {
		for (; frame & RANGE_BIT && value >= 1024; value /= 1024)
			unit++;
		if (frame & RANGE_BIT)
			snprintf(name, STACKLESS_NAME_BYTES,
				"(no stack) %" PRIu64 "-%" PRIu64 " %s", value, 2 * value - !unit,
				units[unit]);
		else
			snprintf(name, STACKLESS_NAME_BYTES, "(no stack) %" PRIu64 " B", value);
		return;
	}
	stackless_text_get(value, text);
	snprintf(name, STACKLESS_NAME_BYTES, "%stext \"%s\"",
		frame >> 56 == STACKLESS_LABEL_WIDE ? "UTF-16 " : "", text);
}

/* Bytes of the groups of one size and without a word. */
struct size_bytes {
	uint64_t size;
	uint64_t now, least, most; /* in the current dump; in any dump */
	uint64_t now_blocks, most_blocks;
};

/* Sorts by the difference between dumps. The rest of the order makes the result definite. */
static int by_difference(const void *a, const void *b)
{
	const struct size_bytes *x = a, *y = b;
	const uint64_t left = x->most - x->least, right = y->most - y->least;

	if (left != right)
		return left > right ? -1 : 1;
	if (x->most != y->most)
		return x->most > y->most ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

struct counting {
	struct u64map numbers; /* size -> index in `items` */
	struct size_bytes *items;
	size_t count, cap;
};

static void count_dump(struct counting *counting, const struct dump_sums *dump)
{
	struct cell_walk walk = stack_totals_walk(dump);
	const struct stack_total *cell;

	while ((cell = stack_totals_next(&walk))) {
		const struct stack *stack =
			cell->stack == STACK_NONE ? NULL : sums_stack(dump, cell->stack);
		uint32_t at = (uint32_t)counting->count;
		uint64_t size;

		if (!stack || stack->frame_count != 1 || !stackless_size(stack, &size))
			continue;
		if (u64map_add(&counting->numbers, size, &at)) {
			array_grow((void **)&counting->items, &counting->cap, counting->count,
				sizeof(*counting->items));
			counting->items[counting->count++] = (struct size_bytes){.size = size};
		}
		counting->items[at].now += cell->sums.requested_bytes;
		counting->items[at].now_blocks += cell->sums.block_count;
	}
}

void stackless_sizes_choose(
	struct stackless_sizes *sizes, const struct dump_sums *dumps, size_t dump_count)
{
	struct counting counting = {0};

	*sizes = (struct stackless_sizes){0};
	for (size_t i = 0; i < dump_count; i++)
		sizes->has_groups |= dumps[i].has_stackless;
	if (!sizes->has_groups)
		return;
	u64map_init(&counting.numbers);
	for (size_t i = 0; i < dump_count; i++) {
		count_dump(&counting, &dumps[i]);
		for (size_t k = 0; k < counting.count; k++) {
			struct size_bytes *item = &counting.items[k];

			if (item->now > item->most)
				item->most = item->now;
			if (item->now < item->least || (!i && dump_count > 1))
				item->least = item->now;
			if (item->now_blocks > item->most_blocks)
				item->most_blocks = item->now_blocks;
			item->now = item->now_blocks = 0;
		}
	}
	u64map_release(&counting.numbers);
	if (counting.count)
		qsort(counting.items, counting.count, sizeof(*counting.items), by_difference);
	for (size_t i = 0; i < counting.count && sizes->count < STACKLESS_SIZES; i++) {
		if (counting.items[i].most_blocks >= BLOCKS_MIN)
			sizes->exact[sizes->count++] = counting.items[i].size;
	}
	free(counting.items);
}

uint64_t stackless_label(const struct stackless_sizes *sizes, uint64_t frame)
{
	const uint64_t size = frame & VALUE_BITS;

	if (frame & RANGE_BIT || !size)
		return frame;
	for (size_t i = 0; i < sizes->count; i++) {
		if (sizes->exact[i] == size)
			return frame;
	}
	return label(STACKLESS_LABEL_SIZE, stackless_power(size) | RANGE_BIT);
}
