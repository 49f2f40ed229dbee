/* Blocks of an NT heap. The first part finds the program's bytes in a block, after the header and
 * possibly a prefix. The second part walks the chain of blocks in a run and resumes after
 * damage. */
#include "snapshot/heap/nt/nt.h"
#include "snapshot/heap/page_layout.h"

const unsigned char *nt_span_seek(struct nt_span *span, uint64_t addr, size_t len)
{
	size_t left = 0;
	const unsigned char *bytes = memory_from(span->memory, addr, &left);

	if (bytes && left < len) {
		bytes = memory_at(span->memory, addr, len);
		left = len;
	}
	span->seen = (struct memory_seen){addr, bytes ? left : 0, bytes};
	return bytes;
}

/* Parses the prefix of a block. Returns false if the block has no prefix. */
static bool parse_prefix(const struct nt_common_layout *layout, unsigned bits, struct nt_span *span,
	const struct nt_block *block, struct nt_found *found)
{
	uint64_t header, unused;
	const unsigned char *bytes;

	if (block->size_bytes < layout->prefix_unused_min)
		return false;
	bytes = nt_span_at(span, block->entry, layout->prefix_user);
	if (!bytes)
		return false;
	header = bytes_u64(bytes + layout->prefix_header);
	unused = header >> NT_EXTENDED_UNUSED & 0xffff;
	if ((header & NT_EXTENDED_MASK) != NT_EXTENDED_VALUE ||
		unused < layout->prefix_unused_min || unused > block->size_bytes)
		return false;
	found->addr = block->entry + layout->prefix_user;
	found->requested_bytes = block->size_bytes - unused;
	found->record = bytes_ptr(bytes + layout->prefix_record, bits);
	if (found->record == layout->no_record)
		found->record = 0;
	return true;
}

/* Returns true if the block has the signature of a prefix, but another field of the prefix is
 * wrong. Arbitrary bytes can match, because the signature has only 16 bits. */
static bool has_damaged_prefix(
	const struct nt_common_layout *layout, struct nt_span *span, const struct nt_block *block)
{
	const unsigned char *bytes = nt_span_at(span, block->entry, layout->prefix_user);

	return bytes && bytes_u64(bytes + layout->prefix_header) >> NT_EXTENDED_SIGNATURE ==
				NT_EXTENDED_VALUE >> NT_EXTENDED_SIGNATURE;
}

/*
 * Returns the number of unused bytes of a block whose header has no room for that number. The
 * number is then in the last pointer-sized slot of the block. On x64 a block extends into the next
 * header, so that slot may be the first 8 bytes of the next header. Returns 0 if neither slot
 * contains a possible number.
 */
static uint64_t long_unused(const struct nt_common_layout *layout, unsigned bits,
	struct nt_span *span, const struct nt_block *block)
{
	uint64_t slot = block->entry + block->size_bytes - bits / 8;

	for (unsigned i = 0; i < (layout->entry_coded ? 2 : 1); i++, slot += bits / 8) {
		const unsigned char *bytes = nt_span_at(span, slot, bits / 8);
		uint64_t unused = bytes ? bytes_ptr(bytes, bits) : 0;

		if (unused >= NT_UNUSED_LONG && unused <= block->size_bytes)
			return unused;
	}
	return 0;
}

/* Finds the address and size of the program's part of a block. If the block is in doubt, the size
 * is the largest possible. */
static void nt_block_parse(const struct nt_common_layout *layout, unsigned bits,
	struct nt_span *span, const struct nt_block *block, struct nt_found *found)
{
	uint64_t unused = block->unused;

	*found = (struct nt_found){.addr = block->entry + layout->entry_bytes};
	if ((block->is_extended || block->may_be_extended) &&
		parse_prefix(layout, bits, span, block, found))
		return;
	if (block->is_extended)
		found->doubt = "block without the prefix that its header announces";
	else if (block->is_large && block->may_be_extended &&
		 has_damaged_prefix(layout, span, block))
		found->doubt = "large block with a damaged prefix";
	else if (unused == NT_UNUSED_LONG && !block->is_large)
		unused = long_unused(layout, bits, span, block);
	if (!found->doubt && (unused < NT_UNUSED_MIN || unused > block->size_bytes))
		found->doubt = "block with an impossible number of unused bytes";
	if (found->doubt)
		unused = NT_UNUSED_MIN;
	found->requested_bytes = block->size_bytes > unused ? block->size_bytes - unused : 0;
}

