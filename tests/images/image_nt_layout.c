/* Sources of all tables: type dumps from Microsoft's public PDBs as published by Volatility
 * (vtypes: vol), by the ISF tables of JPCERT (isf), by ntdiff, and by radare2 (r2). "facts" is our
 * collection of such facts; the number is its section. */
#include "tests/images/image_nt_layout.h"

#include <stddef.h>

/* Facts 2.2. The fields in between come from the _HEAP listings of the sources above. first_entry:
 * facts 7.2 for Windows 7; on later builds any multiple of a unit after the structure is valid. */
static const struct made_heap_layout heap_layouts[] = {
	/* 7: vol win7_sp1_x86, and real memory */
	{32, 7600, 0x138, 0x588, 0x58, 0x5c, 0x60, 0x64, 0x68, 0x78, 0x90, 0x98, 0xa0, 0xa8, 0xb8,
		0xc4, 0xcc, 0xd0, 0xd4, 0xda, 0},
	/* 8 to 10586: vol win81_u1_x86 */
	{32, 9200, 0x248, 0x480, 0, 0x58, 0x5c, 0x60, 0x64, 0x74, 0x8c, 0x94, 0x9c, 0xa4, 0xb4,
		0xc0, 0xc8, 0xcc, 0xd0, 0xd6, 0},
	/* 14393 to 17134: vol win10_x86_17134 */
	{32, 14393, 0x248, 0x480, 0, 0x58, 0x5c, 0x60, 0x64, 0x74, 0x8c, 0x94, 0x9c, 0xa4, 0xb4,
		0xc0, 0xc8, 0xcc, 0xd4, 0xda, 0},
	/* 17763 on: vol win10_x86_19041; UserContext: real heaps of 26200 (windows-2026, A1) */
	{32, 17763, 0x258, 0x4a8, 0, 0x58, 0x5c, 0x60, 0x64, 0x74, 0x8c, 0x94, 0x9c, 0xa4, 0xb4,
		0xc0, 0xc8, 0xcc, 0xe4, 0xea, 0xdc},
	/* 7: isf 7601, vol win7_sp1_x64, and real memory */
	{64, 7600, 0x208, 0xa80, 0x90, 0x98, 0x9c, 0xa0, 0xa8, 0xc8, 0xf8, 0x108, 0x118, 0x128,
		0x140, 0x158, 0x168, 0x170, 0x178, 0x182, 0},
	/* 8 to 10586: isf 9600 */
	{64, 9200, 0x298, 0x720, 0, 0x90, 0x94, 0x98, 0xa0, 0xc0, 0xf0, 0x100, 0x110, 0x120, 0x138,
		0x150, 0x160, 0x168, 0x170, 0x17a, 0},
	/* 14393 to 17134: isf 14393 */
	{64, 14393, 0x2a0, 0x720, 0, 0x90, 0x94, 0x98, 0xa0, 0xc0, 0xf0, 0x100, 0x110, 0x120, 0x138,
		0x150, 0x160, 0x168, 0x178, 0x182, 0},
	/* 17763 on: isf 17763, 19041, 22000; 26100 as listed from its PDB (windows-2026, C) */
	{64, 17763, 0x2c0, 0x740, 0, 0x90, 0x94, 0x98, 0xa0, 0xc0, 0xf0, 0x100, 0x110, 0x120, 0x138,
		0x150, 0x160, 0x168, 0x198, 0x1a2, 0x188},
};

