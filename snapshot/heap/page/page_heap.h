/*
 * Page heaps: what finding them (page_find.c) and walking them (page_heap.c) share.
 */
#ifndef SNAPSHOT_HEAP_PAGE_HEAP_H
#define SNAPSHOT_HEAP_PAGE_HEAP_H

#include "snapshot/heap/nt_heap.h"
#include "snapshot/heap/page/page_layout.h"

#define PAGE_ROOT_BYTES_MAX 0x158

struct page_root {
	uint64_t handle; /* what the program holds, as far as it is known; else root */
	uint64_t root; /* of the _DPH_HEAP_ROOT */
};

struct page_roots {
	struct page_root *list; /* by handle, each root once */
	size_t count, cap;
};

/* Finds all _DPH_HEAP_ROOTs. Returns 0 or -ERR_NOMEM. The caller frees roots->list, in any case. */
int page_roots_find(struct nt_walk *nt, struct page_roots *roots);

#endif
