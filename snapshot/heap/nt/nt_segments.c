/* NT heaps as a whole. Opens a heap, divides its segments into runs of committed blocks, and walks
 * the runs, the LFH containers and the large blocks. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "snapshot/heap/nt/nt.h"

/* Adds a large block. Large blocks have memory of their own and are in a list of the heap. */
static int add_large(void *ctx, uint64_t link)
{
	struct nt_heap *heap = ctx;
	struct target *target = heap->nt->memory->target;
	const struct nt_common_layout *layout = heap->layout->common;
	const unsigned char *bytes = memory_at(heap->nt->memory, link, layout->virtual_bytes);
	uint64_t commit, reserve, end;
	struct nt_header header;
	struct nt_block block;
	int rc;

	if (!bytes)
		return walk_missing(heap->nt->walk, link, "unreadable large block");
	commit = bytes_ptr(bytes + layout->virtual_commit, heap->layout->bits);
	reserve = bytes_ptr(bytes + layout->virtual_reserve, heap->layout->bits);
	if (!nt_header_decode(bytes_u64(bytes + layout->virtual_entry + layout->entry_coded),
		    heap->key, &header) &&
		heap->is_coded)
		return walk_broken(heap->nt->walk, link, "large block whose checksum is wrong");
	if (commit < layout->virtual_bytes || commit > reserve || reserve > TARGET_SPACE_BYTES)
		return walk_broken(heap->nt->walk, link, "large block of an impossible size");
	end = target_committed_end(target, link, link + commit);
	if (end < link + commit)
		walk_broken(heap->nt->walk, link, "large block that is partly unmapped");
	else if (end < link + reserve && target->ops->region &&
		 target_committed_end(target, end, end + 1) > end)
		walk_doubt(heap->nt->walk, link,
			"large block with more committed memory than its size");
	commit = end - link;
	rc = claims_add(&heap->nt->claims, link, commit);
	if (rc == -ERR_TARGET)
		return walk_broken(heap->nt->walk, link, "more heap memory than the process has");
	heap->committed_bytes += commit;
	heap->reserved_bytes += reserve;
	block = (struct nt_block){
		.entry = link + layout->virtual_entry,
		.size_bytes = commit,
		.unused = header.units,
		.is_large = true,
		.may_be_extended = heap->has_prefixes,
	};
	nt_span_forget(&heap->span);
	return rc ? rc : nt_block_add(heap, &block);
}

bool nt_backend_is_at(struct nt_walk *nt, uint64_t addr)
{
	const struct nt_layout *layout =
		nt_layout_find(nt->memory, nt->process->bits, addr, nt->process->os_build);
	uint32_t signature = 0, object = 0;
	uint64_t heap = 0;

	return layout &&
	       !memory_u32(nt->memory, addr + layout->common->segment_signature, &signature) &&
	       signature == NT_HEAP_SIGNATURE &&
	       !memory_u32(nt->memory, addr + layout->signature, &object) &&
	       object == NT_HEAP_OBJECT_SIGNATURE &&
	       !memory_ptr(nt->memory, layout->bits, addr + layout->common->segment_heap, &heap) &&
	       heap == addr;
}

bool nt_heap_open(struct nt_heap *heap, struct nt_walk *nt, uint64_t addr)
{
	struct memory *memory = nt->memory;
	const struct nt_layout *layout =
		nt_layout_find(memory, nt->process->bits, addr, nt->process->os_build);
	uint32_t mask = 0, interceptor = 0, flags = nt->process->global_flag;

	*heap = (struct nt_heap){
		.nt = nt, .layout = layout, .addr = addr, .span = {.memory = memory}};
	if (!layout)
		return false;
	if (memory_u32(memory, addr + layout->encode_mask, &mask) ||
		memory_u32(memory, addr + layout->interceptor, &interceptor) ||
		memory_u64(
			memory, addr + layout->encoding + layout->common->entry_coded, &heap->key))
		walk_missing(nt->walk, addr, "unreadable heap");
	heap->is_coded = mask != 0;
	if (!heap->is_coded)
		heap->key = 0;
	heap->has_prefixes = interceptor || (flags & NT_FLAG_UST);
	heap->has_page_blocks = flags & NT_FLAG_HPA;
	return true;
}

