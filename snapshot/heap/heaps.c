/* The walk of all heaps of a target.
 *
 * The first part implements the extents and claims of claims.h. The second part collects heaps,
 * blocks and faults in struct walk. The last part finds the heaps and chooses a walker for each,
 * using a table of heap kinds. It does so for the PEB of the process. For a 32-bit process on
 * 64-bit Windows, it also does so for the 64-bit PEB. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/peb_layout.h"

int extents_add(struct extents *extents, const struct extent *extent)
{
	if (array_try_grow((void **)&extents->list, &extents->cap, extents->count, sizeof(*extent)))
		return -ERR_NOMEM;
	extents->list[extents->count++] = *extent;
	return 0;
}

void extents_release(struct extents *extents)
{
	free(extents->list);
	*extents = (struct extents){0};
}

static int by_addr(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

size_t extents_sort(struct extents *extents, uint64_t *addr)
{
	size_t overlaps = 0, count = 0;
	uint64_t end = 0;

	if (extents->count)
		qsort(extents->list, extents->count, sizeof(*extents->list), by_addr);
	for (size_t i = 0; i < extents->count; i++) {
		struct extent extent = extents->list[i];

		if (extent.addr < end && !overlaps++ && addr)
			*addr = extent.addr;
		extent.addr = extent.addr < end ? end : extent.addr;
		if (extent.addr >= extent.end)
			continue;
		end = extent.end;
		extents->list[count++] = extent;
	}
	extents->count = count;
	return overlaps;
}

const struct extent *extents_above(const struct extents *extents, uint64_t addr)
{
	size_t low = 0, high = extents->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (extents->list[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < extents->count ? &extents->list[low] : NULL;
}

const struct extent *extents_at(const struct extents *extents, uint64_t addr)
{
	const struct extent *extent = extents_above(extents, addr);

	return extent && extent->addr <= addr ? extent : NULL;
}

void claims_init(struct claims *claims, uint64_t limit_bytes)
{
	*claims = (struct claims){.left_bytes = limit_bytes};
}

void claims_release(struct claims *claims)
{
	extents_release(&claims->extents);
}

int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes)
{
	if (!bytes || addr + bytes < addr || bytes > claims->left_bytes)
		return -ERR_TARGET;
	claims->left_bytes -= bytes;
	return extents_add(&claims->extents, &(struct extent){.addr = addr, .end = addr + bytes});
}

#define OWN_BITS 12 /* one address per page is enough */
#define RECENT_SHIFT 48 /* reduces a multiplied address to a 16-bit hash */
#define RECENT_RECORDS ((size_t)1 << (64 - RECENT_SHIFT))
#define MANY_BLOCKS ((size_t)1 << 16)
#define WALK_HEAPS_MAX (BLOCK_HEAPS_MAX - 8) /* higher numbers are reserved for headings */

void walk_init(struct walk *walk)
{
	*walk = (struct walk){0};
	u64map_init(&walk->record_numbers[0]);
	u64map_init(&walk->record_numbers[1]);
}

void walk_release(struct walk *walk)
{
	free(walk->heaps);
	free(walk->blocks);
	free(walk->records);
	free(walk->recent_records);
	free(walk->own);
	u64map_release(&walk->record_numbers[0]);
	u64map_release(&walk->record_numbers[1]);
	walk_init(walk);
}

void walk_clear(struct walk *walk)
{
	struct walk kept = *walk;

	u64map_release(&kept.record_numbers[0]);
	u64map_release(&kept.record_numbers[1]);
	*walk = (struct walk){.heaps = kept.heaps,
		.heap_cap = kept.heap_cap,
		.blocks = kept.blocks,
		.block_cap = kept.block_cap,
		.records = kept.records,
		.record_cap = kept.record_cap,
		.recent_records = kept.recent_records,
		.record_numbers = {kept.record_numbers[0], kept.record_numbers[1]},
		.own = kept.own,
		.own_cap = kept.own_cap};
}

int walk_add_heap(struct walk *walk, const struct heap *heap)
{
	if (walk->heap_count == WALK_HEAPS_MAX ||
		array_try_grow(
			(void **)&walk->heaps, &walk->heap_cap, walk->heap_count, sizeof(*heap)))
		return -ERR_NOMEM;
	walk->heaps[walk->heap_count++] = *heap;
	return 0;
}

