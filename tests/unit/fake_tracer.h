/* The tracer's DLL and its tables in a made process. The image has a single export. The tables are
 * filled by hand as shared.h documents them, not by the tracer's own code. */
#ifndef TESTS_UNIT_FAKE_TRACER_H
#define TESTS_UNIT_FAKE_TRACER_H

#include "tests/unit/fake_target.h"

#include "snapshot/stacks/tracer_read.h"
#include "snapshot/tracer/shared.h"

#define TRACER_BASE 0x6f0000000u
#define TRACER_AREA (TRACER_BASE + 0x1200)
#define TRACER_TABLES 0x700000000u /* the tables begin here, TABLE_STEP bytes apart */
#define TRACER_TABLE_STEP 0x100000u
#define TRACER_STACKS 0x780000000u
#define TRACER_STACKS_BYTES 0x10000u
#define TRACER_ROOM TRACER_TABLES /* end of the tables */
#define TRACER_ROOM_BYTES 0x100000000u

#define TRACER_STACKS_NUMBER 64 /* index of the stacks in the change counts */

struct made_block {
	uint64_t addr, size_bytes;
	uint64_t heap;
	uint32_t stack;
};

#define AREA_PUT(field, value)                                                                     \
	fake_write(TRACER_AREA + offsetof(struct tracer_area, field), value,                       \
		sizeof(((struct tracer_area *)0)->field))
#define AREA_GET(field)                                                                            \
	fake_get(TRACER_AREA + offsetof(struct tracer_area, field),                                \
		sizeof(((struct tracer_area *)0)->field))
#define SHARD_PUT(shard, field, value)                                                             \
	fake_write(TRACER_AREA + offsetof(struct tracer_area, shards) +                            \
			   (shard) * sizeof(struct tracer_shard) +                                 \
			   offsetof(struct tracer_shard, field),                                   \
		value, sizeof(((struct tracer_shard *)0)->field))

/* Places the DLL's image. The offsets from its base are those of Microsoft's "PE Format". */
static inline void tracer_place_image(void)
{
	enum { PE = 0x80, OPTIONAL = PE + 24, BYTES = 0x19000, EXPORTS = 0x1000 };
	enum { FUNCTIONS = 0x1040, NAMES = 0x1050, ORDINALS = 0x1060, NAME = 0x1070 };

	fake_map(TRACER_BASE, BYTES);
	fake_write_module(TRACER_BASE, 64, BYTES, BYTES - 0x2000, "C:\\tools\\" TRACER_DLL_64);
	fake_write(TRACER_BASE + PE + 8, 0x65432100, 4); /* timestamp */
	fake_write(TRACER_BASE + OPTIONAL + 108, 16, 4);
	fake_write(TRACER_BASE + OPTIONAL + 112, EXPORTS, 4);
	fake_write(TRACER_BASE + OPTIONAL + 116, 0x100, 4);
	/* counts and addresses of functions and names */
	fake_write(TRACER_BASE + EXPORTS + 20, 1, 4);
	fake_write(TRACER_BASE + EXPORTS + 24, 1, 4);
	fake_write(TRACER_BASE + EXPORTS + 28, FUNCTIONS, 4);
	fake_write(TRACER_BASE + EXPORTS + 32, NAMES, 4);
	fake_write(TRACER_BASE + EXPORTS + 36, ORDINALS, 4);
	fake_write(TRACER_BASE + FUNCTIONS, TRACER_AREA - TRACER_BASE, 4);
	fake_write(TRACER_BASE + NAMES, NAME, 4);
	memcpy(fake_bytes(TRACER_BASE + NAME, 16), TRACER_EXPORT, sizeof(TRACER_EXPORT));
}

/* Places a working tracer with empty tables. */
static inline void tracer_place(void)
{
	fake.modules[fake.module_count++] = (struct module){
		.base = 0x140000000, .size_bytes = 0xd000, .path = "C:\\app\\app.exe"};
	tracer_place_image();
	fake_map(TRACER_STACKS, TRACER_STACKS_BYTES)->needs_hold = true;
	AREA_PUT(magic, 0x54534e4148435254);
	AREA_PUT(version, TRACER_VERSION);
	AREA_PUT(area_bytes, sizeof(struct tracer_area));
	AREA_PUT(state, TRACER_ON);
	AREA_PUT(pointer_bytes, 8);
	AREA_PUT(reserved, TRACER_ROOM);
	AREA_PUT(reserved_bytes, TRACER_ROOM_BYTES);
	AREA_PUT(stacks, TRACER_STACKS);
	AREA_PUT(stacks_top, 8);
	AREA_PUT(stacks_committed, TRACER_STACKS_BYTES);
	AREA_PUT(stacks_limit, 1u << 30);
}

/* Counts a change at an offset in a shard's table, or in the stacks. Each of the 128 change counts
 * covers 8 KiB. */
static inline void tracer_count_change(unsigned table, uint64_t offset)
{
	uint64_t at = TRACER_AREA + offsetof(struct tracer_area, changes) + table * 512 +
		      offset / 8192 % 128 * 4;

	fake_write(at, fake_get(at, 4) + 1, 4);
}

/* Places an empty table for a shard; returns its address. */
static inline uint64_t tracer_place_table(unsigned shard, unsigned pages)
{
	uint64_t addr = TRACER_TABLES + shard * (uint64_t)TRACER_TABLE_STEP;

	fake_map(addr, pages * TRACER_PAGE)->needs_hold = true;
	SHARD_PUT(shard, table, addr);
	SHARD_PUT(shard, pages, pages);
	return addr;
}

