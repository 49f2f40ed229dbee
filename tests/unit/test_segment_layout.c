/* Every row of the segment heap's and the page heap's tables. Each field is compared with the
 * listings of public symbols that contain the field. */
#include "tests/unit/t.h"

#include "tests/unit/layout_listing.h"

#include "snapshot/heap/page_layout.h"
#include "snapshot/heap/segment/segment.h"

/* Builds of each row, with their listings. Rows without a listing come from a single published
 * table. */
static const struct listed {
	const char *row, *listing;
} listed[] = {
	{"segment 10.0.20348-22000 x64", "ntkrnlmp_srv2022_20348_x64"},
	{"segment 10.0.20348-22000 x64", "ntkrnlmp_win11_22000_x64"},
	{"segment 10.0.17763-19041 x64", "ntkrnlmp_win10_17763_x64"},
	{"segment 10.0.17763-19041 x64", "ntkrnlmp_win10_19041_x64"},
};

#define RANGE "_HEAP_PAGE_RANGE_DESCRIPTOR"
#define LFH "_HEAP_LFH_SUBSEGMENT"

static const struct segment_layout *row_named(const char *name)
{
	for (size_t i = 0; i < segment_layout_count; i++) {
		if (strcmp(segment_layouts[i].name, name) == 0)
			return &segment_layouts[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

static void assert_row_is_listed(const char *list, const struct segment_layout *row)
{
	assert_listed(list, "_SEGMENT_HEAP", "LargeAllocMetadata", row->large_tree);
	assert_listed(list, "_SEGMENT_HEAP", "LargeReservedPages", row->large_reserved);
	assert_listed(list, "_SEGMENT_HEAP", "LargeCommittedPages", row->large_committed);
	assert_listed(list, "_SEGMENT_HEAP", "SegContexts", row->contexts);
	assert_listed(list, "_SEGMENT_HEAP", "VsContext", row->vs_context);
	assert_listed(list, "_SEGMENT_HEAP", "LfhContext", row->lfh_context);
	assert_listed(list, "_SEGMENT_HEAP", NULL, row->heap_bytes);
	assert_int_equal(row->reserved_pages,
		listing_find(list, "_SEGMENT_HEAP", "MemStats") +
			listing_find(list, "_HEAP_RUNTIME_MEMORY_STATS", "TotalReservedPages"));
	assert_int_equal(row->committed_pages,
		listing_find(list, "_SEGMENT_HEAP", "MemStats") +
			listing_find(list, "_HEAP_RUNTIME_MEMORY_STATS", "TotalCommittedPages"));
	assert_listed(list, "_HEAP_SEG_CONTEXT", NULL, row->context_bytes);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "UnitShift", row->unit_shift);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "FirstDescriptorIndex", row->first_descriptor);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "LfhContext", row->to_lfh);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "VsContext", row->to_vs);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "Heap", row->to_heap);
	assert_listed(list, "_HEAP_SEG_CONTEXT", "SegmentListHead", row->segment_list);
	assert_listed(list, "_HEAP_VS_CONTEXT", "SubsegmentList", row->vs_list);
	assert_listed(list, RANGE, "UnitSize", row->range_units);
	assert_listed(list, RANGE, "UnusedBytes", row->range_unused);
	assert_listed(list, RANGE, "ExtraPresent", row->range_extra);
	assert_listed(list, LFH, "WitheldBlockCount", row->lfh_withheld);
}

static void assert_parts_are_listed(const char *list, const struct segment_parts *parts)
{
	assert_listed(list, RANGE, NULL, parts->range_bytes);
	assert_listed(list, RANGE, "TreeSignature", parts->range_signature);
	assert_listed(list, RANGE, "RangeFlags", parts->range_flags);
	assert_listed(list, "_HEAP_VS_SUBSEGMENT", "Size", parts->vs_size);
	assert_listed(list, "_HEAP_VS_SUBSEGMENT", "Signature", parts->vs_signature);
	assert_listed(list, "_HEAP_VS_CHUNK_HEADER", NULL, parts->vs_chunk_bytes);
	assert_listed(list, "_HEAP_VS_CHUNK_HEADER", "UnusedBytes", parts->vs_chunk_bits);
	assert_listed(list, "_HEAP_VS_CHUNK_HEADER", "SkipDuringWalk", parts->vs_chunk_bits);
	assert_listed(list, LFH, "Owner", parts->lfh_owner);
	assert_listed(list, LFH, "FreeCount", parts->lfh_free_count);
	assert_listed(list, LFH, "BlockCount", parts->lfh_block_count);
	assert_listed(list, LFH, "BlockOffsets", parts->lfh_offsets);
	assert_listed(list, LFH, "BlockBitmap", parts->lfh_bitmap);
	assert_listed(list, "_HEAP_LFH_SUBSEGMENT_OWNER", "BucketIndex", parts->owner_bucket);
	assert_listed(list, "_HEAP_LARGE_ALLOC_DATA", "VirtualAddress", parts->large_address);
	assert_listed(list, "_HEAP_LARGE_ALLOC_DATA", "AllocatedPages", parts->large_pages);
	assert_listed(list, "_RTL_BALANCED_NODE", "Left", parts->node_left);
	assert_listed(list, "_RTL_BALANCED_NODE", "Right", parts->node_right);
	assert_listed(list, "_RTL_BALANCED_NODE", "ParentValue", parts->node_parent);
	assert_listed(list, "_RTL_RB_TREE", "Root", parts->tree_root);
	assert_listed(list, "_RTL_RB_TREE", "Min", parts->tree_min);
	assert_listed(list, "_SEGMENT_HEAP_EXTRA", "InterceptorIndex", parts->extra_interceptor);
	assert_listed(list, "_SEGMENT_HEAP_EXTRA", "ExtraSizeInUnits", parts->extra_units);
	assert_listed(list, "_SEGMENT_HEAP_EXTRA", "Settable", parts->extra_settable);
	assert_listed(list, "_SEGMENT_HEAP_EXTRA", NULL, parts->extra_bytes);
	assert_listed(list, "_RTLP_HP_HEAP_GLOBALS", "HeapKey", parts->globals_heap_key);
	assert_listed(list, "_RTLP_HP_HEAP_GLOBALS", "LfhKey", parts->globals_lfh_key);
}