int walk_add_own(struct walk *walk, uint64_t addr)
{
	if (walk->own_count && walk->own[walk->own_count - 1] >> OWN_BITS == addr >> OWN_BITS)
		return 0;
	if (array_try_grow(
		    (void **)&walk->own, &walk->own_cap, walk->own_count, sizeof(*walk->own)))
		return -ERR_NOMEM;
	walk->own[walk->own_count++] = addr;
	return 0;
}

/* Returns true if this value in a block's prefix means that no stack was logged. The constants are
 * from DbgHelpUtils. */
static bool is_nothing(uint64_t record)
{
	return !record || record == 0x01010000 || record == UINT64_C(0x0101000000000000);
}

/* Stores the record's index in *number, and adds the record if it is new. Checks the cache of
 * recent records first. bits: bitness of the heap. Returns 0 or -ERR_NOMEM. */
static int number_record(struct walk *walk, uint64_t addr, unsigned bits, uint32_t *number)
{
	const struct walk_record *record;
	uint32_t *recent;

	if (!walk->recent_records)
		walk->recent_records = calloc(RECENT_RECORDS, sizeof(*walk->recent_records));
	if (!walk->recent_records || walk->record_count == STACK_NONE ||
		array_try_grow((void **)&walk->records, &walk->record_cap, walk->record_count,
			sizeof(*walk->records)))
		return -ERR_NOMEM;
	recent = &walk->recent_records[addr * UINT64_C(0x9e3779b97f4a7c15) >> RECENT_SHIFT];
	record = &walk->records[*recent];
	if (*recent >= walk->record_count || record->addr != addr || record->bits != bits) {
		*recent = (uint32_t)walk->record_count;
		if (u64map_add(&walk->record_numbers[bits == 64], addr, recent))
			walk->records[walk->record_count++] = (struct walk_record){addr, bits};
	}
	*number = *recent;
	return 0;
}

static inline int grow_blocks(struct walk *walk, size_t more)
{
	size_t cap = walk->block_cap;

	while (walk->block_cap - walk->block_count < more) {
		if (walk->is_split || array_try_grow((void **)&walk->blocks, &walk->block_cap,
					      walk->block_cap, sizeof(*walk->blocks)))
			return -ERR_NOMEM;
	}
	if (walk->block_cap != cap && walk->block_cap > MANY_BLOCKS)
		os_large_pages(walk->blocks, walk->block_cap * sizeof(*walk->blocks));
	return 0;
}

int walk_add_block(struct walk *walk, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record)
{
	const uint32_t heap = (uint32_t)walk->heap_count - 1;
	uint32_t number = STACK_NONE;

	if (!block_fits(addr, requested_bytes))
		return walk_broken(walk, addr, "block of an impossible size or place");
	if (grow_blocks(walk, 1) ||
		(!is_nothing(record) &&
			number_record(walk, record, walk->heaps[heap].bits, &number)))
		return -ERR_NOMEM;
	walk->blocks[walk->block_count++] = (struct block){.addr = addr,
		.requested_bytes = requested_bytes,
		/* In a dubious block of a page heap, overhead_bytes can be any number. */
		.overhead_bytes =
			overhead_bytes < BLOCK_OVERHEAD_MAX ? overhead_bytes : BLOCK_OVERHEAD_MAX,
		.heap = heap,
		.stack = number};
	return 0;
}

/* Counts a place, and stores it if it is the first. Returns true for the first. */
static bool note(unsigned *count, uint64_t *first_addr, const char **first_what, uint64_t addr,
	const char *what)
{
	if ((*count)++)
		return false;
	*first_addr = addr;
	*first_what = what;
	return true;
}

static void mark_partial(struct walk *walk)
{
	if (walk->heap_count && !walk->is_part)
		walk->heaps[walk->heap_count - 1].is_partial = true;
}

int walk_broken(struct walk *walk, uint64_t addr, const char *what)
{
	if (note(&walk->broken_count, &walk->broken_addr, &walk->broken_what, addr, what) &&
		walk->heap_count)
		walk->broken_heap = walk->heaps[walk->heap_count - 1].addr;
	mark_partial(walk);
	return 0;
}

int walk_missing(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->missing_count, &walk->missing_addr, &walk->missing_what, addr, what);
	mark_partial(walk);
	return 0;
}

int walk_doubt(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->doubt_count, &walk->doubt_addr, &walk->doubt_what, addr, what);
	return 0;
}

