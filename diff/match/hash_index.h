/*
 * An index of numbered things by their content: the content stays with whoever numbers them and is
 * compared there; the index holds eight bytes for each.
 *
 * Hashes are made by core/hasher.h under the key of the index.
 */
#ifndef DIFF_HASH_INDEX_H
#define DIFF_HASH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "core/hasher.h"

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

/* Adds a number below INDEX_NONE. 0 or -ERR_NOMEM. */
int hash_index_add(struct hash_index *index, uint32_t hash, uint32_t number);

#endif