void nt_heap_close(struct nt_heap *heap)
{
	extents_release(&heap->runs);
	extents_release(&heap->gaps);
	nt_lfh_release(&heap->lfh);
}

static int walk_parts(struct nt_heap *heap)
{
	const struct nt_list larges = {
		.head = heap->addr + heap->layout->virtual_list, .each = add_large, .ctx = heap};
	int rc = nt_segments_find(heap);

	if (!rc)
		rc = nt_lfh_open(heap);
	nt_span_forget(&heap->span);
	for (size_t i = 0; !rc && i < heap->runs.count; i++)
		rc = nt_chain_walk(heap, &heap->runs.list[i]);
	extents_sort(&heap->gaps, NULL);
	if (!rc)
		rc = nt_lfh_walk(heap);
	return rc ? rc : nt_list_walk(heap->nt, &larges);
}

int nt_backend_walk(struct nt_walk *nt, uint64_t addr)
{
	struct heap found = {.addr = addr, .bits = nt->process->bits, .kind = "nt"};
	size_t index = nt->walk->heap_count;
	struct nt_heap heap;
	const char *fault;
	int rc;

	found.unwalked = !nt_heap_open(&heap, nt, addr);
	found.layout = found.unwalked ? NULL : heap.layout->name;
	rc = walk_add_heap(nt->walk, &found);
	if (rc || found.unwalked)
		return rc;
	fault = nt_layout_fault(nt->memory, heap.layout, addr);
	if (fault)
		walk_doubt(nt->walk, addr, fault);
	nt->walk->busy_count += nt_heap_is_busy(nt->memory, nt->process, addr);
	rc = walk_parts(&heap);
	nt->walk->heaps[index].committed_bytes = heap.committed_bytes;
	nt->walk->heaps[index].reserved_bytes = heap.reserved_bytes;
	nt_heap_close(&heap);
	return rc;
}

bool nt_heap_is_busy(struct memory *memory, const struct nt_process *process, uint64_t addr)
{
	unsigned bits = process->bits;
	const struct nt_layout *layout;
	uint64_t lock = 0, owner = 0;
	uint32_t signature = 0;

	if (memory_u32(memory, addr + NT_HEAP_SIGNATURE_AT(bits), &signature) ||
		signature != NT_HEAP_SIGNATURE)
		return false;
	layout = nt_layout_find(memory, bits, addr, process->os_build);
	if (!layout || memory_ptr(memory, bits, addr + layout->lock, &lock) || !lock ||
		memory_ptr(memory, bits, lock + layout->common->lock_owner, &owner))
		return false;
	return target_lock_is_held(memory->target, owner);
}

/* The segments of an NT heap, and their committed parts. */

struct segment {
	/* header of the first block; end of the last block */
	uint64_t addr, first, end;
	uint64_t reserved_bytes;
	uint32_t hole_pages; /* number of uncommitted pages, according to the segment */
};

struct nt_finder {
	struct nt_heap *heap;
	struct segment *segments;
	size_t count, cap;
	struct extents holes; /* uncommitted ranges of one segment */
	const struct segment *segment; /* segment that contains the holes */
};

/*
 * Records a warning if blocks may be hidden at either end of a segment. A segment begins with an
 * entry that should end where the first block begins. The last block should end at the end of the
 * segment.
 */
static void check_ends(
	struct nt_heap *heap, const unsigned char *bytes, const struct segment *segment)
{
	const struct nt_common_layout *layout = heap->layout->common;
	struct nt_header header;

	if ((!nt_header_decode(bytes_u64(bytes + layout->entry_coded), heap->key, &header) &&
		    heap->is_coded) ||
		(uint64_t)header.units * layout->unit != segment->first - segment->addr)
		walk_doubt(heap->nt->walk, segment->addr,
			"segment whose first block is not where its own entry ends");
	if (segment->end - segment->addr != segment->reserved_bytes)
		walk_doubt(heap->nt->walk, segment->addr,
			"segment whose blocks do not go up to its end");
}

