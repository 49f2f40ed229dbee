/*
 * Hashes of what comes from files and processes that may mean harm: SipHash-1-3, by Aumasson and
 * Bernstein, under a key that they cannot know, so that things which all fall into one place cannot
 * be made. No result may depend on a hash.
 */
#ifndef CORE_HASHER_H
#define CORE_HASHER_H

#include <stddef.h>
#include <stdint.h>

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

#endif
