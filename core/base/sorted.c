/* Sorting of numbers. */
#include "core/base/sorted.h"

#include <stdbool.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

size_t sorted_unique(uint64_t *values, size_t count)
{
	bool is_sorted = true; /* sorting is slow, so it is skipped where possible */
	size_t kept = 0;

	for (size_t i = 1; is_sorted && i < count; i++)
		is_sorted = values[i - 1] <= values[i];
	if (!is_sorted)
		qsort(values, count, sizeof(*values), by_value);
	for (size_t i = 0; i < count; i++) {
		if (!kept || values[kept - 1] != values[i])
			values[kept++] = values[i];
	}
	return kept;
}
