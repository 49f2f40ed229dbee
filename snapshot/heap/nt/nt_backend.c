#include "snapshot/heap/nt/nt_chain.h"

/* How far from..end is committed, as far as that is known. */
static uint64_t committed_end(const struct nt_heap *heap, uint64_t from, uint64_t end)
{
	struct target *target = heap->nt->memory->target;
	struct target_region region;
	uint64_t at = from;

	if (!target->ops->region)
		return end;
	while (at < end && !target->ops->region(target, at, &region) && region.addr <= at &&
		region.end > at)
		at = region.end;
	return at < end ? at : end;
}

static bool is_committed(const struct nt_heap *heap, uint64_t addr)
{
	struct target *target = heap->nt->memory->target;
	struct target_region region;

	return target->ops->region && !target->ops->region(target, addr, &region) &&
	       region.addr <= addr && region.end > addr;
}

/* A block that has its own memory: it is on the heap's list of these. */
static int add_large(void *ctx, uint64_t link)
{
	struct nt_heap *heap = ctx;
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
	end = committed_end(heap, link, link + commit);
	if (end < link + commit)
		walk_broken(heap->nt->walk, link, "large block that is not all there");
	else if (end < link + reserve && is_committed(heap, end))
		walk_doubt(heap->nt->walk, link, "large block of less than is committed for it");
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

static int walk_large(struct nt_heap *heap)
{
	struct nt_list list = {
		.head = heap->addr + heap->layout->virtual_list,
		.each = add_large,
		.ctx = heap,
	};

	return nt_list_walk(heap->nt, &list);
}

static int walk_runs(struct nt_heap *heap)
{
	int rc = 0;

	nt_span_forget(&heap->span);
	for (size_t i = 0; !rc && i < heap->runs.count; i++)
		rc = nt_chain_walk(heap, &heap->runs.list[i]);
	nt_parts_sort(&heap->gaps);
	return rc;
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
	nt_parts_release(&heap->runs);
	nt_parts_release(&heap->gaps);
	nt_lfh_release(&heap->lfh);
}

static int walk_parts(struct nt_heap *heap)
{
	int rc = nt_segments_find(heap);

	if (!rc)
		rc = nt_lfh_open(heap);
	if (!rc)
		rc = walk_runs(heap);
	if (!rc)
		rc = nt_lfh_walk(heap);
	if (!rc)
		rc = walk_large(heap);
	return rc;
}

int nt_backend_walk(struct nt_walk *nt, uint64_t addr)
{
	struct heap found = {.addr = addr, .bits = nt->process->bits, .kind = "nt"};
	size_t index = nt->walk->heap_count;
	struct nt_heap heap;
	const char *fault;
	int rc;

	found.unwalked = !nt_heap_open(&heap, nt, addr);
	found.layout = heap.layout ? heap.layout->name : NULL;
	rc = walk_add_heap(nt->walk, &found);
	if (rc)
		return rc;
	if (found.unwalked)
		return walk_broken(nt->walk, addr, "heap of no layout that is known");
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
	return owner != 0;
}
