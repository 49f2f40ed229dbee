#include "core/table.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_bytes(const void *key, size_t len);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes(key, len))
#include <uthash.h>

#include "core/err.h"
#include "core/hasher.h"

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
