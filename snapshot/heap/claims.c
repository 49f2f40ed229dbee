#include "snapshot/heap/claims.h"

#include <stdlib.h>

#include "core/buf.h"

void claims_init(struct claims *claims, uint64_t limit_bytes)
{
	*claims = (struct claims){.left_bytes = limit_bytes};
}

void claims_release(struct claims *claims)
{
	free(claims->list);
	*claims = (struct claims){0};
}

int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes)
{
	if (!bytes || addr + bytes < addr || bytes > claims->left_bytes)
		return -ERR_TARGET;
	if (array_grow((void **)&claims->list, &claims->cap, claims->count, sizeof(*claims->list)))
		return -ERR_NOMEM;
	claims->list[claims->count++] = (struct claim){addr, addr + bytes};
	claims->left_bytes -= bytes;
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

size_t claims_overlaps(struct claims *claims, uint64_t *addr)
{
	uint64_t end = 0;
	size_t count = 0;

	if (claims->count)
		qsort(claims->list, claims->count, sizeof(*claims->list), by_addr);
	for (size_t i = 0; i < claims->count; i++) {
		const struct claim *claim = &claims->list[i];

		if (claim->addr < end && !count++)
			*addr = claim->addr;
		end = claim->end > end ? claim->end : end;
	}
	return count;
}
