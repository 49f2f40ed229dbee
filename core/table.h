/*
 * A table from byte strings to numbers: the one door to uthash.
 *
 * Keys are copied. A value can be changed through table_find(); entries are never removed.
 */
#ifndef CORE_TABLE_H
#define CORE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"

struct table {
	struct table_entry *head;
	struct arena arena;
	size_t count;
};

void table_init(struct table *table);
void table_release(struct table *table);

/* The value of key, or NULL. */
uint64_t *table_find(const struct table *table, const void *key, size_t len);

/* Adds key, which must not be there yet. Returns 0 or -ERR_NOMEM. */
int table_add(struct table *table, const void *key, size_t len, uint64_t value);

#endif
