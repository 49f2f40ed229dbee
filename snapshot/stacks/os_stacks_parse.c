#include "snapshot/stacks/os_stacks_parse.h"

#include <stdlib.h>

#include "core/buf.h"
#include "snapshot/stacks/os_stacks_layout.h"
#include "snapshot/target/target_memory.h"

#define VERSIONS_MAX 15 /* of a header; 1 and 2 are known */

struct os_block {
	uint64_t addr, bytes;
	size_t first_frame; /* index into frames */
	uint32_t frame_count, order; /* of the answer */
};

struct os_stacks {
	struct os_block *blocks;
	size_t block_count, block_cap;
	uint64_t *frames;
	size_t frame_count, frame_cap;
	unsigned bits; /* 0: no header yet */
	bool has_init, is_stack_over;
	int rc;
};

struct os_stacks *os_stacks_new(void)
{
	return calloc(1, sizeof(struct os_stacks));
}

void os_stacks_free(struct os_stacks *stacks)
{
	if (!stacks)
		return;
	free(stacks->blocks);
	free(stacks->frames);
	free(stacks);
}

/* An address that a process of these bits can have. */
static bool is_address(uint64_t addr, unsigned bits)
{
	return addr && addr < (bits == 64 ? TARGET_SPACE_BYTES : (uint64_t)1 << 32);
}

/* The bits that a header says, or 0 when it is none. */
static unsigned header_bits(const unsigned char *bytes, size_t len)
{
	unsigned version = bytes_u16(bytes + OS_STACKS_HEADER_VERSION);
	unsigned bits = bytes_u16(bytes + OS_STACKS_HEADER_POINTER) * 8u;
	const struct os_stacks_layout *layout;

	if (!version || version > VERSIONS_MAX || (bits != 32 && bits != 64))
		return 0;
	layout = os_stacks_layout(bits);
	return len == layout->header_bytes || len == layout->old_header_bytes ? bits : 0;
}

/* A 32-bit process's old header is as long as an allocation; but no block lies at an address like
 * 0x40001. */
static bool is_header(const struct os_stacks *stacks, const unsigned char *bytes, size_t len)
{
	const struct os_stacks_layout *layout = os_stacks_layout(stacks->bits);

	if (len == layout->allocation_bytes)
		return header_bits(bytes, len) == stacks->bits && bytes[0] % 8;
	return len == layout->header_bytes || len == layout->old_header_bytes;
}

static int put_header(struct os_stacks *stacks, const unsigned char *bytes, size_t len)
{
	unsigned bits = header_bits(bytes, len);

	if (!bits || (stacks->bits && bits != stacks->bits))
		return -ERR_TARGET;
	stacks->bits = bits;
	stacks->is_stack_over = true; /* frames come after an allocation */
	return 0;
}

static int put_allocation(struct os_stacks *stacks, const unsigned char *bytes)
{
	const struct os_stacks_layout *layout = os_stacks_layout(stacks->bits);
	struct os_block block = {
		.addr = bytes_ptr(bytes + layout->allocation_address, stacks->bits),
		.bytes = bytes_ptr(bytes + layout->allocation_size, stacks->bits),
		.first_frame = stacks->frame_count,
		.order = (uint32_t)stacks->block_count};

	if (!is_address(block.addr, stacks->bits) || block.bytes >= TARGET_SPACE_BYTES)
		return -ERR_TARGET;
	if (stacks->block_count == OS_STACKS_BLOCKS_MAX ||
		array_grow((void **)&stacks->blocks, &stacks->block_cap, stacks->block_count,
			sizeof(*stacks->blocks)))
		return -ERR_NOMEM;
	stacks->blocks[stacks->block_count++] = block;
	stacks->is_stack_over = false;
	return 0;
}

/* One frame of the block put last: NULL ends its stack, what is too deep is not kept. */
static int put_frame(struct os_stacks *stacks, uint64_t frame)
{
	struct os_block *block = &stacks->blocks[stacks->block_count - 1];

	if (!frame)
		stacks->is_stack_over = true;
	if (stacks->is_stack_over || block->frame_count == OS_STACKS_DEPTH_MAX)
		return 0;
	if (!is_address(frame, stacks->bits))
		return -ERR_TARGET;
	if (array_grow((void **)&stacks->frames, &stacks->frame_cap, stacks->frame_count,
		    sizeof(*stacks->frames)))
		return -ERR_NOMEM;
	stacks->frames[stacks->frame_count++] = frame;
	block->frame_count++;
	return 0;
}

