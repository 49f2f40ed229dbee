/* Layouts of Wine's heaps, by version and bitness. */
#include "snapshot/heap/wine_layout.h"

/* SUBHEAP, ARENA_LARGE, struct block and struct group are identical in all versions. */
#define PARTS_X64                                                                                  \
	.bits = 64, .heap_signature = 0x10, .subheap_block_size = 0x10, .subheap_data_size = 0x18, \
	.subheap_entry = 0x20, .subheap_heap = 0x30, .subheap_first_block = 0x38,                  \
	.subheap_bytes = 0x40, .large_entry = 0x10, .large_data_size = 0x20,                       \
	.large_block_size = 0x28, .large_block = 0x38, .large_bytes = 0x40, .block_bytes = 8,      \
	.block_unit = 16, .group_first_block = 0x18
#define PARTS_X86                                                                                  \
	.bits = 32, .heap_signature = 0x08, .subheap_block_size = 0x04, .subheap_data_size = 0x08, \
	.subheap_entry = 0x0c, .subheap_heap = 0x14, .subheap_first_block = 0x18,                  \
	.subheap_bytes = 0x20, .large_entry = 0x04, .large_data_size = 0x0c,                       \
	.large_block_size = 0x10, .large_block = 0x18, .large_bytes = 0x20, .block_bytes = 8,      \
	.block_unit = 8, .group_first_block = 0x10

const struct wine_layout wine_layouts[WINE_LAYOUT_COUNT] = {
	{
		.name = "wine 8.0 x64",
		PARTS_X64,
		.heap_entry = 0x78,
		.heap_subheaps = 0x88,
		.heap_larges = 0x98,
		.heap_magic = 0xb8,
		.heap_lock_count = 0xd0,
		.heap_lock_owner = 0xd8,
		.heap_bytes = 0x370,
		.heap_read_bytes = 0xe0,
	},
	{
		.name = "wine 8.0 x86",
		PARTS_X86,
		.heap_entry = 0x48,
		.heap_subheaps = 0x50,
		.heap_larges = 0x58,
		.heap_magic = 0x68,
		.heap_lock_count = 0x78,
		.heap_lock_owner = 0x80,
		.heap_bytes = 0x2d0,
		.heap_read_bytes = 0x80,
	},
	{
		.name = "wine 9.0 x64",
		PARTS_X64,
		.has_groups = true,
		.heap_entry = 0x80,
		.heap_subheaps = 0x90,
		.heap_larges = 0xa0,
		.heap_magic = 0xc0,
		.heap_lock_count = 0xd8,
		.heap_lock_owner = 0xe0,
		.heap_bytes = 0x8f0,
		.heap_read_bytes = 0xe0,
	},
	{
		.name = "wine 9.0 x86",
		PARTS_X86,
		.has_groups = true,
		.heap_entry = 0x4c,
		.heap_subheaps = 0x54,
		.heap_larges = 0x5c,
		.heap_magic = 0x6c,
		.heap_lock_count = 0x7c,
		.heap_lock_owner = 0x84,
		.heap_bytes = 0x488,
		.heap_read_bytes = 0x80,
	},
};
