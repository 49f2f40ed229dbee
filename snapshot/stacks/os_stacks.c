#include "snapshot/stacks/os_stacks.h"

#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "snapshot/target/target_memory.h"

#define VERSIONS_MAX 15 /* of a header; 1 and 2 are known */
#define NO_STACK UINT32_MAX

/* What a block and a stack take in the process's memory at least; so many of them there can be. */
#define BLOCK_BYTES 8
#define FRAME_BYTES 4
#define STACK_BYTES 16 /* beside its frames */

struct os_block {
	uint64_t bytes;
	uint32_t stack; /* or NO_STACK */
};

struct os_stack {
	size_t first_frame; /* index into frames */
	uint32_t frame_count;
};

struct os_stacks {
	struct u64map numbers; /* address of a block -> index into blocks */
	struct os_block *blocks;
	size_t block_count, block_cap, blocks_max;
	struct table known; /* frames -> index into stacks */
	struct os_stack *stacks;
	size_t stack_count, stack_cap;
	uint64_t *frames;
	size_t frame_count, frame_cap;
	uint64_t bytes_left; /* of the process's memory, for further stacks */
	struct os_block *block; /* the last one told of, NULL: none, or it is finished */
	uint64_t pending[OS_STACKS_DEPTH_MAX]; /* its frames so far */
	uint32_t pending_count;
	unsigned bits; /* 0: no header yet */
	bool has_init, is_stack_over;
	int rc;
};

struct os_stacks *os_stacks_new(uint64_t committed_bytes)
{
	struct os_stacks *stacks = xcalloc(1, sizeof(*stacks));
	uint64_t blocks_max = committed_bytes / BLOCK_BYTES;

	u64map_init(&stacks->numbers);
	table_init(&stacks->known);
	stacks->blocks_max =
		blocks_max < OS_STACKS_BLOCKS_MAX ? (size_t)blocks_max : OS_STACKS_BLOCKS_MAX;
	stacks->bytes_left = committed_bytes;
	return stacks;
}

void os_stacks_free(struct os_stacks *stacks)
{
	if (!stacks)
		return;
	u64map_release(&stacks->numbers);
	table_release(&stacks->known);
	free(stacks->blocks);
	free(stacks->stacks);
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

/* No more frames come for the last block: gives it its stack, which many may share. */
static int finish(struct os_stacks *stacks)
{
	uint32_t count = stacks->pending_count;
	uint64_t bytes = STACK_BYTES + (uint64_t)count * FRAME_BYTES;
	const uint64_t *known;

	if (!stacks->block || !count)
		return 0;
	stacks->pending_count = 0;
	known = table_find(&stacks->known, stacks->pending, count * sizeof(uint64_t));
	if (known) {
		stacks->block->stack = (uint32_t)*known;
		return 0;
	}
	if (bytes > stacks->bytes_left)
		return -ERR_TARGET;
	stacks->bytes_left -= bytes;
	array_grow((void **)&stacks->stacks, &stacks->stack_cap, stacks->stack_count,
		sizeof(*stacks->stacks));
	stacks->stacks[stacks->stack_count] = (struct os_stack){stacks->frame_count, count};
	for (uint32_t i = 0; i < count; i++) {
		array_grow((void **)&stacks->frames, &stacks->frame_cap, stacks->frame_count,
			sizeof(*stacks->frames));
		stacks->frames[stacks->frame_count++] = stacks->pending[i];
	}
	table_add(&stacks->known, stacks->pending, count * sizeof(uint64_t), stacks->stack_count);
	stacks->block->stack = (uint32_t)stacks->stack_count++;
	return 0;
}

/* A block that was freed and allocated again meanwhile is told twice: the later one counts. */
static int start_block(struct os_stacks *stacks, uint64_t addr, uint64_t bytes)
{
	uint32_t number = (uint32_t)stacks->block_count;

	if (!u64map_find(&stacks->numbers, addr, &number)) {
		if (stacks->block_count >= stacks->blocks_max)
			return -ERR_TARGET;
		array_grow((void **)&stacks->blocks, &stacks->block_cap, stacks->block_count++,
			sizeof(*stacks->blocks));
		u64map_put(&stacks->numbers, addr, &number);
	}
	stacks->block = &stacks->blocks[number];
	*stacks->block = (struct os_block){.bytes = bytes, .stack = NO_STACK};
	stacks->is_stack_over = false;
	return 0;
}

static int put_allocation(struct os_stacks *stacks, const unsigned char *bytes)
{
	const struct os_stacks_layout *layout = os_stacks_layout(stacks->bits);
	uint64_t addr = bytes_ptr(bytes + layout->allocation_address, stacks->bits);
	uint64_t size = bytes_ptr(bytes + layout->allocation_size, stacks->bits);
	int rc;

	if (!is_address(addr, stacks->bits) || size >= TARGET_SPACE_BYTES)
		return -ERR_TARGET;
	rc = finish(stacks);
	return rc ? rc : start_block(stacks, addr, size);
}

/* One frame of the block put last: NULL ends its stack, what is too deep is not kept. */
static int put_frame(struct os_stacks *stacks, uint64_t frame)
{
	if (!frame)
		stacks->is_stack_over = true;
	if (stacks->is_stack_over || stacks->pending_count == OS_STACKS_DEPTH_MAX)
		return 0;
	if (!is_address(frame, stacks->bits))
		return -ERR_TARGET;
	stacks->pending[stacks->pending_count++] = frame;
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

int os_stacks_end(struct os_stacks *stacks)
{
	if (!stacks->rc)
		stacks->rc = stacks->has_init ? finish(stacks) : -ERR_TARGET;
	return stacks->rc;
}

static const struct os_block *find(const struct os_stacks *stacks, uint64_t addr)
{
	uint32_t number;

	return u64map_find(&stacks->numbers, addr, &number) ? &stacks->blocks[number] : NULL;
}

uint32_t os_stacks_find(const struct os_stacks *stacks, uint64_t addr, const uint64_t **frames)
{
	const struct os_block *block = find(stacks, addr);

	if (!block || block->stack == NO_STACK)
		return 0;
	*frames = stacks->frames + stacks->stacks[block->stack].first_frame;
	return stacks->stacks[block->stack].frame_count;
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
		count += stacks->blocks[i].stack != NO_STACK;
	return count;
}
