/*
 * A map from 64-bit numbers to 32-bit ones, for numbers that come from a process or a file: where they
 * fall is under a key that they cannot know (core/hasher.h). Entries are never removed.
 */
#ifndef CORE_U64MAP_H
#define CORE_U64MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hasher.h"

struct u64map_slot {
	uint64_t number;
	uint32_t value;
	bool is_used;
};

struct u64map {
	struct hash_key key;
	struct u64map_slot *slots;
	size_t count, cap; /* cap: 0 or a power of two, at most half of it used */
};

void u64map_init(struct u64map *map);
void u64map_release(struct u64map *map);

/* Makes room for so many more, which saves growing in steps: 0 or -ERR_NOMEM. */
int u64map_reserve(struct u64map *map, size_t more);

/* True and the value of number, if it is there. */
bool u64map_find(const struct u64map *map, uint64_t number, uint32_t *value);

/* Finds number or adds it with *value: 0 and its value when it was there, 1 when it was added, or
 * -ERR_NOMEM. */
int u64map_put(struct u64map *map, uint64_t number, uint32_t *value);

#endif
