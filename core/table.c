#include "core/table.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_bytes(const void *key, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes(key, len))
#include <uthash.h>

#include "core/err.h"
#include "core/os.h"

struct table_entry {
	UT_hash_handle hh;
	uint64_t value;
};

/*
 * Keys come from files and processes that may mean harm: with a seed that they cannot know, keys
 * that all fall into one bucket cannot be made. No result depends on the hash.
 */
uint64_t table_seed(void)
{
	static uint64_t seed;

	if (!seed)
		seed = ((uint64_t)os_time_ms() ^ (uintptr_t)&seed ^ (uint64_t)os_pid() << 32) *
			       UINT64_C(0x9e3779b97f4a7c15) |
		       1;
	return seed;
}

static uint64_t hash_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ hash >> 32;
}

static uint32_t hash_bytes(const void *key, size_t len)
{
	uint64_t hash = hash_mix(table_seed(), len), word;
	const char *at = key;

	for (; len >= 8; len -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = hash_mix(hash, word);
	}
	word = 0;
	memcpy(&word, at, len);
	hash = hash_mix(hash, word);
	return (uint32_t)(hash_mix(hash, table_seed()) >> 32);
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
