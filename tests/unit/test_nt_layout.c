/* Every row of the NT heap's tables. Each field is compared with the listings of public symbols
 * that contain the field. */
#include "tests/unit/t.h"

#include "tests/unit/layout_listing.h"

#include "snapshot/heap/nt/nt.h"

/* Builds of each row, with their listings. */
static const struct listed {
	const char *row, *listing;
} listed[] = {
	{"nt 10.0.17763-22000 x64", "vol_win10_x64_17763"},
	{"nt 10.0.17763-22000 x64", "vol_win10_x64_19041"},
	{"nt 10.0.17763-22000 x64", "ntkrnlmp_win10_17763_x64"},
	{"nt 10.0.17763-22000 x64", "ntkrnlmp_win10_19041_x64"},
	{"nt 10.0.17763-22000 x64", "ntkrnlmp_srv2022_20348_x64"},
	{"nt 10.0.17763-22000 x64", "ntkrnlmp_win11_22000_x64"},
	{"nt 10.0.14393-17134 x64", "ntkrnlmp_win10_14393_x64"},
	{"nt 10.0.14393-17134 x64", "vol_win10_x64_15063"},
	{"nt 10.0.14393-17134 x64", "vol_win10_x64_17134"},
	{"nt 10.0.14393-17134 x64", "r2_ntdll_Win10x64"},
	{"nt 6.3.9600-10.0.10586 x64", "vol_win81_u1_x64"},
	{"nt 6.3.9600-10.0.10586 x64", "vol_win10_x64_10240_17770"},
	{"nt 6.2.9200 x64", "vol_win8_sp0_x64"},
	{"nt 6.1.7600-7601 x64", "vol_win7_sp1_x64"},
	{"nt 10.0.17763-19041 x86", "vol_win10_x86_17763"},
	{"nt 10.0.17763-19041 x86", "vol_win10_x86_19041"},
	{"nt 10.0.14393-17134 x86", "vol_win10_x86_15063"},
	{"nt 10.0.14393-17134 x86", "vol_win10_x86_17134"},
	{"nt 6.3.9600-10.0.10586 x86", "vol_win81_u1_x86"},
	{"nt 6.3.9600-10.0.10586 x86", "vol_win10_x86_10240_17770"},
	{"nt 6.2.9200 x86", "vol_win8_sp0_x86"},
	{"nt 6.1.7600-7601 x86", "vol_win7_sp1_x86"},
	{"nt 6.1.7600-7601 x86", "r2_ntdll_Win7x86"},
};

#define LISTED_COUNT (sizeof(listed) / sizeof(listed[0]))

struct field {
	const char *structure, *name; /* name: NULL means the structure's size */
	long offset;
};

/* Fails if a listing of the structure has the field at another offset. Returns true if a listing
 * has the field. */
static bool is_as_listed(const char *listing, const struct field *field)
{
	if (listing_find(listing, field->structure, field->name) == LISTING_NONE &&
		(!field->name || listing_find(listing, field->structure, NULL) == LISTING_NONE))
		return false;
	assert_listed(listing, field->structure, field->name, field->offset);
	return true;
}

static size_t hold_against(const char *listing, const struct field *fields, size_t count)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		known += is_as_listed(listing, &fields[i]);
	return known;
}

static const struct nt_layout *row_of(const char *name)
{
	for (size_t i = 0; i < nt_layout_count; i++)
		if (!strcmp(nt_layouts[i].name, name))
			return &nt_layouts[i];
	fail_msg("no row %s", name);
	return NULL;
}

TEST(rows_of_bitness_cover_every_build_once)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		uint64_t below = (uint64_t)UINT32_MAX + 1;

		for (size_t i = 0; i < nt_layout_count; i++) {
			if (nt_layouts[i].bits != bits)
				continue;
			assert_true(nt_layouts[i].first_build <= nt_layouts[i].last_build);
			assert_int_equal((uint64_t)nt_layouts[i].last_build + 1, below);
			below = nt_layouts[i].first_build;
		}
		assert_int_equal(below, 7600);
	}
}

TEST(heap_fields_are_as_in_symbols)
{
	listings_or_skip();
	for (size_t i = 0; i < LISTED_COUNT; i++) {
		const struct nt_layout *row = row_of(listed[i].row);
		const struct field fields[] = {
			{"_HEAP", "EncodeFlagMask", row->encode_mask},
			{"_HEAP", "Encoding", row->encoding},
			{"_HEAP", "Interceptor", row->interceptor},
			{"_HEAP", "Signature", row->signature},
			{"_HEAP", "VirtualAllocdBlocks", row->virtual_list},
			{"_HEAP", "SegmentList", row->segment_list},
			{"_HEAP", "LockVariable", row->lock},
			{"_HEAP", "HeaderValidateLength", row->valid_bytes},
			{"_HEAP", "FrontEndHeap", row->front_end},
			{"_HEAP", "FrontEndHeapType", row->front_end_type},
		};
		const struct field size = {"_HEAP", NULL, row->heap_bytes};
		size_t count = sizeof(fields) / sizeof(fields[0]);

		for (size_t j = 0; j < count; j++)
			assert_listed(listed[i].listing, fields[j].structure, fields[j].name,
				fields[j].offset);
		hold_against(listed[i].listing, &size, 1);
	}
}