static int put_groups(struct os_stacks *stacks, const unsigned char *bytes, size_t len)
{
	size_t pointer = stacks->bits / 8;
	int rc = len && !stacks->block_count ? -ERR_TARGET : 0;

	for (size_t at = 0; !rc && at < len; at += pointer)
		rc = put_frame(stacks, bytes_ptr(bytes + at, stacks->bits));
	return rc;
}

static int put(struct os_stacks *stacks, const unsigned char *bytes, size_t len)
{
	const struct os_stacks_layout *layout = os_stacks_layout(stacks->bits);
	int rc;

	if (!stacks->has_init) {
		stacks->has_init = len == OS_STACKS_INIT_BYTES;
		return stacks->has_init ? 0 : -ERR_TARGET;
	}
	if (len < OS_STACKS_INIT_BYTES)
		return -ERR_TARGET;
	if (!stacks->bits || is_header(stacks, bytes, len))
		return put_header(stacks, bytes, len);
	if (len % layout->group_bytes == 0)
		return put_groups(stacks, bytes, len);
	/* An allocation may bring its frames along. */
	if (len < layout->allocation_bytes ||
		(len - layout->allocation_bytes) % layout->group_bytes)
		return -ERR_TARGET;
	rc = put_allocation(stacks, bytes);
	return rc ? rc :
		    put_groups(stacks, bytes + layout->allocation_bytes,
			    len - layout->allocation_bytes);
}

int os_stacks_put(struct os_stacks *stacks, const void *bytes, size_t len)
{
	if (!stacks->rc)
		stacks->rc = put(stacks, bytes, len);
	return stacks->rc;
}

bool os_stacks_is_begun(const struct os_stacks *stacks)
{
	return stacks->has_init || stacks->rc;
}

/* By address; of one address the one that was told last comes first. */
static int compare(const void *a, const void *b)
{
	const struct os_block *left = a, *right = b;

	if (left->addr != right->addr)
		return left->addr < right->addr ? -1 : 1;
	return left->order < right->order ? 1 : -1;
}

/* A block that was freed and allocated again meanwhile is told twice: the later one counts. */
static void keep_last(struct os_stacks *stacks)
{
	size_t kept = 0;

	for (size_t i = 0; i < stacks->block_count; i++) {
		if (!kept || stacks->blocks[kept - 1].addr != stacks->blocks[i].addr)
			stacks->blocks[kept++] = stacks->blocks[i];
	}
	stacks->block_count = kept;
}

int os_stacks_end(struct os_stacks *stacks)
{
	if (stacks->rc)
		return stacks->rc;
	if (!stacks->has_init)
		return stacks->rc = -ERR_TARGET;
	if (stacks->block_count)
		qsort(stacks->blocks, stacks->block_count, sizeof(*stacks->blocks), compare);
	keep_last(stacks);
	return 0;
}

static const struct os_block *find(const struct os_stacks *stacks, uint64_t addr)
{
	size_t low = 0, high = stacks->block_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (stacks->blocks[mid].addr == addr)
			return &stacks->blocks[mid];
		if (stacks->blocks[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

uint32_t os_stacks_find(const struct os_stacks *stacks, uint64_t addr, const uint64_t **frames)
{
	const struct os_block *block = find(stacks, addr);

	if (!block || !block->frame_count)
		return 0;
	*frames = stacks->frames + block->first_frame;
	return block->frame_count;
}

uint64_t os_stacks_bytes(const struct os_stacks *stacks, uint64_t addr)
{
	const struct os_block *block = find(stacks, addr);

	return block ? block->bytes : 0;
}

size_t os_stacks_count(const struct os_stacks *stacks)
{
	size_t count = 0;

	for (size_t i = 0; i < stacks->block_count; i++)
		count += !!stacks->blocks[i].frame_count;
	return count;
}
