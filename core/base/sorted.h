/* Sorted arrays: binary search, and sorting of numbers. */
#ifndef CORE_BASE_SORTED_H
#define CORE_BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the number of items whose key is less than `limit`. The key of an item is the uint64_t at
 * offset `key_at`. The items are sorted by their keys. */
static inline size_t sorted_below(
	const void *items, size_t count, size_t item_bytes, size_t key_at, uint64_t limit)
{
	size_t low = 0;

	while (count) {
		size_t half = count / 2;
		uint64_t key;

		memcpy(&key, (const char *)items + (low + half) * item_bytes + key_at, sizeof(key));
		if (key < limit) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

/* Like sorted_below(), but also counts items whose key is `limit`. */
static inline size_t sorted_up_to(
	const void *items, size_t count, size_t item_bytes, size_t key_at, uint64_t limit)
{
	return limit == UINT64_MAX ? count :
				     sorted_below(items, count, item_bytes, key_at, limit + 1);
}

/* Sorts the values and removes duplicates. Returns the number of values that remain. */
size_t sorted_unique(uint64_t *values, size_t count);

#endif
