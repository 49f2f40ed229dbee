/*
 * The ring of heaps of Windows 11 24H2, Server 2025 and later. In these versions, PEB.ProcessHeaps
 * contains only the process heap, and only the ring leads from there to the other heaps.
 *
 * Each heap has a descriptor with two links and the heap's address. The heap's UserContext points
 * to the descriptor. The links of all descriptors form a ring. The ring's head is in ntdll's data
 * and describes no heap. A descriptor is valid only if the previous descriptor points to it and its
 * heap points back to it. */
#include "core/base/hash.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define BUILD_RING 26100u /* first build that is known to have the ring */

struct heap_ring {
	struct nt_process *process;
	struct memory *memory;
	const struct peb_layout *layout;
	struct u64map known; /* heaps that are already in process->heaps */
	struct snapshot modules; /* modules of the process; empty if they cannot be listed */
	unsigned head_count;
};

struct descriptor {
	uint64_t addr, next, previous, heap;
};

/* Returns true for a 32-bit segment heap, whose UserContext is at an unknown offset. The walk
 * refuses such heaps. */
static bool has_unknown_context(const struct heap_ring *ring, uint64_t heap)
{
	uint32_t signature;

	return !ring->layout->segment_context &&
	       !memory_u32(
		       ring->memory, heap + NT_HEAP_SIGNATURE_AT(ring->layout->bits), &signature) &&
	       signature == SEGMENT_HEAP_SIGNATURE;
}

/* Reads a heap's UserContext. Returns false if it is unreadable or the heap is of an unknown
 * kind. */
static bool read_context(const struct heap_ring *ring, uint64_t heap, uint64_t *context)
{
	const unsigned bits = ring->layout->bits;
	uint32_t signature;
	uint16_t offset = 0;

	if (memory_u32(ring->memory, heap + NT_HEAP_SIGNATURE_AT(bits), &signature))
		return false;
	if (signature == NT_HEAP_SIGNATURE)
		offset = ring->layout->nt_context;
	else if (signature == SEGMENT_HEAP_SIGNATURE)
		offset = ring->layout->segment_context;
	return offset && !memory_ptr(ring->memory, bits, heap + offset, context);
}

static bool read_descriptor(
	const struct heap_ring *ring, uint64_t addr, struct descriptor *descriptor)
{
	const unsigned bits = ring->layout->bits;
	const unsigned char *bytes = memory_at(ring->memory, addr, ring->layout->ring_bytes);

	if (!bytes)
		return false;
	*descriptor =
		(struct descriptor){addr, bytes_ptr(bytes, bits), bytes_ptr(bytes + bits / 8, bits),
			bytes_ptr(bytes + ring->layout->ring_heap, bits)};
	return true;
}

/* Returns true if `addr` is in a module. Only the head of the ring is in a module; all other
 * descriptors are heap blocks. */
static bool is_in_image(const struct heap_ring *ring, uint64_t addr)
{
	struct target *target = ring->memory->target;
	struct target_region region;

	for (size_t i = 0; i < ring->modules.module_count; i++) {
		if (addr - ring->modules.modules[i].base < ring->modules.modules[i].size_bytes)
			return true;
	}
	return target->ops->region && !target->ops->region(target, addr, &region) &&
	       region.addr <= addr && region.is_image;
}

/* Adds the heap of a descriptor. If the descriptor is the head, counts it instead. Returns 0 or
 * -ERR_NOMEM. */
static int add_descriptor(struct heap_ring *ring, const struct descriptor *descriptor)
{
	uint64_t context;
	uint32_t unused = 0;

	if (is_in_image(ring, descriptor->addr)) {
		ring->head_count++;
		return 0;
	}
	if (!read_context(ring, descriptor->heap, &context) || context != descriptor->addr) {
		nt_process_list_fault(ring->process, descriptor->addr,
			"entry of the ring of heaps that its heap does not point back to");
		return 0;
	}
	return u64map_add(&ring->known, descriptor->heap, &unused) ?
		       nt_process_add_heap(ring->process, descriptor->heap) :
		       0;
}

/* Follows the ring, starting at a valid descriptor. Each Blink must point to the previous
 * descriptor, so the walk cannot loop. */
static int follow(struct heap_ring *ring, struct descriptor descriptor)
{
	const struct descriptor first = descriptor;
	const char *fault = NULL;
	int rc = add_descriptor(ring, &descriptor);

	for (unsigned i = 0; !rc && !fault && descriptor.next != first.addr; i++) {
		const uint64_t previous = descriptor.addr, addr = descriptor.next;

		if (i > HEAPS_MAX)
			fault = "endless ring of heaps";
		else if (!read_descriptor(ring, addr, &descriptor))
			fault = "unreadable ring of heaps";
		else if (descriptor.previous != previous)
			fault = "broken ring of heaps";
		else
			rc = add_descriptor(ring, &descriptor);
		if (fault)
			nt_process_list_fault(ring->process, addr, fault);
	}
	if (!fault && first.previous != descriptor.addr)
		nt_process_list_fault(ring->process, first.addr, "broken ring of heaps");
	else if (!fault && ring->head_count != 1)
		nt_process_list_fault(ring->process, first.addr, "ring of heaps without its head");
	return rc;
}

int nt_ring_read(struct nt_process *process, struct memory *memory)
{
	struct heap_ring ring = {
		.process = process, .memory = memory, .layout = peb_layout(process->bits)};
	const uint64_t heap = process->heaps[0];
	struct descriptor first;
	uint64_t context = 0;
	uint32_t unused = 0;
	struct err ignored;
	int rc = 0;

	if (memory->target->is_wine)
		return 0;
	/* In earlier builds, the field is 0 or has another meaning. */
	if (!read_context(&ring, heap, &context) || !context ||
		!read_descriptor(&ring, context, &first) || first.heap != heap) {
		/* With page heap, the process heap is of another kind and has no UserContext. */
		if (process->os_build >= BUILD_RING && !(process->global_flag & NT_FLAG_HPA) &&
			!has_unknown_context(&ring, heap))
			nt_process_list_fault(
				process, heap, "process heap without a ring of heaps");
		return 0;
	}
	u64map_init(&ring.known);
	for (size_t i = 0; i < process->heap_count; i++)
		u64map_add(&ring.known, process->heaps[i], &unused);
	snapshot_init(&ring.modules);
	if (memory->target->ops->modules(memory->target, &ring.modules, &ignored))
		ring.modules.module_count = 0;
	rc = follow(&ring, first);
	snapshot_release(&ring.modules);
	u64map_release(&ring.known);
	return rc;
}
