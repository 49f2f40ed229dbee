/* Finds all heaps of a target, and chooses a walker for each.
 *
 * A table lists the kinds of heaps. The heaps of the process's PEB are found and walked. A 32-bit
 * process on 64-bit Windows also has a 64-bit PEB, whose heaps are found and walked too. */
#include <inttypes.h>
#include <stdlib.h>

#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"
#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/peb_layout.h"

/* The kinds of heaps, and how each is found. Wine's heaps form a ring. Page heaps have a list of
 * their own. Heaps of the other kinds are in the PEB's list and are distinguished by their
 * signatures. */
static const struct heap_kind {
	/* If the process heap is in a ring, the process has no heaps outside the ring. */
	bool (*is_ring)(struct target *target, uint64_t process_heap, unsigned bits);
	bool (*is_ring_busy)(struct target *target, uint64_t process_heap, unsigned bits);
	int (*walk_ring)(
		struct memory *memory, uint64_t process_heap, unsigned bits, struct walk *walk);
	/* Walks the heaps of this kind that are not in the PEB's list. */
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
	/* Wine's heaps have the signature of NT heaps, so they must be recognized first. */
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