bool walk_split(struct walk *walk, size_t most, struct walk *part, size_t part_most)
{
	if (grow_blocks(walk, most + part_most))
		return false;
	walk_init(part);
	part->heaps = walk->heaps;
	part->heap_count = walk->heap_count;
	part->blocks = walk->blocks + walk->block_count + most;
	part->block_cap = walk->block_cap - walk->block_count - most;
	walk->block_cap -= part->block_cap;
	walk->is_split = part->is_split = part->is_part = true;
	return true;
}

bool walk_join(struct walk *walk, struct walk *part, bool is_made)
{
	uint32_t *numbers = malloc((part->record_count + 1) * sizeof(*numbers));
	bool joins = numbers && is_made && walk_is_sound(part) && !part->doubt_count;

	walk->is_split = false;
	walk->block_cap += part->block_cap;
	for (size_t i = 0; joins && i < part->record_count; i++)
		joins = !number_record(
			walk, part->records[i].addr, part->records[i].bits, &numbers[i]);
	for (size_t i = 0; joins && i < part->block_count; i++) {
		struct block *block = &walk->blocks[walk->block_count++];

		*block = part->blocks[i];
		if (block->stack != STACK_NONE)
			block->stack = numbers[block->stack];
	}
	free(numbers);
	part->heaps = NULL; /* the walk owns the heaps and the part's blocks */
	part->blocks = NULL;
	walk_release(part);
	return joins;
}

/* ---------------------------------------------------------------- finding heaps */

/* The kinds of heaps, and how each is found. Wine's heaps form a ring. Page heaps have a list of
 * their own. Heaps of the other kinds are in the PEB's list and are distinguished by their
 * signatures. */
static const struct heap_kind {
	/* If a process heap is in a ring, the process has no heaps outside the ring. */
	bool (*is_ring)(struct target *target, uint64_t process_heap, unsigned bits);
	bool (*is_ring_busy)(struct target *target, uint64_t process_heap, unsigned bits);
	int (*walk_ring)(
		struct memory *memory, uint64_t process_heap, unsigned bits, struct walk *walk);
	/* Walks those heaps of this kind that are not in the PEB's list. */
	int (*walk_unlisted)(struct nt_walk *nt);
	/* Walks the heap at addr, which has `signature` at NT_HEAP_SIGNATURE_AT. */
	uint32_t signature;
	int (*walk)(struct nt_walk *nt, uint64_t addr);
} heap_kinds[] = {
	{.is_ring = wine_heap_is_ring,
		.is_ring_busy = wine_heaps_are_busy,
		.walk_ring = wine_heaps_walk},
	{.walk_unlisted = page_heaps_walk},
	{.signature = NT_HEAP_SIGNATURE, .walk = nt_backend_walk},
	{.signature = SEGMENT_HEAP_SIGNATURE, .walk = segment_heap_walk},
};

#define KIND_COUNT (sizeof(heap_kinds) / sizeof(*heap_kinds))

static const struct heap_kind *ring_of(struct target *target, uint64_t process_heap, unsigned bits)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (heap_kinds[i].is_ring && heap_kinds[i].is_ring(target, process_heap, bits))
			return &heap_kinds[i];
	}
	return NULL;
}

static int unknown_heap(struct nt_walk *nt, uint64_t addr)
{
	struct heap heap = {
		.addr = addr, .bits = nt->process->bits, .kind = "unknown", .unwalked = true};

	return walk_add_heap(nt->walk, &heap);
}

static int walk_heap(struct nt_walk *nt, uint64_t addr)
{
	uint32_t signature = 0;

	if (page_heap_knows(nt, addr))
		return 0;
	/* Wine's heaps have the signature of NT heaps. */
	if (nt->memory->target->is_wine)
		return unknown_heap(nt, addr);
	if (memory_u32(nt->memory, addr + NT_HEAP_SIGNATURE_AT(nt->process->bits), &signature))
		walk_missing(nt->walk, addr, "unreadable heap");
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (heap_kinds[i].walk && signature == heap_kinds[i].signature)
			return heap_kinds[i].walk(nt, addr);
	}
	return unknown_heap(nt, addr);
}

struct walk_request {
	struct memory *memory;
	const struct heap_hints *hints;
	struct walk *walk;
	struct claims claims;
};