#define PREVIOUS_ANY UINT32_MAX

static const char not_there[] = "heap memory";

/* Reads and checks the header at `at`. Returns NULL or a description of the fault. A dump file may
 * contain zeros in place of memory that was omitted. An encoded header is never 0, so zeros count
 * as missing memory. */
static inline const char *header_at(struct nt_heap *heap, uint64_t at, uint64_t end,
	uint32_t previous, struct nt_header *header)
{
	const struct nt_common_layout *layout = heap->layout->common;
	const unsigned char *bytes = nt_span_at(&heap->span, at, layout->entry_bytes);
	uint64_t coded = bytes ? bytes_u64(bytes + layout->entry_coded) : 0;

	if (!bytes || (!coded && heap->is_coded && heap->nt->memory->target->is_file))
		return not_there;
	if (!nt_header_decode(coded, heap->key, header) && heap->is_coded)
		return "block whose checksum is wrong";
	if (!header->units || (uint64_t)header->units * layout->unit > end - at)
		return "block of an impossible size";
	if (previous != PREVIOUS_ANY && header->previous_units != previous)
		return "block that does not follow the previous one";
	return NULL;
}

/* Returns the next address above `at` where memory may exist, or end. */
static uint64_t next_memory(struct nt_heap *heap, uint64_t at, uint64_t end)
{
	struct target *target = heap->nt->memory->target;
	struct target_region region;
	uint64_t next = (at | (NT_PAGE_BYTES - 1)) + 1;

	if (target->ops->region) {
		if (target->ops->region(target, at, &region))
			return end;
		next = region.addr > at ? region.addr : region.end;
	} else if (!heap->nt->probes_left || !heap->nt->probes_left--) {
		return end;
	}
	next += (uint64_t) - (int64_t)next & (heap->layout->common->unit - 1);
	return next > at && next < end ? next : end;
}

/* Returns true if the segment number in a header matches the address of the block. In the heap's
 * first segment, the number is 0. In other segments, it is 1 plus the number of whole 64 KiB units
 * before the block. If that does not fit into a byte, any number matches. */
static inline bool is_of_segment(
	const struct nt_heap *heap, uint64_t segment, uint64_t at, const struct nt_header *header)
{
	uint64_t number = segment == heap->addr ? 0 : 1 + (at - segment) / 0x10000;

	return header->segment == number || number > UINT8_MAX;
}

/* Returns true if a block begins at `at`. The block must be followed by a matching header or by the
 * end of the run. */
static bool is_block(struct nt_heap *heap, const struct extent *run, uint64_t at)
{
	struct nt_header header, next;

	if (header_at(heap, at, run->end, PREVIOUS_ANY, &header) ||
		!is_of_segment(heap, run->segment, at, &header))
		return false;
	at += (uint64_t)header.units * heap->layout->common->unit;
	return at == run->end || !header_at(heap, at, run->end, header.units, &next);
}

/* Returns the first address at or after `at` where the walk can resume, or the run's end. */
static uint64_t resume(struct nt_heap *heap, const struct extent *run, uint64_t at)
{
	while (at < run->end && !is_block(heap, run, at)) {
		if (nt_span_at(&heap->span, at, heap->layout->common->entry_bytes))
			at += heap->layout->common->unit;
		else
			at = next_memory(heap, at, run->end);
	}
	return at < run->end ? at : run->end;
}

/* Records the fault at `at`. Sets `*next` to the address where the walk resumes. */
static int skip(struct nt_heap *heap, const struct extent *run, uint64_t at, const char *what,
	uint64_t *next)
{
	if (what == not_there)
		walk_missing(heap->nt->walk, at, what);
	else
		walk_broken(heap->nt->walk, at, what);
	*next = resume(heap, run, at);
	if (*next == at)
		return 0;
	return extents_add(&heap->gaps, &(struct extent){.addr = at, .end = *next});
}

/* If the bytes in `*found` contain a block of a light page heap, replaces `*found` with that block.
 * Such a block consists of page heap information and the user's bytes. */
