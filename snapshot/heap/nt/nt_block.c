#include "snapshot/heap/nt/nt_block.h"

const unsigned char *nt_span_seek(struct nt_span *span, uint64_t addr, size_t len)
{
	size_t left = 0;
	const unsigned char *bytes = memory_from(span->memory, addr, &left);

	if (bytes && left < len) {
		bytes = memory_at(span->memory, addr, len);
		left = len;
	}
	span->addr = addr;
	span->len = bytes ? left : 0;
	span->bytes = bytes;
	return bytes;
}

/* The prefix of a block that has one: true. */
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

/* What would be a prefix, but for a number in it. Any bytes may look like that, two of 65536 do. */
static bool has_damaged_prefix(
	const struct nt_common_layout *layout, struct nt_span *span, const struct nt_block *block)
{
	const unsigned char *bytes = nt_span_at(span, block->entry, layout->prefix_user);

	return bytes && bytes_u64(bytes + layout->prefix_header) >> NT_EXTENDED_SIGNATURE ==
				NT_EXTENDED_VALUE >> NT_EXTENDED_SIGNATURE;
}

/*
 * The number of unused bytes that does not fit into the header: in the block's last slot for a
 * pointer. On x64 a block reaches into the next header, whose first 8 bytes are its last ones then.
 * 0: none that could be.
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

void nt_block_parse(const struct nt_common_layout *layout, unsigned bits, struct nt_span *span,
	const struct nt_block *block, struct nt_found *found)
{
	uint64_t unused = block->unused;

	*found = (struct nt_found){.addr = block->entry + layout->entry_bytes};
	if ((block->is_extended || block->may_be_extended) &&
		parse_prefix(layout, bits, span, block, found))
		return;
	if (block->is_extended)
		found->doubt = "block without the prefix that its header promises";
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
