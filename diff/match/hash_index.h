/*
 * An index of numbered things by their content: the content stays with whoever numbers them and is
 * compared there; the index holds eight bytes for each.
 *
 * What is hashed comes from files that may mean harm, so hashes are SipHash-1-3 under a key of the
 * index's own: things that all fall into one place cannot be made without it. No result may
 * depend on a hash.
 */
#ifndef DIFF_HASH_INDEX_H
#define DIFF_HASH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct hash_index {
	uint64_t key[2];
	struct hash_slot {
		uint32_t hash;
		uint32_t number; /* plus one; 0: free */
	} * slots;
	size_t cap, count;
};

/* A hash in the making. */
struct hasher {
	uint64_t a, b, c, d;
};

/* One search: where it is. */
struct hash_probe {
	uint32_t hash;
	size_t at;
};

void hash_index_init(struct hash_index *index);
void hash_index_release(struct hash_index *index);

struct hasher hasher_begin(const struct hash_index *index);
void hasher_add_text(struct hasher *hasher, const char *text);
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

/* The numbers that may be what is looked for, one after the other; INDEX_NONE behind the last. */
struct hash_probe hash_index_probe(const struct hash_index *index, uint32_t hash);
uint32_t hash_index_next(const struct hash_index *index, struct hash_probe *probe);

/* Adds a number below INDEX_NONE. 0 or -ERR_NOMEM. */
int hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number);

#endif
