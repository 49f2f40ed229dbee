/* Cache of a target's memory. A live target is read in aligned pieces, at most one per slot of a
 * table. A mapped file is viewed in place. */
#include "snapshot/target/target_memory.h"

#include <stdlib.h>
#include <string.h>

#define VIEW_BYTES 0x10000u /* granularity of the address space */

#define PAGE_BYTES 4096u /* unit of readability */

int memory_init(struct memory *memory, struct target *target)
{
	*memory = (struct memory){.target = target};
	memory->joined = malloc(MEMORY_AT_MAX);
	if (!target->ops->view)
		memory->pieces = calloc(MEMORY_PIECES, sizeof(*memory->pieces));
	if (memory->joined && (memory->pieces || target->ops->view))
		return 0;
	memory_release(memory);
	return -ERR_NOMEM;
}

void memory_release(struct memory *memory)
{
	for (size_t i = 0; memory->pieces && i < MEMORY_PIECES; i++)
		free(memory->pieces[i].bytes);
	free(memory->pieces);
	free(memory->joined);
	*memory = (struct memory){0};
}

void memory_clear(struct memory *memory)
{
	memory->last.len = memory->before.len = 0;
	for (size_t i = 0; memory->pieces && i < MEMORY_PIECES; i++) {
		memory->pieces[i].len = 0;
		memory->pieces[i].is_torn = false;
	}
}

void memory_within(struct memory *memory, uint64_t addr, uint64_t end)
{
	memory->within = addr;
	memory->within_end = end;
}

/* Finds the part of the aligned piece around `addr` that can be read with one call. If regions are
 * unknown, this is the whole piece. */
static bool piece_range(struct memory *memory, uint64_t addr, uint64_t *start, uint64_t *end)
{
	struct target *target = memory->target;
	struct target_region region = {
		.addr = memory->within, .end = memory->within_end, .access = TARGET_READ};

	*start = addr - addr % MEMORY_PIECE_BYTES;
	*end = *start + MEMORY_PIECE_BYTES;
	if (*end < *start)
		return false;
	if (!target->ops->region && (addr < region.addr || addr >= region.end))
		return true;
	if (target->ops->region && target->ops->region(target, addr, &region))
		return false;
	if (region.addr > addr || region.end <= addr || !(region.access & TARGET_READ))
		return false;
	*start = region.addr > *start ? region.addr : *start;
	*end = region.end < *end ? region.end : *end;
	return true;
}

static struct memory_piece *piece_at(struct memory *memory, uint64_t addr)
{
	return &memory->pieces[addr / MEMORY_PIECE_BYTES % MEMORY_PIECES];
}

static bool piece_try(
	struct memory *memory, struct memory_piece *piece, uint64_t start, uint64_t end)
{
	if (target_read(memory->target, start, piece->bytes, (size_t)(end - start)))
		return false;
	piece->addr = start;
	piece->len = (size_t)(end - start);
	return true;
}

/* Reads the piece that contains `addr`. If a part of the piece is missing, reads the page that
 * contains `addr`. */
static bool piece_read(struct memory *memory, struct memory_piece *piece, uint64_t addr)
{
	uint64_t page = addr - addr % PAGE_BYTES, start, end;

	piece->len = 0;
	if (!piece->bytes)
		piece->bytes = malloc(MEMORY_PIECE_BYTES);
	if (!piece->bytes || !piece_range(memory, addr, &start, &end))
		return false;
	if (!piece->is_torn || piece->torn != start) {
		if (piece_try(memory, piece, start, end))
			return true;
		piece->torn = start;
		piece->is_torn = true;
	}
	return piece_try(memory, piece, page > start ? page : start,
		page + PAGE_BYTES < end ? page + PAGE_BYTES : end);
}

/* Views a file, beginning at start. Returns true if addr is among the viewed bytes. */
static bool view_from(struct memory *memory, uint64_t start, uint64_t addr)
{
	memory->last.bytes = memory->target->ops->view(memory->target, start, &memory->last.len);
	memory->last.addr = start;
	if (!memory->last.bytes || memory->last.len <= addr - start)
		memory->last.len = 0;
	return memory->last.len > 0;
}

/* Finds addr in a file. Keeps the last two views, because walkers alternate between a block and the
 * data to which it points, and sometimes step back a little. */
static bool view(struct memory *memory, uint64_t addr)
{
	struct memory_seen before = memory->before;

	memory->before = memory->last;
	memory->last = before;
	return (addr >= memory->last.addr && addr - memory->last.addr < memory->last.len) ||
	       view_from(memory, addr - addr % VIEW_BYTES, addr) || view_from(memory, addr, addr);
}

static bool find(struct memory *memory, uint64_t addr)
{
	struct memory_piece *piece;

	if (!memory->pieces)
		return view(memory, addr);
	piece = piece_at(memory, addr);
	if ((addr < piece->addr || addr - piece->addr >= piece->len) &&
		!piece_read(memory, piece, addr)) {
		memory->last.len = 0;
		return false;
	}
	memory->last = (struct memory_seen){piece->addr, piece->len, piece->bytes};
	return true;
}

const unsigned char *memory_from(struct memory *memory, uint64_t addr, size_t *len)
{
	if ((addr < memory->last.addr || addr - memory->last.addr >= memory->last.len) &&
		!find(memory, addr))
		return NULL;
	*len = memory->last.len - (size_t)(addr - memory->last.addr);
	return memory->last.bytes + (addr - memory->last.addr);
}

int memory_copy(struct memory *memory, uint64_t addr, void *bytes, size_t len)
{
	unsigned char *to = bytes;

	while (len) {
		size_t left;
		const unsigned char *from = memory_from(memory, addr, &left);

		if (!from)
			return -ERR_READ;
		left = left < len ? left : len;
		memcpy(to, from, left);
		to += left;
		len -= left;
		if (addr + left < addr && len)
			return -ERR_READ;
		addr += left;
	}
	return 0;
}

const unsigned char *memory_at(struct memory *memory, uint64_t addr, size_t len)
{
	size_t left;
	const unsigned char *bytes = memory_from(memory, addr, &left);

	if (!bytes || left >= len)
		return bytes;
	if (len > MEMORY_AT_MAX || memory_copy(memory, addr, memory->joined, len))
		return NULL;
	return memory->joined;
}

int memory_u8(struct memory *memory, uint64_t addr, uint8_t *value)
{
	const unsigned char *bytes = memory_at(memory, addr, 1);

	if (!bytes)
		return -ERR_READ;
	*value = *bytes;
	return 0;
}

int memory_u16(struct memory *memory, uint64_t addr, uint16_t *value)
{
	const unsigned char *bytes = memory_at(memory, addr, 2);

	if (!bytes)
		return -ERR_READ;
	*value = bytes_u16(bytes);
	return 0;
}

int memory_u32(struct memory *memory, uint64_t addr, uint32_t *value)
{
	const unsigned char *bytes = memory_at(memory, addr, 4);

	if (!bytes)
		return -ERR_READ;
	*value = bytes_u32(bytes);
	return 0;
}

int memory_u64(struct memory *memory, uint64_t addr, uint64_t *value)
{
	const unsigned char *bytes = memory_at(memory, addr, 8);

	if (!bytes)
		return -ERR_READ;
	*value = bytes_u64(bytes);
	return 0;
}

int memory_ptr(struct memory *memory, unsigned bits, uint64_t addr, uint64_t *value)
{
	const unsigned char *bytes = memory_at(memory, addr, bits / 8);

	if (!bytes)
		return -ERR_READ;
	*value = bytes_ptr(bytes, bits);
	return 0;
}
