/* Finds the addresses of the blocks that are live at a moment. Check-points contain only counts, so
 * all events from the beginning are read twice: first to find the freed allocations, then to list
 * the live ones. */
#include <stdlib.h>

#include "core/record/recording_read.h"

/* Bits for the allocations of a kind. A bit is set if its allocation was freed. */
struct freed_bits {
	uint64_t *words;
	size_t cap, count;
};

struct block_list {
	struct record_block *items;
	size_t count, cap;
};

/* Marks an allocation as freed. Returns false if the allocation was already freed. */
static bool set_freed(struct freed_bits *freed, uint64_t number)
{
	uint64_t bit = (uint64_t)1 << number % 64, *word = &freed->words[number / 64];

	if (*word & bit)
		return false;
	*word |= bit;
	return true;
}

static bool handle_event(struct freed_bits *kinds, const struct record_event *event)
{
	struct freed_bits *freed = &kinds[event->kind];

	if (event->type == RECORD_FREE)
		return set_freed(freed, event->number);
	if (event->number / 64 == freed->count) {
		array_grow((void **)&freed->words, &freed->cap, freed->count, sizeof(uint64_t));
		freed->words[freed->count++] = 0;
	}
	return true;
}

static void add_block(struct block_list *blocks, const struct record_event *event)
{
	array_grow((void **)&blocks->items, &blocks->cap, blocks->count, sizeof(*blocks->items));
	blocks->items[blocks->count++] = (struct record_block){event->addr, event->kind};
}

/* If `blocks` is NULL, marks the freed allocations in `kinds`. Otherwise adds the allocations that
 * were not freed to `blocks`. */
static int read_events(struct recording *recording, uint64_t position, struct freed_bits *kinds,
	struct block_list *blocks, struct err *err)
{
	const struct record_event *events;
	struct record_cursor *cursor;
	size_t count;
	int rc = record_cursor_open(&cursor, recording, 0, position, err);

	if (rc)
		return rc;
	while ((rc = record_next_events(cursor, &events, &count, err)) > 0) {
		for (size_t i = 0; i < count; i++) {
			uint64_t number = events[i].number;

			if (blocks) {
				if (events[i].type == RECORD_ALLOC &&
					!(kinds[events[i].kind].words[number / 64] >> number % 64 &
						1))
					add_block(blocks, &events[i]);
			} else if (!handle_event(kinds, &events[i])) {
				record_cursor_close(cursor);
				return recording_bad(recording, -ERR_BAD_RECORDING, 0,
					"a block is freed twice", err);
			}
		}
	}
	record_cursor_close(cursor);
	return rc;
}

int recording_blocks(struct recording *recording, uint64_t position, struct record_block **blocks,
	size_t *count, struct err *err)
{
	size_t kind_count = recording->facts.kind_count;
	struct freed_bits *kinds = xcalloc(kind_count, sizeof(*kinds));
	struct block_list list = {0};
	int rc = read_events(recording, position, kinds, NULL, err);

	if (!rc)
		rc = read_events(recording, position, kinds, &list, err);
	for (size_t i = 0; i < kind_count; i++)
		free(kinds[i].words);
	free(kinds);
	if (rc)
		free(list.items);
	*blocks = rc ? NULL : list.items;
	*count = rc ? 0 : list.count;
	return rc;
}