static const char unreadable[] = "unreadable segment";

/* Reads the segment at addr. Returns NULL or a description of the fault. */
static const char *read_segment(struct nt_heap *heap, uint64_t addr, struct segment *segment)
{
	const struct nt_common_layout *layout = heap->layout->common;
	const unsigned char *bytes = memory_at(heap->nt->memory, addr, layout->segment_bytes);
	unsigned bits = heap->layout->bits;
	uint64_t reserved;

	if (!bytes)
		return unreadable;
	if (bytes_u32(bytes + layout->segment_signature) != NT_HEAP_SIGNATURE ||
		bytes_ptr(bytes + layout->segment_heap, bits) != heap->addr ||
		bytes_ptr(bytes + layout->segment_base, bits) != addr)
		return "segment of another heap";
	reserved = (uint64_t)bytes_u32(bytes + layout->segment_pages) * NT_PAGE_BYTES;
	segment->addr = addr;
	segment->reserved_bytes = reserved;
	segment->hole_pages = bytes_u32(bytes + layout->segment_hole_pages);
	segment->first = bytes_ptr(bytes + layout->segment_first, bits);
	segment->end = bytes_ptr(bytes + layout->segment_end, bits);
	if (segment->first <= addr || segment->first - addr >= reserved ||
		reserved > TARGET_SPACE_BYTES || addr > TARGET_SPACE_BYTES - reserved)
		return "segment of an impossible size";
	if (segment->end < segment->first || segment->end - addr > reserved) {
		walk_broken(heap->nt->walk, addr, "segment whose end is inconsistent");
		segment->end = addr + reserved;
	}
	check_ends(heap, bytes, segment);
	if (addr == heap->addr)
		heap->own_end = segment->first;
	return NULL;
}

static int add_segment(void *ctx, uint64_t link)
{
	struct nt_finder *finder = ctx;
	struct nt_heap *heap = finder->heap;
	uint64_t addr = link - heap->layout->common->segment_link;
	struct segment segment;
	const char *fault = read_segment(heap, addr, &segment);

	if (fault == unreadable)
		return walk_missing(heap->nt->walk, addr, fault);
	if (fault)
		return walk_broken(heap->nt->walk, addr, fault);
	if (array_try_grow((void **)&finder->segments, &finder->cap, finder->count,
		    sizeof(*finder->segments)))
		return -ERR_NOMEM;
	finder->segments[finder->count++] = segment;
	return 0;
}

static int add_hole(void *ctx, uint64_t link)
{
	struct nt_finder *finder = ctx;
	struct nt_heap *heap = finder->heap;
	const struct nt_common_layout *layout = heap->layout->common;
	uint64_t descriptor = link - layout->hole_link, addr, bytes;
	const unsigned char *at = memory_at(heap->nt->memory, descriptor, layout->hole_bytes);

	if (!at)
		return walk_missing(heap->nt->walk, descriptor, "unreadable uncommitted range");
	addr = bytes_ptr(at + layout->hole_address, heap->layout->bits);
	bytes = bytes_ptr(at + layout->hole_size, heap->layout->bits);
	/* If a segment is committed up to its end, its list has an empty range there. */
	if (!bytes && addr == finder->segment->end)
		return 0;
	if (!bytes || addr < finder->segment->first || addr >= finder->segment->end ||
		bytes > finder->segment->end - addr)
		return walk_broken(heap->nt->walk, descriptor, "impossible uncommitted range");
	return extents_add(&finder->holes, &(struct extent){.addr = addr, .end = addr + bytes});
}

/* Claims the committed memory in [`from`, `end`) and sets `*claimed_end` to `end`. If the claims
 * would exceed the memory of the process, stops, and sets `*claimed_end` to the address where it
 * stopped. */
