#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "snapshot/heap/heap.h"

static const struct heap_walker *const walkers[] = {
	&heap_walker_wine,
};

/*
 * struct _PEB, 64-bit: ProcessHeap, NumberOfHeaps, ProcessHeaps; public symbols of ntdll,
 * Windows 7 to 11; Wine 8.0 keeps ProcessHeap there too and leaves the other two 0.
 */
#define PEB_PROCESS_HEAP 0x30
#define PEB_HEAP_COUNT 0xe8
#define PEB_HEAP_LIST 0xf0

void walk_init(struct walk *walk)
{
	*walk = (struct walk){0};
}

void walk_release(struct walk *walk)
{
	free(walk->heaps);
	free(walk->blocks);
	walk_init(walk);
}

void walk_clear(struct walk *walk)
{
	struct walk kept = *walk;

	*walk = (struct walk){.heaps = kept.heaps,
		.heap_cap = kept.heap_cap,
		.blocks = kept.blocks,
		.block_cap = kept.block_cap};
}

int walk_add_heap(struct walk *walk, const struct heap *heap)
{
	if (array_grow((void **)&walk->heaps, &walk->heap_cap, walk->heap_count, sizeof(*heap)))
		return -ERR_NOMEM;
	walk->heaps[walk->heap_count++] = *heap;
	return 0;
}

int walk_add_block(
	struct walk *walk, uint64_t addr, uint64_t requested_bytes, uint64_t overhead_bytes)
{
	if (array_grow((void **)&walk->blocks, &walk->block_cap, walk->block_count,
		    sizeof(*walk->blocks)))
		return -ERR_NOMEM;
	walk->blocks[walk->block_count++] = (struct walked_block){.addr = addr,
		.requested_bytes = requested_bytes,
		.overhead_bytes = overhead_bytes,
		.heap = (uint32_t)walk->heap_count - 1};
	return 0;
}

int walk_broken(struct walk *walk, uint64_t addr, const char *what)
{
	if (!walk->broken_count++) {
		walk->broken_addr = addr;
		walk->broken_what = what;
	}
	return 0;
}

/* The heaps of a kind nobody here knows, from the list that Windows keeps in the PEB. */
static int list_unknown(
	struct target *target, uint64_t first_heap, struct walk *walk, struct err *err)
{
	struct heap heap = {.addr = first_heap, .kind = "unknown", .unwalked = true};
	unsigned char *list = NULL;
	uint64_t list_addr = 0;
	uint32_t count = 0;
	int rc = walk_add_heap(walk, &heap);

	if (target_u32(target, target->peb + PEB_HEAP_COUNT, &count) ||
		target_u64(target, target->peb + PEB_HEAP_LIST, &list_addr))
		return target_err(target, target->peb, "unreadable PEB", err);
	count = count < HEAPS_MAX ? count : HEAPS_MAX;
	if (!rc && count) {
		list = malloc((size_t)count * 8);
		rc = list ? 0 : -ERR_NOMEM;
		if (list && target_read(target, list_addr, list, (size_t)count * 8))
			rc = target_err(target, list_addr, "unreadable heap list", err);
	}
	for (uint32_t i = 0; !rc && i < count; i++) {
		heap.addr = bytes_u64(list + (size_t)i * 8);
		if (heap.addr && heap.addr != first_heap)
			rc = walk_add_heap(walk, &heap);
	}
	free(list);
	return rc;
}

/* Who understands the heap at addr, or NULL. */
static const struct heap_walker *walker_of(struct target *target, uint64_t addr)
{
	for (size_t i = 0; i < sizeof(walkers) / sizeof(*walkers); i++) {
		if (walkers[i]->probe(target, addr))
			return walkers[i];
	}
	return NULL;
}

bool heaps_are_busy(struct target *target)
{
	const struct heap_walker *walker;
	uint64_t first_heap = 0;

	if (target_u64(target, target->peb + PEB_PROCESS_HEAP, &first_heap) || !first_heap)
		return false;
	walker = walker_of(target, first_heap);
	return walker && walker->is_busy(target, first_heap);
}

int heaps_walk(struct target *target, struct walk *walk, struct err *err)
{
	const struct heap_walker *walker;
	uint64_t first_heap = 0;
	int rc;

	if (target_u64(target, target->peb + PEB_PROCESS_HEAP, &first_heap))
		return target_err(target, target->peb, "unreadable PEB", err);
	if (!first_heap)
		return err_set(err, ERR_TARGET, target->name, "it has no heap yet");
	walker = walker_of(target, first_heap);
	rc = walker ? walker->walk(target, first_heap, walk, err) :
		      list_unknown(target, first_heap, walk, err);
	return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, target->name, NULL) : rc;
}
