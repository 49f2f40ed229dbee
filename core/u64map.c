#include "core/u64map.h"

#include <stdlib.h>

#include "core/err.h"

#define CAP_FIRST 64

void u64map_init(struct u64map *map)
{
	*map = (struct u64map){.key = hash_key()};
}

void u64map_release(struct u64map *map)
{
	free(map->slots);
	u64map_init(map);
}

/* The slot that number is in, or the free one that it belongs into. */
static struct u64map_slot *slot_of(const struct u64map *map, uint64_t number)
{
	struct hasher hasher = hasher_begin(&map->key);
	size_t at;

	hasher_add(&hasher, number);
	at = hasher_end(&hasher) & (map->cap - 1);
	while (map->slots[at].is_used && map->slots[at].number != number)
		at = (at + 1) & (map->cap - 1);
	return &map->slots[at];
}

bool u64map_find(const struct u64map *map, uint64_t number, uint32_t *value)
{
	const struct u64map_slot *slot = map->cap ? slot_of(map, number) : NULL;

	if (!slot || !slot->is_used)
		return false;
	*value = slot->value;
	return true;
}

static int grow_to(struct u64map *map, size_t cap)
{
	struct u64map larger = {.key = map->key, .cap = cap};

	larger.slots = calloc(larger.cap, sizeof(*larger.slots));
	if (!larger.slots)
		return -ERR_NOMEM;
	for (size_t i = 0; i < map->cap; i++) {
		if (map->slots[i].is_used)
			*slot_of(&larger, map->slots[i].number) = map->slots[i];
	}
	free(map->slots);
	map->slots = larger.slots;
	map->cap = larger.cap;
	return 0;
}

static int map_grow(struct u64map *map, size_t count)
{
	size_t cap = map->cap ? map->cap : CAP_FIRST;

	/* A hash has 32 bits: past that, numbers would have to share places. */
	while (count > cap / 2) {
		if (cap > UINT32_MAX / 2)
			return -ERR_NOMEM;
		cap *= 2;
	}
	return cap > map->cap ? grow_to(map, cap) : 0;
}

int u64map_reserve(struct u64map *map, size_t more)
{
	return more > UINT32_MAX ? -ERR_NOMEM : map_grow(map, map->count + more);
}

int u64map_put(struct u64map *map, uint64_t number, uint32_t *value)
{
	struct u64map_slot *slot;

	if (map->count >= map->cap / 2 && map_grow(map, map->count + 1))
		return -ERR_NOMEM;
	slot = slot_of(map, number);
	if (slot->is_used) {
		*value = slot->value;
		return 0;
	}
	*slot = (struct u64map_slot){.number = number, .value = *value, .is_used = true};
	map->count++;
	return 1;
}