/* Returns the index of a heap's handle in the area; adds the handle if necessary. */
static inline unsigned tracer_heap_index(uint64_t heap)
{
	for (unsigned i = 1; i < 1u << TRACER_HEAPS_LOG2; i++) {
		uint64_t at = TRACER_AREA + offsetof(struct tracer_area, heaps) + i * 8;
		uint64_t there = fake_get(at, 8);

		if (!there)
			fake_write(at, heap, 8);
		if (!there || there == heap)
			return i;
	}
	fail_msg("too many heaps");
	return 0;
}

/* Writes a table entry. The first word has 48 bits of address and 16 bits of heap index. The second
 * word has 27 bits of stack and 37 bits of size. */
static inline void tracer_write_block(
	unsigned shard, unsigned entry, const struct made_block *block)
{
	uint64_t at = TRACER_TABLES + shard * (uint64_t)TRACER_TABLE_STEP + entry * 16;
	uint64_t heap = block->heap ? tracer_heap_index(block->heap) : 0;

	fake_write(at, block->addr | heap << 48, 8);
	fake_write(at + 8, block->size_bytes << 27 | block->stack, 8);
}

/* Appends a stack whose frame i is first + 16 * i; returns its id. */
static inline uint32_t tracer_write_stack(uint64_t first, uint32_t depth)
{
	uint64_t top = AREA_GET(stacks_top), addr = TRACER_STACKS + top;

	fake_write(addr + 4, 0xabcdef01, 4); /* a hash */
	fake_write(addr + 8, depth, 2);
	for (uint32_t i = 0; i < depth; i++)
		fake_write(addr + 16 + i * 8, first + 16 * i, 8);
	AREA_PUT(stacks_top, top + 16 + depth * 8);
	return (uint32_t)(top / 8);
}

#define TRACER_RANGES 0x790000000u
#define TRACER_MODULES 0x7a0000000u
#define TRACER_UNLOADS 0x7b0000000u
#define TRACER_OTHERS_BYTES 0x10000u

static inline void tracer_place_others(void)
{
	fake_map(TRACER_RANGES, TRACER_OTHERS_BYTES)->needs_hold = true;
	fake_map(TRACER_MODULES, TRACER_OTHERS_BYTES)->needs_hold = true;
	fake_map(TRACER_UNLOADS, TRACER_OTHERS_BYTES)->needs_hold = true;
	AREA_PUT(ranges.nodes, TRACER_RANGES);
	AREA_PUT(ranges.node_limit, TRACER_OTHERS_BYTES / 48);
	AREA_PUT(modules, TRACER_MODULES);
	AREA_PUT(modules_limit, TRACER_OTHERS_BYTES);
	AREA_PUT(unloads, TRACER_UNLOADS);
	AREA_PUT(unload_limit, TRACER_OTHERS_BYTES / 24);
}

/* Appends a node. kind: 1 is reserved, 2 committed, 3 mapped, 0 free. */
static inline void tracer_write_range(uint64_t start, uint64_t end, uint32_t kind, uint32_t stack)
{
	uint32_t count = (uint32_t)AREA_GET(ranges.node_count);
	uint64_t at = TRACER_RANGES + count * 48;

	fake_write(at, start, 8);
	fake_write(at + 8, end, 8);
	fake_write(at + 24, kind, 4);
	fake_write(at + 28, stack, 4);
	AREA_PUT(ranges.node_count, count + 1);
}

/* Appends a module that was unloaded from base. */
static inline void tracer_write_unload(const char *path, uint64_t base, uint32_t image_bytes)
{
	uint64_t count = AREA_GET(unload_count), record = AREA_GET(modules_top);
	uint64_t at = TRACER_MODULES + record, units = strlen(path);
	uint64_t len = (40 + 2 * units + 7) & ~(uint64_t)7;

	fake_write(at, len, 4);
	fake_write(at + 4, image_bytes, 4);
	fake_write(at + 8, 0x5eed, 4);
	fake_write(at + 36, units, 2);
	for (uint64_t i = 0; i < units; i++)
		fake_write(at + 40 + 2 * i, (unsigned char)path[i], 2);
	AREA_PUT(modules_top, record + len);
	at = TRACER_UNLOADS + count * 24;
	fake_write(at, base, 8);
	fake_write(at + 8, base + image_bytes, 8);
	fake_write(at + 16, record, 8);
	AREA_PUT(unload_count, count + 1);
}

/* ---------------------------------------------------------------- results */

static inline bool has_warning(const struct snapshot *snapshot, const char *words)
{
	for (size_t i = 0; i < snapshot->warning_count; i++) {
		if (strstr(snapshot->warnings[i], words))
			return true;
	}
	return false;
}

static inline const struct block *block_at(const struct snapshot *snapshot, uint64_t addr)
{
	for (size_t i = 0; i < snapshot->block_count; i++) {
		if (snapshot->blocks[i].addr == addr)
			return &snapshot->blocks[i];
	}
	return NULL;
}

static inline int take_tables(
	struct tracer_copy *copy, struct target *target, uint64_t area_addr, struct err *err)
{
	int rc = tracer_copy_read(copy, target, area_addr, err);

	return rc ? rc : tracer_copy_parse(copy, target, area_addr, err);
}

#endif