static const struct made_nt_shape shapes[] = {
	{.bits = 32,
		.unit = 8,
		.header_at = 0, /* facts 2.4 */
		/* _HEAP_SEGMENT: facts 2.3 */
		.segment_signature = 0x8,
		.segment_flags = 0xc,
		.segment_link = 0x10,
		.segment_heap = 0x18,
		.segment_base = 0x1c,
		.segment_pages = 0x20,
		.segment_first = 0x24,
		.segment_last = 0x28,
		.segment_holes_pages = 0x2c,
		.segment_holes = 0x30,
		.segment_ucr_list = 0x38,
		.segment_bytes = 0x40,
		/* _HEAP: facts 2.2 */
		.flags = 0x40,
		.force_flags = 0x44,
		.encode_mask = 0x4c,
		.encoding = 0x50,
		/* _HEAP_UCR_DESCRIPTOR: facts 2.3 */
		.ucr_link = 0,
		.ucr_segment_link = 8,
		.ucr_address = 0x10,
		.ucr_size = 0x14,
		.ucr_bytes = 0x18,
		/* _HEAP_VIRTUAL_ALLOC_ENTRY: facts 2.5 */
		.big_commit = 0x10,
		.big_reserve = 0x14,
		.big_entry = 0x18,
		.big_bytes = 0x20,
		/* facts 5.3 */
		.prefix_bytes = 0x10,
		.prefix_trace = 0x8,
		.prefix_header = 0x10,
		/* facts 2.4 */
		.extra_bytes = 8,
		.tail_bytes = 8,
		.most_units = 0xfe00,
		/* facts 4.1 */
		.db_peak = 0x3c,
		.db_lower_start = 0x40,
		.db_pre_committed = 0x44,
		.db_commit_base = 0x48,
		.db_lower_limit = 0x4c,
		.db_upper_limit = 0x50,
		.db_next_lower = 0x54,
		.db_next_upper = 0x58,
		.db_lookups = 0x5c,
		.db_added = 0x60,
		.db_index_array = 0x64,
		.db_allocated = 0x68,
		.db_available = 0x6c,
		.db_failures = 0x70,
		.db_free_lists = 0x78,
		.db_slist_bytes = 8,
		.db_bucket_count = 0x178,
		.db_buckets = 0x17c,
		.db_bucket_bytes = 8,
		/* facts 4.2 */
		.trace_count = 4,
		.trace_index_high = 6,
		.trace_index = 8,
		.trace_depth = 0xa,
		.trace_frames = 0xc},
	{.bits = 64,
		.unit = 16,
		.header_at = 8,
		.segment_signature = 0x10,
		.segment_flags = 0x14,
		.segment_link = 0x18,
		.segment_heap = 0x28,
		.segment_base = 0x30,
		.segment_pages = 0x38,
		.segment_first = 0x40,
		.segment_last = 0x48,
		.segment_holes_pages = 0x50,
		.segment_holes = 0x54,
		.segment_ucr_list = 0x60,
		.segment_bytes = 0x70,
		.flags = 0x70,
		.force_flags = 0x74,
		.encode_mask = 0x7c,
		.encoding = 0x80,
		.ucr_link = 0,
		.ucr_segment_link = 0x10,
		.ucr_address = 0x20,
		.ucr_size = 0x28,
		.ucr_bytes = 0x30,
		.big_commit = 0x20,
		.big_reserve = 0x28,
		.big_entry = 0x30,
		.big_bytes = 0x40,
		.prefix_bytes = 0x20,
		.prefix_trace = 0x10,
		.prefix_header = 0x28,
		.extra_bytes = 16,
		.tail_bytes = 16,
		.most_units = 0xff00,
		.db_peak = 0x70,
		.db_lower_start = 0x78,
		.db_pre_committed = 0x80,
		.db_commit_base = 0x88,
		.db_lower_limit = 0x90,
		.db_upper_limit = 0x98,
		.db_next_lower = 0xa0,
		.db_next_upper = 0xa8,
		.db_lookups = 0xb0,
		.db_added = 0xb4,
		.db_index_array = 0xb8,
		.db_allocated = 0xc0,
		.db_available = 0xc4,
		.db_failures = 0xc8,
		.db_free_lists = 0xd0,
		.db_slist_bytes = 16,
		.db_bucket_count = 0x2d0,
		.db_buckets = 0x2d8,
		.db_bucket_bytes = 16,
		.trace_count = 8,
		.trace_index_high = 0xa,
		.trace_index = 0xc,
		.trace_depth = 0xe,
		.trace_frames = 0x10},
};

/* facts 2.6; r2 Win7x86 and Win10x64, ntdiff Win8 and 8.1, HeapStat for 8.x x86 */
static const struct made_lfh_layout lfh_layouts[] = {
	{32, 7600, 0x3728, 0x18, 0x24, 8, 0xc, 0x10, false, 0x20, 4, 8, 0x10, 0x12, 0x14, 0x16, 8,
		0xc, 0x10, 0, false, 0, 0, 0, false, 0},
	{32, 9200, 0x800, 4, 0xc, 8, 0, 0x10, false, 0x28, 4, 0x10, 0x14, 0x16, 0x18, 0x1a, 8, 0xc,
		0x1c, 0x10, false, 0x14, 0x18, 0x1c, true, 9},
	{32, 9600, 0x800, 4, 0xc, 8, 0, 0x10, true, 0x28, 4, 0x10, 0x14, 0x16, 0x18, 0x1a, 8, 0xc,
		0x1c, 0x10, true, 0x14, 0x18, 0x1c, true, 9},
	{64, 7600, 0x63f0, 0x28, 0x40, 0x10, 0x18, 0x20, false, 0x30, 8, 0x10, 0x18, 0x1a, 0x1c,
		0x1e, 0x10, 0x18, 0x20, 0, false, 0, 0, 0, false, 0},
	{64, 9200, 0xcf0, 8, 0x18, 0x10, 0, 0x20, false, 0x40, 8, 0x20, 0x24, 0x26, 0x28, 0x2a,
		0x10, 0x14, 0x30, 0x18, false, 0x20, 0x28, 0x30, true, 0x11},
	{64, 9600, 0xcf0, 8, 0x18, 0x10, 0, 0x20, true, 0x40, 8, 0x20, 0x24, 0x26, 0x28, 0x2a, 0x10,
		0x14, 0x30, 0x18, true, 0x20, 0x28, 0x30, true, 0x11},
};

const struct made_heap_layout *made_heap_layout(unsigned bits, unsigned build)
{
	const struct made_heap_layout *found = NULL;
	for (size_t i = 0; i < sizeof(heap_layouts) / sizeof(*heap_layouts); i++)
		if (heap_layouts[i].bits == bits && heap_layouts[i].first_build <= build)
			found = &heap_layouts[i];
	return found;
}

const struct made_lfh_layout *made_lfh_layout(unsigned bits, unsigned build)
{
	const struct made_lfh_layout *found = NULL;
	for (size_t i = 0; i < sizeof(lfh_layouts) / sizeof(*lfh_layouts); i++)
		if (lfh_layouts[i].bits == bits && lfh_layouts[i].first_build <= build)
			found = &lfh_layouts[i];
	return found;
}

const struct made_nt_shape *made_nt_shape(unsigned bits)
{
	return &shapes[bits == 64];
}