TEST(fields_common_to_all_builds_are_as_in_symbols)
{
	listings_or_skip();
	for (size_t i = 0; i < LISTED_COUNT; i++) {
		const struct nt_common_layout *c = row_of(listed[i].row)->common;
		const struct field fields[] = {
			{"_HEAP_ENTRY", NULL, c->entry_bytes},
			{"_HEAP_SEGMENT", "SegmentSignature", c->segment_signature},
			{"_HEAP_SEGMENT", "SegmentListEntry", c->segment_link},
			{"_HEAP_SEGMENT", "Heap", c->segment_heap},
			{"_HEAP_SEGMENT", "BaseAddress", c->segment_base},
			{"_HEAP_SEGMENT", "NumberOfPages", c->segment_pages},
			{"_HEAP_SEGMENT", "FirstEntry", c->segment_first},
			{"_HEAP_SEGMENT", "LastValidEntry", c->segment_end},
			{"_HEAP_SEGMENT", "NumberOfUnCommittedPages", c->segment_hole_pages},
			{"_HEAP_SEGMENT", "UCRSegmentList", c->segment_holes},
			{"_HEAP_SEGMENT", NULL, c->segment_bytes},
			{"_HEAP_UCR_DESCRIPTOR", "SegmentEntry", c->hole_link},
			{"_HEAP_UCR_DESCRIPTOR", "Address", c->hole_address},
			{"_HEAP_UCR_DESCRIPTOR", "Size", c->hole_size},
			{"_HEAP_UCR_DESCRIPTOR", NULL, c->hole_bytes},
			{"_HEAP_VIRTUAL_ALLOC_ENTRY", "Entry", 0},
			{"_HEAP_VIRTUAL_ALLOC_ENTRY", "CommitSize", c->virtual_commit},
			{"_HEAP_VIRTUAL_ALLOC_ENTRY", "ReserveSize", c->virtual_reserve},
			{"_HEAP_VIRTUAL_ALLOC_ENTRY", "BusyBlock", c->virtual_entry},
			{"_HEAP_VIRTUAL_ALLOC_ENTRY", NULL, c->virtual_bytes},
			{"_RTL_CRITICAL_SECTION", "OwningThread", c->lock_owner},
		};

		assert_true(hold_against(listed[i].listing, fields,
				    sizeof(fields) / sizeof(fields[0])) >= 10);
	}
}

TEST(header_fields_are_as_in_symbols)
{
	listings_or_skip();
	for (size_t i = 0; i < LISTED_COUNT; i++) {
		long at = row_of(listed[i].row)->common->entry_coded;
		const struct field fields[] = {
			{"_HEAP_ENTRY", "Size", at + NT_ENTRY_SIZE / 8},
			{"_HEAP_ENTRY", "Flags", at + NT_ENTRY_FLAGS / 8},
			{"_HEAP_ENTRY", "SmallTagIndex", at + NT_ENTRY_TAG / 8},
			{"_HEAP_ENTRY", "PreviousSize", at + NT_ENTRY_PREVIOUS / 8},
			{"_HEAP_ENTRY", "SegmentOffset", at + NT_ENTRY_SEGMENT / 8},
			{"_HEAP_ENTRY", "UnusedBytes", at + NT_ENTRY_UNUSED / 8},
			/* The extended header, whose fields have the values 1, 0, number, 2 and
			 * 5. */
			{"_HEAP_ENTRY", "FunctionIndex", at},
			{"_HEAP_ENTRY", "ContextValue", at + 2},
			{"_HEAP_ENTRY", "UnusedBytesLength", at + NT_EXTENDED_UNUSED / 8},
			{"_HEAP_ENTRY", "EntryOffset", at + 6},
			{"_HEAP_ENTRY", "ExtendedBlockSignature", at + 7},
		};

		/* Listings from the kernel's symbols omit members of nested structures. */
		if (listing_find(listed[i].listing, "_HEAP_ENTRY", "Size") == LISTING_NONE)
			continue;
		assert_true(hold_against(listed[i].listing, fields,
				    sizeof(fields) / sizeof(fields[0])) >= 5);
	}
}

TEST(lfh_fields_are_as_in_symbols)
{
	size_t known = 0;

	listings_or_skip();
	for (size_t i = 0; i < LISTED_COUNT; i++) {
		const struct nt_layout *row = row_of(listed[i].row);
		const struct nt_lfh_layout *l = row->lfh;
		long pointer = row->bits / 8;
		const struct field fields[] = {
			{"_LFH_HEAP", "SubSegmentZones", l->lfh_zones},
			{"_LFH_HEAP", "Heap", l->lfh_heap},
			{"_LFH_BLOCK_ZONE", "ListEntry", 0},
			{"_LFH_BLOCK_ZONE", l->zone_counts ? "NextIndex" : "FreePointer",
				l->zone_end},
			{"_HEAP_SUBSEGMENT", "UserBlocks", l->sub_data},
			{"_HEAP_SUBSEGMENT", "BlockSize", l->sub_block_size},
			{"_HEAP_SUBSEGMENT", "BlockCount", l->sub_block_count},
			{"_HEAP_USERDATA_HEADER", "SubSegment", l->data_sub},
			{"_HEAP_USERDATA_HEADER", "Signature", l->data_signature},
			{"_HEAP_USERDATA_HEADER", NULL, l->data_bytes},
			/* Windows 7 lacks this field. */
			{"_HEAP_USERDATA_HEADER", "EncodedOffsets", l->data_offsets},
			{"_HEAP_USERDATA_HEADER", "SizeIndexAndPadding", l->data_room},
			{"_HEAP_USERDATA_HEADER", "BusyBitmap", l->data_bitmap_count},
			{"_HEAP_USERDATA_HEADER", "BitmapData", l->data_bitmap},
		};
		size_t count = sizeof(fields) / sizeof(fields[0]);

		known += hold_against(
			listed[i].listing, fields, l->data_bitmap_count ? count : count - 4);
		if (l->data_bitmap_count)
			assert_int_equal(l->data_bitmap_bytes, l->data_bitmap_count + pointer);
	}
	/* Known are both listings of Windows 7 and that of Windows 10 x64. */
	assert_true(known >= 20);
}
