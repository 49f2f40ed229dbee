/* Hashes that strangers cannot predict, and the tables made with them. */
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * Hashes of what comes from files and processes that may mean harm: SipHash-1-3, by Aumasson and
 * Bernstein, under a key that they cannot know, so that things which all fall into one place cannot
 * be made. No result may depend on a hash.
 */

struct hash_key {
	uint64_t words[2];
};

/* A hash in the making. */
struct hasher {
	uint64_t a, b, c, d;
};

/* The key of this process. */
struct hash_key hash_key(void);

struct hasher hasher_begin(const struct hash_key *key);
void hasher_add_bytes(struct hasher *hasher, const void *bytes, size_t len);
uint32_t hasher_end(struct hasher *hasher);

static inline uint64_t hasher_rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void hasher_mix(struct hasher *hasher)
{
	uint64_t a = hasher->a, b = hasher->b, c = hasher->c, d = hasher->d;

	a += b;
	b = hasher_rotate(b, 13) ^ a;
	a = hasher_rotate(a, 32);
	c += d;
	d = hasher_rotate(d, 16) ^ c;
	a += d;
	d = hasher_rotate(d, 21) ^ a;
	c += b;
	b = hasher_rotate(b, 17) ^ c;
	c = hasher_rotate(c, 32);
	*hasher = (struct hasher){a, b, c, d};
}

/* Here because it is called for every frame. */
static inline void hasher_add(struct hasher *hasher, uint64_t word)
{
	hasher->d ^= word;
	hasher_mix(hasher);
	hasher->a ^= word;
}

/*
 * The one open table: an index of numbered things by their content. The content stays with whoever numbers
 * them and is compared there; the index holds eight bytes for each. Hashes are made under the key of the index.
 * Nothing is ever removed.
 */

#define INDEX_NONE UINT32_MAX

struct hash_index {
	struct hash_key key;
	struct hash_slot {
		uint32_t hash;
		uint32_t number; /* plus one; 0: free */
	} * slots;
	size_t cap, count;
};

/* One search: where it is. */
struct hash_probe {
	uint32_t hash;
	size_t at;
};

void hash_index_init(struct hash_index *index);
void hash_index_release(struct hash_index *index);

/* The numbers that may be what is looked for, one after the other; INDEX_NONE behind the last. */
struct hash_probe hash_index_probe(const struct hash_index *index, uint32_t hash);
uint32_t hash_index_next(const struct hash_index *index, struct hash_probe *probe);

/* Has the processor fetch where that search begins. */
void hash_index_expect(const struct hash_index *index, uint32_t hash);

/* Makes room for so many more, which saves growing in steps. */
void hash_index_reserve(struct hash_index *index, size_t more);

/* Adds a number below INDEX_NONE. */
void hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number);

/* From byte strings, which are copied, to numbers. */
struct table {
	struct hash_index index;
	struct table_entry **entries;
	size_t count, cap;
	struct arena arena;
};

void table_init(struct table *table);
void table_release(struct table *table);

/* The value of key, which may be changed, or NULL. */
uint64_t *table_find(const struct table *table, const void *key, size_t len);

/* Adds key, which must not be there yet. */
void table_add(struct table *table, const void *key, size_t len, uint64_t value);

/* From 64-bit numbers to 32-bit ones. */
struct u64map {
	struct hash_index index;
	struct u64map_item {
		uint64_t number;
		uint32_t value;
	} * items;
	size_t cap;
};

void u64map_init(struct u64map *map);
void u64map_release(struct u64map *map);

/* As hash_index_reserve(). */
void u64map_reserve(struct u64map *map, size_t more);

/* True and the value of number, if it is there. */
bool u64map_find(const struct u64map *map, uint64_t number, uint32_t *value);

/* Finds number, which has *value then, or adds it with *value: true. */
bool u64map_put(struct u64map *map, uint64_t number, uint32_t *value);

#endif
