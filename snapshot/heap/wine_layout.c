#include "snapshot/heap/wine_layout.h"

const struct wine_layout wine_layout_8_0_x64 = {
	.heap_signature = 0x10,
	.heap_entry = 0x78,
	.heap_subheaps = 0x88,
	.heap_larges = 0x98,
	.heap_magic = 0xb8,
	.heap_lock_owner = 0xd8,
	.heap_bytes = 0x370,
	.subheap_block_size = 0x10,
	.subheap_data_size = 0x18,
	.subheap_entry = 0x20,
	.subheap_heap = 0x30,
	.subheap_first_block = 0x38,
	.subheap_bytes = 0x40,
	.large_entry = 0x10,
	.large_data_size = 0x20,
	.large_block_size = 0x28,
	.large_block = 0x38,
	.large_bytes = 0x40,
	.block_bytes = 8,
	.block_unit = 16,
};
