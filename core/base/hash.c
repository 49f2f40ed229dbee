/*
 * Hash tables with open addressing: SipHash-1-3, the index, and two maps built on the index. The
 * index contains only hashes and numbers. The maps store keys and values in arrays, indexed by
 * number.
 */
#include "core/base/hash.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"

#define uthash_malloc(bytes) xmalloc(bytes)
#define uthash_free(memory, bytes) free(memory)
#include <uthash.h>

static atomic_bool is_begun, is_known;

struct hash_key hash_key(void)
{
	static struct hash_key key;

	/* If several threads call this first at once, all get the same key. */
	while (!atomic_load(&is_known)) {
		if (!atomic_exchange(&is_begun, true)) {
			os_random(&key, sizeof(key));
			atomic_store(&is_known, true);
		}
	}
	return key;
}

struct hasher hasher_begin(const struct hash_key *key)
{
	/* The four constants of SipHash. */
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

#define FIRST_CAP 64

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

void hash_index_expect(const struct hash_index *index, uint32_t hash)
{
	if (index->cap)
		__builtin_prefetch(&index->slots[hash & (index->cap - 1)]);
}

static void insert_slot(struct hash_slot *slots, size_t cap, struct hash_slot slot)
{
	size_t at = slot.hash & (cap - 1);

	while (slots[at].number)
		at = (at + 1) & (cap - 1);
	slots[at] = slot;
}

/* Keeps the table at most two thirds full, so that every search is short. */
void hash_index_reserve(struct hash_index *index, size_t more)
{
	size_t count = index->count + more, cap = index->cap ? index->cap : FIRST_CAP;
	struct hash_slot *slots;

	if (count >= INDEX_NONE || count < more)
		memory_out();
	while (count > cap / 3 * 2)
		cap *= 2;
	if (cap == index->cap)
		return;
	slots = xcalloc(cap, sizeof(*slots));
	for (size_t i = 0; i < index->cap; i++) {
		if (index->slots[i].number)
			insert_slot(slots, cap, index->slots[i]);
	}
	free(index->slots);
	index->slots = slots;
	index->cap = cap;
}

void hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number)
{
	hash_index_reserve(index, 1);
	insert_slot(index->slots, index->cap, (struct hash_slot){hash, number + 1});
	index->count++;
}

/* ---------------------------------------------------------------- byte strings, by uthash */

struct table_entry {
	UT_hash_handle hh; /* the key lies in the table's arena */
	uint64_t value;
};

void table_init(struct table *table)
{
	*table = (struct table){.key = hash_key()};
	arena_init(&table->arena);
}

void table_release(struct table *table)
{
	HASH_CLEAR(hh, table->entries);
	arena_release(&table->arena);
	table_init(table);
}

static unsigned hash_bytes(const struct table *table, const void *key, size_t len)
{
	struct hasher hasher = hasher_begin(&table->key);

	hasher_add_bytes(&hasher, key, len);
	return hasher_end(&hasher);
}

uint64_t *table_find(const struct table *table, const void *key, size_t len)
{
	unsigned hash = hash_bytes(table, key, len);
	struct table_entry *entry;

	HASH_FIND_BYHASHVALUE(hh, table->entries, key, len, hash, entry);
	return entry ? &entry->value : NULL;
}

void table_add(struct table *table, const void *key, size_t len, uint64_t value)
{
	unsigned hash = hash_bytes(table, key, len);
	struct table_entry *entry = arena_alloc(&table->arena, sizeof(*entry));
	const char *copy = arena_text(&table->arena, key, len);

	entry->value = value;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->entries, copy, len, hash, entry);
	table->count++;
}

/* ---------------------------------------------------------------- numbers */

void u64map_init(struct u64map *map)
{
	*map = (struct u64map){0};
	hash_index_init(&map->index);
}

void u64map_release(struct u64map *map)
{
	hash_index_release(&map->index);
	free(map->items);
	u64map_init(map);
}

static uint32_t hash_number(const struct u64map *map, uint64_t number)
{
	struct hasher hasher = hasher_begin(&map->index.key);

	hasher_add(&hasher, number);
	return hasher_end(&hasher);
}

static const struct u64map_item *find_number(
	const struct u64map *map, uint64_t number, uint32_t hash)
{
	struct hash_probe probe = hash_index_probe(&map->index, hash);
	uint32_t at;

	while ((at = hash_index_next(&map->index, &probe)) != INDEX_NONE) {
		if (map->items[at].number == number)
			return &map->items[at];
	}
	return NULL;
}

bool u64map_find(const struct u64map *map, uint64_t number, uint32_t *value)
{
	const struct u64map_item *item = find_number(map, number, hash_number(map, number));

	if (item)
		*value = item->value;
	return item;
}

void u64map_reserve(struct u64map *map, size_t more)
{
	hash_index_reserve(&map->index, more);
	if (map->index.count + more > map->cap) {
		map->cap = map->index.count + more;
		map->items = xrealloc(map->items, map->cap * sizeof(*map->items));
	}
}

bool u64map_add(struct u64map *map, uint64_t number, uint32_t *value)
{
	uint32_t hash = hash_number(map, number);
	const struct u64map_item *item = find_number(map, number, hash);
	size_t count = map->index.count;

	if (item) {
		*value = item->value;
		return false;
	}
	array_grow((void **)&map->items, &map->cap, count, sizeof(*map->items));
	map->items[count] = (struct u64map_item){number, *value};
	hash_index_add(&map->index, hash, (uint32_t)count);
	return true;
}
