/* Layouts of NT heaps, with their sources, and the choice of a layout for a heap. Every row is
 * compared with the heap, and the best match is chosen. */
#include "snapshot/heap/nt/nt.h"

#include <stddef.h>

/*
 * Fields that all builds share.
 *
 * _HEAP_ENTRY, _HEAP_SEGMENT, _HEAP_UCR_DESCRIPTOR, _HEAP_VIRTUAL_ALLOC_ENTRY: public symbols of
 * ntdll and of the kernel, Windows 7 to 11 22000, as listed by Volatility, ntdiff and JPCERT/CC's
 * tables. Also seen in memory of Windows 7.
 *
 * _RTL_CRITICAL_SECTION: public symbols of ntdll.
 *
 * prefix_*: HeapStat (tested by its author on Windows 7 to 8.1) and DbgHelpUtils (10, 11). The two
 * agree.
 *
 * no_record: DbgHelpUtils. */
static const struct nt_common_layout common_x86 = {
	.entry_bytes = 8,
	.entry_coded = 0,
	.unit = 8,
	.unit_shift = 3,
	.segment_signature = 0x08,
	.segment_link = 0x10,
	.segment_heap = 0x18,
	.segment_base = 0x1c,
	.segment_pages = 0x20,
	.segment_first = 0x24,
	.segment_end = 0x28,
	.segment_hole_pages = 0x2c,
	.segment_holes = 0x38,
	.segment_bytes = 0x40,
	.hole_link = 0x08,
	.hole_address = 0x10,
	.hole_size = 0x14,
	.hole_bytes = 0x18,
	.virtual_commit = 0x10,
	.virtual_reserve = 0x14,
	.virtual_entry = 0x18,
	.virtual_bytes = 0x20,
	.prefix_record = 0x08,
	.prefix_header = 0x10,
	.prefix_user = 0x18,
	.prefix_unused_min = 0x18,
	.lock_owner = 0x0c,
	.no_record = 0x01010000,
};

static const struct nt_common_layout common_x64 = {
	.entry_bytes = 16,
	.entry_coded = 8,
	.unit = 16,
	.unit_shift = 4,
	.segment_signature = 0x10,
	.segment_link = 0x18,
	.segment_heap = 0x28,
	.segment_base = 0x30,
	.segment_pages = 0x38,
	.segment_first = 0x40,
	.segment_end = 0x48,
	.segment_hole_pages = 0x50,
	.segment_holes = 0x60,
	.segment_bytes = 0x70,
	.hole_link = 0x10,
	.hole_address = 0x20,
	.hole_size = 0x28,
	.hole_bytes = 0x30,
	.virtual_commit = 0x20,
	.virtual_reserve = 0x28,
	.virtual_entry = 0x30,
	.virtual_bytes = 0x40,
	.prefix_record = 0x10,
	.prefix_header = 0x28,
	.prefix_user = 0x30,
	.prefix_unused_min = 0x28,
	.lock_owner = 0x10,
	.no_record = 0x0101000000000000,
};

/*
 * _LFH_HEAP, _LFH_BLOCK_ZONE, _HEAP_SUBSEGMENT, _HEAP_USERDATA_HEADER.
 *
 * Windows 7: public symbols as listed by Volatility (x64 subsegment and header), radare2 (x86) and
 * python-haystack. 8 x64: ntdiff of 9200. 8.1 x64: ntdiff of 9600. 10: radare2 (1607/1703 x64) and
 * ntdiff (1809, 2004, both).
 *
 * 8 and 8.1 x86: HeapStat, whose author tested it on these versions. HeapStat is the only source
 * for 8 x86. In Windows 8 and later, the offset of _LFH_HEAP.Heap on x86 is inferred from the
 * fields around it.
 *
 * data_first, data_slack: measured on 188 containers in memory of 18362 to 26200, both bitnesses.
 */
static const struct nt_lfh_layout lfh_7_x86 = {
	.lfh_zones = 0x18,
	.lfh_heap = 0x24,
	.zone_end = 0x08,
	.zone_first = 0x10,
	.sub_data = 0x04,
	.sub_free_count = 0x08,
	.sub_block_size = 0x10,
	.sub_block_count = 0x14,
	.sub_bytes = 0x20,
	.data_sub = 0,
	.data_signature = 0x0c,
	.data_bytes = 0x10,
};

static const struct nt_lfh_layout lfh_7_x64 = {
	.lfh_zones = 0x28,
	.lfh_heap = 0x40,
	.zone_end = 0x10,
	.zone_first = 0x20,
	.sub_data = 0x08,
	.sub_free_count = 0x10,
	.sub_block_size = 0x18,
	.sub_block_count = 0x1c,
	.sub_bytes = 0x30,
	.data_sub = 0,
	.data_signature = 0x18,
	.data_bytes = 0x20,
};