static int claim(struct nt_heap *heap, uint64_t from, uint64_t end, uint64_t *claimed_end)
{
	struct target *target = heap->nt->memory->target;
	uint64_t at = from;

	while (at < end) {
		struct target_region region = {.addr = at, .end = end};
		int rc;

		if (target->ops->region && target->ops->region(target, at, &region))
			break;
		if (region.addr >= end || region.end <= at)
			break;
		at = region.addr > at ? region.addr : at;
		region.end = region.end < end ? region.end : end;
		rc = claims_add(&heap->nt->claims, at, region.end - at);
		if (rc == -ERR_TARGET) {
			*claimed_end = at;
			return walk_broken(
				heap->nt->walk, at, "more heap memory than the process has");
		}
		if (rc)
			return rc;
		at = region.end;
	}
	*claimed_end = end;
	return 0;
}

/* Adds a run of blocks, and counts the run's committed memory. The committed memory begins at
 * `from`: at the segment's header, or at the end of an uncommitted range. */
static int add_run(struct nt_heap *heap, uint64_t from, struct extent run)
{
	uint64_t claimed_end = from;
	int rc = from < run.end ? claim(heap, from, run.end, &claimed_end) : 0;

	heap->committed_bytes += run.end - from;
	run.end = claimed_end;
	if (!rc && from < run.end)
		rc = walk_add_container(heap->nt->walk, from, run.end - from, CONTAINER_SEGMENT);
	if (!rc && run.addr < run.end)
		rc = extents_add(&heap->runs, &run);
	return rc;
}

/* Records a warning if the total size of the uncommitted ranges differs from the segment's own
 * count. A range whose size is too large hides blocks. */
static void check_holes(struct nt_finder *finder, const struct segment *segment)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < finder->holes.count; i++)
		bytes += finder->holes.list[i].end - finder->holes.list[i].addr;
	if (bytes != (uint64_t)segment->hole_pages * NT_PAGE_BYTES)
		walk_doubt(finder->heap->nt->walk, segment->addr,
			"uncommitted ranges whose sum differs from the segment's record");
}

static int split_segment(struct nt_finder *finder, const struct segment *segment)
{
	struct nt_heap *heap = finder->heap;
	struct nt_list list = {
		.head = segment->addr + heap->layout->common->segment_holes,
		.each = add_hole,
		.ctx = finder,
	};
	struct extent run = {.addr = segment->first, .segment = segment->addr};
	unsigned missing_count = heap->nt->walk->missing_count;
	uint64_t from = segment->addr;
	int rc = walk_add_own(heap->nt->walk, segment->addr);

	finder->holes.count = 0;
	finder->segment = segment;
	rc = rc ? rc : nt_list_walk(heap->nt, &list);
	if (heap->nt->walk->missing_count == missing_count)
		check_holes(finder, segment);
	if (extents_sort(&finder->holes, NULL))
		walk_broken(heap->nt->walk, segment->addr, "uncommitted ranges that overlap");
	heap->reserved_bytes += segment->reserved_bytes;
	for (size_t i = 0; !rc && i < finder->holes.count; i++) {
		run.end = finder->holes.list[i].addr;
		rc = add_run(heap, from, run);
		from = run.addr = finder->holes.list[i].end;
	}
	run.end = segment->end;
	return rc ? rc : add_run(heap, from, run);
}

static int segment_by_addr(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int nt_segments_find(struct nt_heap *heap)
{
	struct nt_finder finder = {.heap = heap};
	struct nt_list list = {
		.head = heap->addr + heap->layout->segment_list,
		.each = add_segment,
		.ctx = &finder,
	};
	uint64_t end = 0;
	int rc = nt_list_walk(heap->nt, &list);

	/* A heap begins with a segment, so use that segment even if the list is damaged. */
	if (!rc && !finder.count)
		rc = add_segment(&finder, heap->addr + heap->layout->common->segment_link);
	if (finder.count)
		qsort(finder.segments, finder.count, sizeof(*finder.segments), segment_by_addr);
	for (size_t i = 0; !rc && i < finder.count; i++) {
		const struct segment *segment = &finder.segments[i];

		if (segment->addr < end) {
			walk_broken(heap->nt->walk, segment->addr, "segments that overlap");
			continue;
		}
		end = segment->end;
		rc = split_segment(&finder, segment);
	}
	extents_sort(&heap->runs, NULL);
	free(finder.segments);
	extents_release(&finder.holes);
	return rc;
}