/* Walks the heaps that are reachable from a PEB, and the heaps that are in no list. */
static int walk_listed(struct walk_request *request, uint64_t peb, unsigned bits, struct err *err)
{
	struct memory *memory = request->memory;
	struct walk *walk = request->walk;
	struct nt_process process;
	struct nt_walk nt = {.memory = memory,
		.process = &process,
		.walk = walk,
		.claims = request->claims,
		.probes_left = NT_PROBES};
	int rc = nt_process_read(&process, memory, peb, bits, err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < KIND_COUNT; i++)
		rc = heap_kinds[i].walk_unlisted ? heap_kinds[i].walk_unlisted(&nt) : 0;
	if (!rc && !memory->target->is_wine)
		rc = heap_scan(&nt, &process, request->hints);
	for (size_t i = 0; !rc && i < process.heap_count; i++)
		rc = walk_heap(&nt, process.heaps[i]);
	for (size_t i = 0; !rc && i < nt.behind_count; i++)
		rc = walk_heap(&nt, nt.behind[i]);
	if (process.list_fault && !walk->list_fault) {
		walk->list_fault = process.list_fault;
		walk->list_fault_addr = process.list_fault_addr;
	}
	free(nt.behind);
	nt_process_release(&process);
	request->claims = nt.claims;
	return rc;
}

/* Reads the process heap's address; *addr is 0 if the process has no heap yet. Returns 0 or
 * -ERR_READ. */
static int process_heap_of(struct target *target, uint64_t peb, unsigned bits, uint64_t *addr)
{
	unsigned char bytes[8];
	int rc = target_read(target, peb + peb_layout(bits)->process_heap, bytes, bits / 8);

	if (!rc)
		*addr = bytes_ptr(bytes, bits);
	return rc;
}

/* Walks the heaps of one PEB. A 32-bit process on 64-bit Windows has two PEBs. */
static int walk_process(struct walk_request *request, uint64_t peb, unsigned bits, struct err *err)
{
	struct memory *memory = request->memory;
	const struct heap_kind *ring = NULL;
	uint64_t process_heap = 0;

	if (!process_heap_of(memory->target, peb, bits, &process_heap) && process_heap)
		ring = ring_of(memory->target, process_heap, bits);
	return ring ? ring->walk_ring(memory, process_heap, bits, request->walk) :
		      walk_listed(request, peb, bits, err);
}

static bool is_process_busy(struct memory *memory, uint64_t peb, unsigned bits)
{
	const struct heap_kind *ring;
	struct nt_process process;
	uint64_t process_heap = 0;
	bool busy = false;

	if (process_heap_of(memory->target, peb, bits, &process_heap) || !process_heap)
		return false;
	ring = ring_of(memory->target, process_heap, bits);
	if (ring)
		return ring->is_ring_busy(memory->target, process_heap, bits);
	if (memory->target->is_wine || nt_process_read(&process, memory, peb, bits, NULL))
		return false;
	for (size_t i = 0; !busy && i < process.heap_count; i++)
		busy = nt_heap_is_busy(memory, &process, process.heaps[i]);
	nt_process_release(&process);
	return busy;
}

bool heaps_are_busy(struct target *target)
{
	struct memory memory;
	bool busy;

	if (memory_init(&memory, target))
		return false;
	busy = is_process_busy(&memory, target->peb, target->bits) ||
	       (target->host_peb && is_process_busy(&memory, target->host_peb, 64));
	memory_release(&memory);
	return busy;
}

int heaps_walk(
	struct memory *memory, const struct heap_hints *hints, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	struct walk_request request = {.memory = memory, .hints = hints, .walk = walk};
	struct err host_err;
	uint64_t addr = 0;
	int rc;

	if (process_heap_of(target, target->peb, target->bits, &addr))
		return target->is_file ? err_set(err, ERR_NO_HEAPS, target->name,
						 "unreadable PEB at %" PRIX64, target->peb) :
					 target_err(target, target->peb, "unreadable PEB", err);
	if (!addr)
		return err_set(err, ERR_TARGET, target->name, "no heap yet");
	claims_init(&request.claims, target_committed_bytes(target));
	rc = walk_process(&request, target->peb, target->bits, err);
	if (!rc && target->host_peb) {
		rc = walk_process(&request, target->host_peb, 64, &host_err);
		/* A file may contain only the 32-bit part of the process. */
		if (rc && rc != -ERR_NOMEM)
			rc = walk_missing(walk, target->host_peb, "unreadable 64-bit PEB");
	}
	if (extents_sort(&request.claims.extents, &addr))
		walk_broken(walk, addr, "memory that two heaps claim");
	claims_release(&request.claims);
	return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, target->name, NULL) : rc;
}