#define LFH_8_X86                                                                                  \
	.lfh_zones = 0x04, .lfh_heap = 0x0c, .zone_end = 0x08, .zone_first = 0x10,                 \
	.sub_data = 0x04, .sub_block_size = 0x14, .sub_block_count = 0x18, .sub_bytes = 0x28,      \
	.data_sub = 0, .data_signature = 0x0c, .data_offsets = 0x10, .data_bitmap_count = 0x14,    \
	.data_bitmap_bytes = 0x18, .data_bitmap = 0x1c, .data_bytes = 0x1c, .data_room = 0x08,     \
	.data_first = 0x1c

#define LFH_8_X64                                                                                  \
	.lfh_zones = 0x08, .lfh_heap = 0x18, .zone_end = 0x10, .zone_first = 0x20,                 \
	.sub_data = 0x08, .sub_block_size = 0x24, .sub_block_count = 0x28, .sub_bytes = 0x40,      \
	.data_sub = 0, .data_offsets = 0x18, .data_bitmap_count = 0x20, .data_bitmap_bytes = 0x28, \
	.data_bitmap = 0x30, .data_bytes = 0x30, .data_room = 0x10, .data_first = 0x34,            \
	.data_slack = 0x10, .data_signature = 0x14

static const struct nt_lfh_layout lfh_8_x86 = {LFH_8_X86};
static const struct nt_lfh_layout lfh_8_x64 = {LFH_8_X64};
static const struct nt_lfh_layout lfh_81_x86 = {
	LFH_8_X86, .zone_counts = true, .data_is_coded = true};
static const struct nt_lfh_layout lfh_81_x64 = {
	LFH_8_X64, .zone_counts = true, .data_is_coded = true};

/* Fields of _HEAP whose offsets have been the same since Windows 8. */
#define HEAP_8_X86                                                                                 \
	.bits = 32, .common = &common_x86, .encode_mask = 0x4c, .encoding = 0x50,                  \
	.interceptor = 0x58, .signature = 0x60, .valid_bytes = 0x7e, .virtual_list = 0x9c,         \
	.segment_list = 0xa4, .lock = 0xc8
#define HEAP_8_X64                                                                                 \
	.bits = 64, .common = &common_x64, .encode_mask = 0x7c, .encoding = 0x80,                  \
	.interceptor = 0x90, .signature = 0x98, .valid_bytes = 0xd2, .virtual_list = 0x110,        \
	.segment_list = 0x120, .lock = 0x160

/* _HEAP: public symbols of ntdll and of the kernel, as listed for these builds by Volatility,
 * ntdiff and JPCERT/CC's tables; for x64 also by radare2. Newest first. */
const struct nt_layout nt_layouts[] = {
	{HEAP_8_X64, .name = "nt 10.0.17763-22000 x64", .first_build = 17763,
		.last_build = UINT32_MAX, .lfh = &lfh_81_x64, .front_end = 0x198,
		.front_end_type = 0x1a2, .heap_bytes = 0x2c0},
	{HEAP_8_X64, .name = "nt 10.0.14393-17134 x64", .first_build = 14393, .last_build = 17762,
		.lfh = &lfh_81_x64, .front_end = 0x178, .front_end_type = 0x182,
		.heap_bytes = 0x2a0},
	{HEAP_8_X64, .name = "nt 6.3.9600-10.0.10586 x64", .first_build = 9600, .last_build = 14392,
		.lfh = &lfh_81_x64, .front_end = 0x170, .front_end_type = 0x17a,
		.heap_bytes = 0x298},
	{HEAP_8_X64, .name = "nt 6.2.9200 x64", .first_build = 9200, .last_build = 9599,
		.lfh = &lfh_8_x64, .front_end = 0x170, .front_end_type = 0x17a,
		.heap_bytes = 0x298},
	{.name = "nt 6.1.7600-7601 x64",
		.bits = 64,
		.first_build = 7600,
		.last_build = 9199,
		.common = &common_x64,
		.lfh = &lfh_7_x64,
		.encode_mask = 0x7c,
		.encoding = 0x80,
		.interceptor = 0x98,
		.signature = 0xa0,
		.valid_bytes = 0xda,
		.virtual_list = 0x118,
		.segment_list = 0x128,
		.lock = 0x168,
		.front_end = 0x178,
		.front_end_type = 0x182,
		.heap_bytes = 0x208},
	{HEAP_8_X86, .name = "nt 10.0.17763-19041 x86", .first_build = 17763,
		.last_build = UINT32_MAX, .lfh = &lfh_81_x86, .front_end = 0xe4,
		.front_end_type = 0xea, .heap_bytes = 0x258},
	{HEAP_8_X86, .name = "nt 10.0.14393-17134 x86", .first_build = 14393, .last_build = 17762,
		.lfh = &lfh_81_x86, .front_end = 0xd4, .front_end_type = 0xda, .heap_bytes = 0x248},
	{HEAP_8_X86, .name = "nt 6.3.9600-10.0.10586 x86", .first_build = 9600, .last_build = 14392,
		.lfh = &lfh_81_x86, .front_end = 0xd0, .front_end_type = 0xd6, .heap_bytes = 0x248},
	{HEAP_8_X86, .name = "nt 6.2.9200 x86", .first_build = 9200, .last_build = 9599,
		.lfh = &lfh_8_x86, .front_end = 0xd0, .front_end_type = 0xd6, .heap_bytes = 0x248},
	{.name = "nt 6.1.7600-7601 x86",
		.bits = 32,
		.first_build = 7600,
		.last_build = 9199,
		.common = &common_x86,
		.lfh = &lfh_7_x86,
		.encode_mask = 0x4c,
		.encoding = 0x50,
		.interceptor = 0x5c,
		.signature = 0x64,
		.valid_bytes = 0x82,
		.virtual_list = 0xa0,
		.segment_list = 0xa8,
		.lock = 0xcc,
		.front_end = 0xd4,
		.front_end_type = 0xda,
		.heap_bytes = 0x138},
};

