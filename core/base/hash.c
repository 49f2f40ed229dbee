#include "core/base/hash.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_bytes(const void *key, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes(key, len))
#include <uthash.h>

#include "core/base/err.h"
#include "core/base/os.h"

struct hash_key hash_key(void)
{
	static char here; /* somewhere else in each process */
	static struct hash_key key;

	if (!key.words[1])
		key = (struct hash_key){{(uint64_t)os_time_ms() * UINT64_C(0x9e3779b97f4a7c15),
			((uint64_t)(uintptr_t)&here ^ (uint64_t)os_pid() << 40) | 1}};
	return key;
}

struct hasher hasher_begin(const struct hash_key *key)
{
	/* The four are part of SipHash. */
	return (struct hasher){key->words[0] ^ UINT64_C(0x736f6d6570736575),
		key->words[1] ^ UINT64_C(0x646f72616e646f6d),
		key->words[0] ^ UINT64_C(0x6c7967656e657261),
		key->words[1] ^ UINT64_C(0x7465646279746573)};
}

void hasher_add_bytes(struct hasher *hasher, const void *bytes, size_t len)
{
	const char *at = bytes;

	hasher_add(hasher, len);
	while (len) {
		size_t part = len < 8 ? len : 8;
		uint64_t word = 0;

		memcpy(&word, at, part);
		hasher_add(hasher, word);
		at += part;
		len -= part;
	}
}

uint32_t hasher_end(struct hasher *hasher)
{
	hasher->c ^= 0xff;
	hasher_mix(hasher);
	hasher_mix(hasher);
	hasher_mix(hasher);
	return (uint32_t)((hasher->a ^ hasher->b ^ hasher->c ^ hasher->d) >> 32);
}

struct table_entry {
	UT_hash_handle hh;
	uint64_t value;
};

static uint32_t hash_bytes(const void *key, size_t len)
{
	struct hash_key own = hash_key();
	struct hasher hasher = hasher_begin(&own);

	hasher_add_bytes(&hasher, key, len);
	return hasher_end(&hasher);
}

void table_init(struct table *table)
{
	*table = (struct table){0};
	arena_init(&table->arena);
}

void table_release(struct table *table)
{
	HASH_CLEAR(hh, table->head);
	arena_release(&table->arena);
	table_init(table);
}

uint64_t *table_find(const struct table *table, const void *key, size_t len)
{
	struct table_entry *entry;

	HASH_FIND(hh, table->head, key, len, entry);
	return entry ? &entry->value : NULL;
}

int table_add(struct table *table, const void *key, size_t len, uint64_t value)
{
	struct table_entry *entry = arena_alloc(&table->arena, sizeof(*entry));
	char *copy = arena_text(&table->arena, key, len);

	if (!entry || !copy)
		return -ERR_NOMEM;
	entry->value = value;
	HASH_ADD_KEYPTR(hh, table->head, copy, len, entry);
	if (!entry->hh.tbl)
		return -ERR_NOMEM;
	table->count++;
	return 0;
}

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