static void find_page_block(struct nt_heap *heap, struct nt_found *found)
{
	uint64_t info_bytes = page_layout(heap->layout->bits)->info_bytes;
	uint64_t addr = found->addr + info_bytes;
	struct page_block block;
	bool is_one;

	if (found->requested_bytes < info_bytes)
		return;
	is_one = page_block_parse(heap->nt->memory, heap->layout->bits, addr, &block) &&
		 !block.is_full && block.requested_bytes <= found->requested_bytes - info_bytes;
	if (!is_one && page_block_is_damaged(heap->nt->memory, heap->layout->bits, addr))
		walk_doubt(heap->nt->walk, addr - info_bytes,
			"invalid page heap information before a block");
	nt_span_forget(&heap->span);
	if (!is_one)
		return;
	found->addr = addr;
	found->requested_bytes = block.requested_bytes;
	found->record = block.record ? block.record : found->record;
}

int nt_block_add(struct nt_heap *heap, const struct nt_block *block)
{
	struct nt_found found;

	nt_block_parse(heap->layout->common, heap->layout->bits, &heap->span, block, &found);
	if (heap->has_page_blocks)
		find_page_block(heap, &found);
	if (found.doubt)
		walk_broken(heap->nt->walk, block->entry, found.doubt);
	return walk_add_block(heap->nt->walk, found.addr, found.requested_bytes,
		block->size_bytes - found.requested_bytes, found.record);
}

/*
 * Returns true if a block is marked as Windows' own and is in a place for such blocks: directly
 * after the _HEAP, or before uncommitted memory.
 */
static bool is_own(struct nt_heap *heap, uint64_t at, uint64_t block_end, uint64_t run_end,
	const struct nt_header *header)
{
	const struct nt_common_layout *layout = heap->layout->common;

	/* a block with NT_UNUSED_END contains the _HEAP_UCR_DESCRIPTOR of the uncommitted memory
	 * after it */
	if (header->unused == NT_UNUSED_END &&
		block_end - at == (uint64_t)layout->entry_bytes + layout->hole_bytes)
		return block_end == run_end || !nt_span_at(&heap->span, block_end, 1);
	if (header->unused != NT_UNUSED_OWN || at != heap->own_end)
		return false;
	heap->own_end = block_end;
	return true;
}

/* Handles a block in use: a block of the program, a container, or one of Windows' own blocks. */
static int handle_block(
	struct nt_heap *heap, uint64_t at, uint64_t run_end, const struct nt_header *header)
{
	struct nt_block block = {
		.entry = at,
		.size_bytes = (uint64_t)header->units * heap->layout->common->unit,
		.unused = header->unused,
		.is_extended =
			header->unused == NT_UNUSED_EXTENDED ||
			(header->unused & (NT_UNUSED_LFH | NT_UNUSED_OFFSET)) == NT_UNUSED_OFFSET,
		.may_be_extended = heap->has_prefixes,
	};
	uint64_t user = at + heap->layout->common->entry_bytes, block_end = at + block.size_bytes;

	if (is_own(heap, at, block_end, run_end, header))
		return 0;
	if (header->flags & NT_BLOCK_INTERNAL || nt_lfh_lists(heap, user, block_end))
		return nt_lfh_note(heap, user, block_end);
	if (nt_lfh_owns(&heap->lfh, user, block_end))
		return 0;
	if (header->unused == NT_UNUSED_OWN)
		return walk_doubt(heap->nt->walk, at, "block marked as Windows' own");
	return nt_block_add(heap, &block);
}

int nt_chain_walk(struct nt_heap *heap, const struct extent *run)
{
	unsigned unit = heap->layout->common->unit;
	uint32_t previous = PREVIOUS_ANY;
	uint64_t at = run->addr, end = run->end;
	int rc = 0;

	while (at < end && !rc) {
		struct nt_header header;
		const char *fault = header_at(heap, at, end, previous, &header);

		if (fault) {
			rc = skip(heap, run, at, fault, &at);
			previous = PREVIOUS_ANY;
			continue;
		}
		if (!is_of_segment(heap, run->segment, at, &header))
			walk_doubt(heap->nt->walk, at, "block of another segment");
		if (header.flags & NT_BLOCK_BUSY)
			rc = handle_block(heap, at, end, &header);
		previous = header.units;
		at += (uint64_t)header.units * unit;
		memory_fetch(&heap->span.seen, at, MEMORY_AHEAD_BYTES);
	}
	return rc;
}