const size_t nt_layout_count = sizeof(nt_layouts) / sizeof(nt_layouts[0]);

uint64_t nt_front_end(
	struct memory *memory, const struct nt_layout *layout, uint64_t addr, bool *is_missing)
{
	uint64_t lfh = 0, heap = 0;
	uint8_t type = 0;

	*is_missing = memory_u8(memory, addr + layout->front_end_type, &type) ||
		      memory_ptr(memory, layout->bits, addr + layout->front_end, &lfh);
	if (*is_missing || type != NT_FRONT_END_LFH || !lfh)
		return 0;
	*is_missing = memory_ptr(memory, layout->bits, lfh + layout->lfh->lfh_heap, &heap);
	return *is_missing || heap == addr ? lfh : 0;
}

/* Weights of the criteria for a layout. No single criterion is mandatory, because any data may be
 * damaged or missing. */
enum nt_weight {
	WEIGHT_BUILD = 1,
	WEIGHT_FRONT_END = 2, /* the front end's type and pointer are possible and consistent */
	WEIGHT_LIST = 4,
	WEIGHT_SIGNATURE = 8,
	WEIGHT_BYTES = 8, /* verified on real heaps of seven builds */
	WEIGHT_OWN_FRONT_END = 8,
};

static int front_end_weight(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	uint64_t lfh = 0;
	uint8_t type = 0;
	bool is_missing;

	if (nt_front_end(memory, layout, addr, &is_missing) && !is_missing)
		return WEIGHT_OWN_FRONT_END;
	if (memory_u8(memory, addr + layout->front_end_type, &type) ||
		memory_ptr(memory, layout->bits, addr + layout->front_end, &lfh))
		return 0;
	return type <= NT_FRONT_END_MAX && !type == !lfh ? WEIGHT_FRONT_END : 0;
}

static bool has_signature(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	uint32_t signature = 0;

	return !memory_u32(memory, addr + layout->signature, &signature) &&
	       signature == NT_HEAP_OBJECT_SIGNATURE;
}

/* Returns true if the heap's own segment and the head of the segment list are linked in at least
 * one direction. */
static bool has_list(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	uint64_t link = addr + layout->common->segment_link, head = addr + layout->segment_list;
	uint64_t next = 0, back = 0;

	memory_ptr(memory, layout->bits, head, &next);
	memory_ptr(memory, layout->bits, link + layout->bits / 8, &back);
	return next == link || back == head;
}

static uint16_t valid_bytes(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	uint16_t bytes = 0;

	memory_u16(memory, addr + layout->valid_bytes, &bytes);
	return bytes;
}

static int weight_of(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	int weight = 0;

	if (has_signature(memory, layout, addr))
		weight += WEIGHT_SIGNATURE;
	if (valid_bytes(memory, layout, addr) == layout->heap_bytes)
		weight += WEIGHT_BYTES;
	if (has_list(memory, layout, addr))
		weight += WEIGHT_LIST;
	return weight ? weight + front_end_weight(memory, layout, addr) : 0;
}

const struct nt_layout *nt_layout_find(
	struct memory *memory, unsigned bits, uint64_t addr, uint32_t build)
{
	const struct nt_layout *best = NULL;
	int best_weight = 0;

	for (size_t i = 0; i < nt_layout_count; i++) {
		const struct nt_layout *row = &nt_layouts[i];
		int weight = row->bits == bits ? weight_of(memory, row, addr) : 0;

		if (weight && build >= row->first_build && build <= row->last_build)
			weight += WEIGHT_BUILD;
		if (weight > best_weight) {
			best = row;
			best_weight = weight;
		}
	}
	return best;
}

const char *nt_layout_fault(struct memory *memory, const struct nt_layout *layout, uint64_t addr)
{
	uint16_t bytes = valid_bytes(memory, layout, addr);

	if (!has_signature(memory, layout, addr))
		return "heap without its signature";
	return bytes && bytes != layout->heap_bytes ? "heap whose size does not match its layout" :
						      NULL;
}
