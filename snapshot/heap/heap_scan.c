/*
 * Search for heaps that are in no list.
 *
 * Windows' lists of heaps have changed without notice: since build 26100 the PEB lists only the
 * process heap. So this search checks every region of private memory. A heap begins at the start of
 * an allocation, which is a multiple of 64 KiB, and has a signature there. An NT heap also contains
 * its own address.
 */
#include "core/base/hash.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/nt_heap.h"

#define GRANULARITY 0x10000u /* allocations start at multiples of this */

struct heap_scan {
	struct nt_walk *nt;
	struct nt_process *process;
	struct u64map known; /* heaps that are in a list, and the ordinary heaps of page heaps */
	int rc;
};

/* Returns true if a heap begins at `addr`. Reads only a few bytes unless the signature matches. */
static bool is_heap(const struct heap_scan *scan, uint64_t addr)
{
	const unsigned bits = scan->process->bits;
	uint32_t signature;

	if (target_u32(scan->nt->memory->target, addr + NT_HEAP_SIGNATURE_AT(bits), &signature))
		return false;
	if (signature == NT_HEAP_SIGNATURE)
		return nt_backend_is_at(scan->nt, addr);
	return signature == SEGMENT_HEAP_SIGNATURE;
}

static void try_heap(struct heap_scan *scan, uint64_t addr)
{
	struct walk *walk = scan->nt->walk;
	uint32_t unused = 0;

	if (scan->rc || u64map_find(&scan->known, addr, &unused) || !is_heap(scan, addr) ||
		page_heap_knows(scan->nt, addr))
		return;
	u64map_add(&scan->known, addr, &unused);
	scan->rc = nt_process_add_heap(scan->process, addr);
	if (!scan->rc && !walk->unlisted_count++)
		walk->unlisted_addr = addr;
}

/* Checks every address of a region at which a heap can begin. A region of a file may consist of
 * several adjacent allocations. */
static void try_region(struct heap_scan *scan, const struct target_region *region)
{
	const uint64_t step = GRANULARITY;
	uint64_t addr = (region->addr + step - 1) & ~(step - 1);

	if (region->is_image || region->is_read_only_view || !(region->access & TARGET_READ))
		return;
	if (!scan->nt->memory->target->is_file) {
		if (addr == region->addr)
			try_heap(scan, addr);
		return;
	}
	for (; addr >= region->addr && addr < region->end; addr += step)
		try_heap(scan, addr);
}

int heap_scan(struct nt_walk *nt, struct nt_process *process, const struct heap_hints *hints)
{
	struct target *target = nt->memory->target;
	struct heap_scan scan = {.nt = nt, .process = process};
	struct target_region region = {0};
	uint32_t unused = 0;

	u64map_init(&scan.known);
	for (size_t i = 0; i < process->heap_count; i++)
		u64map_add(&scan.known, process->heaps[i], &unused);
	for (size_t i = 0; i < nt->behind_count; i++)
		u64map_add(&scan.known, nt->behind[i], &unused);
	while (!scan.rc && target->ops->region &&
		!target->ops->region(target, region.end, &region) && region.end > region.addr)
		try_region(&scan, &region);
	for (size_t i = 0; hints && hints->bits == process->bits && i < hints->count; i++)
		try_heap(&scan, hints->addrs[i]);
	u64map_release(&scan.known);
	return scan.rc;
}
