/* Layouts of segment heaps by build and bitness, with their sources. */
#include "snapshot/heap/segment/segment.h"

/* Fields that all x64 builds share. Sources: ntkrnlmp listings of 17763, 19041, 20348 and 22000,
 * and listings of ntdll and the kernel of 26100. The offset of the first chunk of a VS subsegment,
 * and the encoded fields, come from two open-source readers. RtlpHpHeapGlobals is in these readers
 * and in the listings. */
#define PARTS_X64                                                                                  \
	.bits = 64, .unit = 16, .segment_signature = 0x10, .range_bytes = 0x20,                    \
	.range_signature = 0x00, /* TreeSignature */                                               \
		.range_flags = 0x18, /* RangeFlags */                                              \
		.vs_size = 0x20, .vs_first_chunk = 0x30, .vs_chunk_bytes = 0x10,                   \
	.vs_chunk_bits = 0x08, /* AllocatedChunkBits */                                            \
		.lfh_free_count = 0x20, /* FreeCount */                                            \
		.lfh_block_count = 0x22, /* BlockCount */                                          \
		.lfh_offsets = 0x28, /* BlockOffsets */                                            \
		.large_address = 0x18, /* VirtualAddress */                                        \
		.large_pages = 0x20, /* AllocatedPages, bits 12.. */                               \
		.node_left = 0x00, .node_right = 0x08, .node_parent = 0x10, /* ParentValue */      \
		.tree_root = 0x00, .tree_min = 0x08, /* bit 0: Encoded */                          \
		.extra_interceptor = 0x02, /* InterceptorIndex, bits 0..3 */                       \
		.extra_units = 0x03, /* ExtraSizeInUnits */                                        \
		.extra_settable = 0x08, .extra_bytes = 0x10, .no_record = 0x0101000000000000,      \
	.globals_heap_key = 0x00, /* HeapKey */                                                    \
		.globals_lfh_key = 0x08 /* LfhKey */

static const struct segment_parts parts_x64 = {
	PARTS_X64, .vs_signature = 0x22, .lfh_owner = 0x10, .owner_bucket = 0x01, /* BucketIndex */
	.lfh_bitmap = 0x30, /* BlockBitmap */
};

/* Listings of ntdll and the kernel of 26100, made from their public symbols by ntoskrnlib. Slot
 * maps, and the two halves of a word of BlockBitmap: dbgscope, whose author compared them with
 * HeapWalk(). */
static const struct segment_parts parts_x64_26100 = {
	PARTS_X64, .vs_signature = 0x24, .lfh_bitmap = 0x40, .lfh_is_halved = true,
	/* BucketRef, assumed to work like SlotRef, so the table must confirm each reference */
	.lfh_bucket_ref = 0x2c, .lfh_buckets = 0x1c0, /* _HEAP_LFH_CONTEXT.Buckets */
	.slot_map = 0x00, /* _HEAP_VS_CONTEXT.SlotMapRef */
	.slot_mask = 0x02, /* .AffinityMask */
	.slot_shift = 6, .slot_map_entry = 0x04, /* size of _HEAP_VS_SLOT_MAP; SlotRef is at 0 */
	.slot_context = 0x00, /* _HEAP_VS_AFFINITY_SLOT.VsContext, or VsContextOffset */
	.slot_list = 0x20, /* .SubsegmentList */
	.vs_owner = 0x22, /* _HEAP_VS_SUBSEGMENT.OwnerSlotRef */
};

/* A listing of ntdll 19041 x86. Fields that are not in the listing have the same order as on x64,
 * with smaller pointers. */
static const struct segment_parts parts_x86 = {
	.bits = 32,
	.unit = 8,
	.segment_signature = 0x08,
	.range_bytes = 0x10,
	.range_signature = 0x00,
	.range_flags = 0x0c, /* RangeFlags, 5 bits */
	.vs_size = 0x14,
	.vs_signature = 0x16,
	.vs_first_chunk = 0x18,
	.vs_chunk_bytes = 0x08,
	.vs_chunk_bits = 0x04,
	.lfh_owner = 0x08,
	.lfh_free_count = 0x10,
	.lfh_block_count = 0x12,
	.lfh_offsets = 0x18,
	.lfh_bitmap = 0x20,
	.owner_bucket = 0x01,
	.large_address = 0x0c,
	.large_pages = 0x10,
	.node_left = 0x00,
	.node_right = 0x04,
	.node_parent = 0x08,
	.tree_root = 0x00,
	.tree_min = 0x04,
	.extra_interceptor = 0x02,
	.extra_units = 0x03,
	.extra_settable = 0x04,
	.extra_bytes = 0x08,
	.no_record = 0x01010000,
	.globals_heap_key = 0x00,
	.globals_lfh_key = 0x04,
};

