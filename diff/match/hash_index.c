#include "diff/match/hash_index.h"

#include <stdlib.h>

#include "core/err.h"

#define FIRST_CAP 1024

void hash_index_init(struct hash_index *index)
{
	*index = (struct hash_index){.key = hash_key()};
}

void hash_index_release(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}

struct hash_probe hash_index_probe(const struct hash_index *index, uint32_t hash)
{
	return (struct hash_probe){hash, index->cap ? hash & (index->cap - 1) : 0};
}

uint32_t hash_index_next(const struct hash_index *index, struct hash_probe *probe)
{
	while (index->cap && index->slots[probe->at].number) {
		const struct hash_slot *slot = &index->slots[probe->at];

		probe->at = (probe->at + 1) & (index->cap - 1);
		if (slot->hash == probe->hash)
			return slot->number - 1;
	}
	return INDEX_NONE;
}

static void put(struct hash_slot *slots, size_t cap, struct hash_slot slot)
{
	size_t at = slot.hash & (cap - 1);

	while (slots[at].number)
		at = (at + 1) & (cap - 1);
	slots[at] = slot;
}

static int index_grow(struct hash_index *index)
{
	size_t cap = index->cap ? index->cap * 2 : FIRST_CAP;
	struct hash_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ERR_NOMEM;
	for (size_t i = 0; i < index->cap; i++) {
		if (index->slots[i].number)
			put(slots, cap, index->slots[i]);
	}
	free(index->slots);
	index->slots = slots;
	index->cap = cap;
	return 0;
}

int hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number)
{
	/* Never more than two thirds full, so that every search ends soon. */
	if (index->count >= index->cap / 3 * 2 && index_grow(index))
		return -ERR_NOMEM;
	put(index->slots, index->cap, (struct hash_slot){hash, number + 1});
	index->count++;
	return 0;
}
