/* Keyed hashes that hostile input cannot predict, and the hash tables that use them. */
#ifndef CORE_BASE_HASH_H
#define CORE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * Hashes of data from files and processes, which may be hostile. The hash function is SipHash-1-3
 * (by Aumasson and Bernstein). Its key is secret, so an attacker cannot construct data with equal
 * hashes. The key differs in every run, so no result may depend on the value of a hash.
 */

struct hash_key {
	uint64_t words[2];
};

struct hasher {
	uint64_t a, b, c, d;
};

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

/* Inline, because it is called for every frame. */
static inline void hasher_add(struct hasher *hasher, uint64_t word)
{
	hasher->d ^= word;
	hasher_mix(hasher);
	hasher->a ^= word;
}

/*
 * An index that finds numbered items by their content. The caller owns the items, numbers them from
 * 0, and compares their content. The index uses eight bytes per item. Hashes must be computed with
 * the key of the index. Items are never removed.
 */

#define INDEX_NONE UINT32_MAX

struct hash_index {
	struct hash_key key;
	struct hash_slot {
		uint32_t hash;
		uint32_t number; /* number plus one; 0: free slot */
	} * slots;
	size_t cap, count;
};

struct hash_probe {
	uint32_t hash;
	size_t at;
};

void hash_index_init(struct hash_index *index);
void hash_index_release(struct hash_index *index);

/* Start and continue a search for a hash. Each call of hash_index_next() returns the number of the
 * next candidate, or INDEX_NONE after the last candidate. */
struct hash_probe hash_index_probe(const struct hash_index *index, uint32_t hash);
uint32_t hash_index_next(const struct hash_index *index, struct hash_probe *probe);

/* Prefetches the slot where a search for `hash` will start. */
void hash_index_expect(const struct hash_index *index, uint32_t hash);

/* Makes room for `more` additional items, so that the table need not grow in several steps. */
void hash_index_reserve(struct hash_index *index, size_t more);

/* Adds a number, which must be below INDEX_NONE. */
void hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number);

/* A map from byte strings to numbers. Keys are copied. */
struct table {
	struct table_entry *entries; /* managed by uthash */
	size_t count;
	struct hash_key key;
	struct arena arena;
};

void table_init(struct table *table);
void table_release(struct table *table);

/* Returns a pointer to the value of `key`, or NULL if `key` is absent. The caller may modify the
 * value. */
uint64_t *table_find(const struct table *table, const void *key, size_t len);

/* Adds `key`, which must not be in the table yet. */
void table_add(struct table *table, const void *key, size_t len, uint64_t value);

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

void u64map_reserve(struct u64map *map, size_t more);

/* Returns true and sets `*value` if `number` is in the map. */
bool u64map_find(const struct u64map *map, uint64_t number, uint32_t *value);

/* Adds `number` with `*value` and returns true. If `number` is already in the map, sets `*value`
 * and returns false. */
bool u64map_add(struct u64map *map, uint64_t number, uint32_t *value);

#endif