/* Fields that several rows share. _SEGMENT_HEAP and MemStats: LargeAllocMetadata,
 * LargeReservedPages, LargeCommittedPages, TotalReservedPages, TotalCommittedPages.
 * _HEAP_SEG_CONTEXT: UnitShift, FirstDescriptorIndex, LfhContext, VsContext, Heap, SegmentListHead.
 * _HEAP_VS_CONTEXT: SubsegmentList. _HEAP_LFH_SUBSEGMENT: WitheldBlockCount. */
#define X64_CONTEXTS                                                                               \
	.large_tree = 0x48, .large_reserved = 0x58, .large_committed = 0x60,                       \
	.reserved_pages = 0x80, .committed_pages = 0x88, .context_bytes = 0xc0,                    \
	.unit_shift = 0x08, .first_descriptor = 0x0a, .to_lfh = 0x18, .to_vs = 0x20,               \
	.to_heap = 0x38, .segment_list = 0x48

#define X64_17763 X64_CONTEXTS, .parts = &parts_x64, .vs_list = 0x20, .lfh_withheld = 0x27

#define X64_20348                                                                                  \
	X64_17763, .contexts = 0x140, .vs_context = 0x2c0, .lfh_context = 0x380, .heap_bytes = 0x840

#define X64_16299                                                                                  \
	.parts = &parts_x64, .large_tree = 0x50, .contexts = 0x70, .unit_shift = 0x08,             \
	.first_descriptor = 0x0a, .to_lfh = 0x50, .to_vs = 0x58, .segment_list = 0x20

/* _HEAP_PAGE_RANGE_DESCRIPTOR.UnusedBytes, ExtraPresent (bit 0), UnitSize */
#define RANGE(units)                                                                               \
	.range_unused = 0x04, .range_unused_bytes = 4, .range_extra = 0x08, .range_units = (units)

/* Newest first. */
const struct segment_layout segment_layouts[] = {
	/* Same sources as parts_x64_26100. */
	{X64_CONTEXTS, RANGE(0x1f), .name = "segment 10.0.26100 x64", .parts = &parts_x64_26100,
		.first_build = 26100, .contexts = 0x140, .vs_context = 0x2c0, .lfh_context = 0x340,
		.heap_bytes = 0xa00, .lfh_withheld = 0x25},
	/* ntkrnlmp listings of 20348 and 22000 x64 */
	{X64_20348, RANGE(0x1f), .name = "segment 10.0.20348-22000 x64", .first_build = 20348},
	/* ntkrnlmp listings of 17763, 18362 and 19041 x64; an ntdll listing of 19041 */
	{X64_17763, RANGE(0x1f), .name = "segment 10.0.17763-19041 x64", .first_build = 17763,
		.contexts = 0x100, .vs_context = 0x280, .lfh_context = 0x340, .heap_bytes = 0x800},
	/* one listing of ntdll 17134 x64 */
	{X64_16299, RANGE(0x1f), .name = "segment 10.0.17134 x64", .first_build = 17134,
		.context_bytes = 0x78, .vs_context = 0x188, .lfh_context = 0x200,
		.heap_bytes = 0x6f0, .to_heap = 0x70, .vs_list = 0x20},
	/* one listing of ntdll 16299 x64 */
	{X64_16299, RANGE(0x1f), .name = "segment 10.0.16299 x64", .first_build = 16299,
		.context_bytes = 0x68, .vs_context = 0x168, .lfh_context = 0x1e0,
		.heap_bytes = 0x6c0, .to_heap = 0x60, .vs_list = 0x18},
	/* An ntdll listing of Windows 10 x64 from the generation of 1607 and 1703, and a listing of
	 * 14393 and 15063. */
	{.name = "segment 10.0.14393-15063 x64",
		.parts = &parts_x64,
		.first_build = 14393,
		.large_tree = 0x38,
		.large_reserved = 0x48,
		.large_committed = 0x50,
		.reserved_pages = 0x00,
		.committed_pages = 0x08,
		.vs_context = 0xb0,
		.lfh_context = 0x120,
		.heap_bytes = 0x5f0,
		.segment_list = 0x60,
		.vs_list = 0x18,
		.range_unused = 0x06,
		.range_unused_bytes = 2,
		.range_extra = 0x04,
		.range_units = 0x1b},
	/* A listing of ntdll 19041 x86; two open-source readers agree with it for later builds. */
	{RANGE(0x0f), .name = "segment 10.0.19041 x86", .parts = &parts_x86, .first_build = 19041,
		.large_tree = 0x44, .large_reserved = 0x4c, .large_committed = 0x50,
		.reserved_pages = 0x80, .committed_pages = 0x84, .contexts = 0x100,
		.context_bytes = 0x80, .vs_context = 0x200, .lfh_context = 0x2c0,
		.heap_bytes = 0x580, .unit_shift = 0x04, .first_descriptor = 0x06, .to_lfh = 0x14,
		.to_vs = 0x18, .to_heap = 0x24, .segment_list = 0x44, .vs_list = 0x10,
		.lfh_withheld = 0x17},
};

const size_t segment_layout_count = sizeof(segment_layouts) / sizeof(*segment_layouts);