TEST(rows_of_segment_heap_are_as_listed)
{
	listings_or_skip();
	for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
		const struct segment_layout *row = row_named(listed[i].row);

		assert_row_is_listed(listed[i].listing, row);
		assert_parts_are_listed(listed[i].listing, row->parts);
	}
}

/* This listing has fewer types, and gives some fields other names. */
TEST(row_of_1607_is_as_listed)
{
	const char *list = "r2_ntdll_Win10x64";
	const struct segment_layout *row = row_named("segment 10.0.14393-15063 x64");

	listings_or_skip();
	assert_listed(list, "_SEGMENT_HEAP", "LargeAllocMetadata", row->large_tree);
	assert_listed(list, "_SEGMENT_HEAP", "LargeReservedPages", row->large_reserved);
	assert_listed(list, "_SEGMENT_HEAP", "LargeCommittedPages", row->large_committed);
	assert_listed(list, "_SEGMENT_HEAP", "TotalReservedPages", row->reserved_pages);
	assert_listed(list, "_SEGMENT_HEAP", "TotalCommittedPages", row->committed_pages);
	assert_listed(list, "_SEGMENT_HEAP", "SegmentListHead", row->segment_list);
	assert_listed(list, "_SEGMENT_HEAP", "VsContext", row->vs_context);
	assert_listed(list, "_SEGMENT_HEAP", "LfhContext", row->lfh_context);
	assert_listed(list, "_HEAP_VS_CONTEXT", "SubsegmentList", row->vs_list);
	assert_listed(list, RANGE, "UnusedBytes", row->range_unused);
	assert_listed(list, RANGE, "ExtraPresent", row->range_extra);
	assert_listed(list, RANGE, "RangeFlags", row->parts->range_flags);
	assert_listed(list, RANGE, "Size", row->range_units);
	assert_listed(list, "_HEAP_VS_SUBSEGMENT", "Size", row->parts->vs_size);
	assert_listed(list, "_HEAP_VS_SUBSEGMENT", "Signature", row->parts->vs_signature);
	assert_listed(list, LFH, "Owner", row->parts->lfh_owner);
	assert_listed(list, LFH, "FreeCount", row->parts->lfh_free_count);
	assert_listed(list, LFH, "BlockCount", row->parts->lfh_block_count);
	assert_listed(list, LFH, "BlockOffsets", row->parts->lfh_offsets);
	assert_listed(list, LFH, "BlockBitmap", row->parts->lfh_bitmap);
	assert_listed(list, "_HEAP_LARGE_ALLOC_DATA", "VirtualAddress", row->parts->large_address);
	assert_listed(list, "_HEAP_LARGE_ALLOC_DATA", "AllocatedPages", row->parts->large_pages);
	assert_int_equal(row->lfh_withheld, 0);
}

#define ROOT "_DPH_HEAP_ROOT"
#define BLOCK "_DPH_HEAP_BLOCK"
#define INFO "_DPH_BLOCK_INFORMATION"

TEST(rows_of_page_heap_are_as_listed)
{
	static const char *const lists[] = {"r2_ntdll_Win7x86", "r2_ntdll_Win10x64"};

	listings_or_skip();
	for (size_t i = 0; i < 2; i++) {
		const struct page_layout *row = page_layout(i ? 64 : 32);
		const char *list = lists[i];

		assert_listed(list, ROOT, "nVirtualStorageBytes", row->root_storage_bytes);
		assert_listed(list, ROOT, "BusyNodesTable", row->root_busy_table);
		assert_listed(
			list, ROOT, "nBusyAllocationBytesCommitted", row->root_busy_committed);
		assert_listed(
			list, ROOT, "nFreeAllocationBytesCommitted", row->root_free_committed);
		assert_listed(list, ROOT, "NextHeap", row->root_next);
		assert_listed(list, ROOT, "NormalHeap", row->root_normal_heap);
		assert_listed(list, ROOT, "CreateStackTrace", row->root_bytes);
		assert_listed(list, BLOCK, "pUserAllocation", row->block_user);
		assert_listed(list, BLOCK, "pVirtualBlock", row->block_virtual);
		assert_listed(list, BLOCK, "nVirtualBlockSize", row->block_virtual_bytes);
		assert_listed(list, BLOCK, "nVirtualAccessSize", row->block_access_bytes);
		assert_listed(list, BLOCK, "nUserRequestedSize", row->block_requested);
		assert_listed(list, BLOCK, "StackTrace", row->block_trace);
		assert_listed(list, BLOCK, "AdjacencyEntry", row->block_bytes);
		assert_listed(list, INFO, "Heap", row->info_heap);
		assert_listed(list, INFO, "RequestedSize", row->info_requested);
		assert_listed(list, INFO, "ActualSize", row->info_actual);
		assert_listed(list, INFO, "StackTrace", row->info_trace);
		assert_listed(list, INFO, "EndStamp", row->info_end);
		assert_int_equal(row->info_bytes, row->info_end + 4);
		/* The table has the size of its public declaration, up to the next field. */
		assert_listed(list, ROOT, "NodeToAllocate",
			row->root_busy_table + (row->bits == 64 ? 0x68 : 0x38));
	}
}
