#include "tests/unit/t.h"

#include "tests/unit/layout_listing.h"

#include "snapshot/target/peb_layout.h"

static const struct listed {
	const char *listing;
	unsigned bits;
} listed[] = {
	{"vol_win7_sp1_x86", 32},
	{"vol_win8_sp0_x86", 32},
	{"vol_win81_u1_x86", 32},
	{"vol_win10_x86_10240_17770", 32},
	{"vol_win10_x86_15063", 32},
	{"vol_win10_x86_17134", 32},
	{"vol_win10_x86_17763", 32},
	{"vol_win10_x86_19041", 32},
	{"vol_win7_sp1_x64", 64},
	{"vol_win8_sp0_x64", 64},
	{"vol_win81_u1_x64", 64},
	{"vol_win10_x64_10240_17770", 64},
	{"vol_win10_x64_15063", 64},
	{"vol_win10_x64_17134", 64},
	{"vol_win10_x64_17763", 64},
	{"vol_win10_x64_19041", 64},
	{"ntkrnlmp_win10_14393_x64", 64},
	{"ntkrnlmp_win10_17763_x64", 64},
	{"ntkrnlmp_win10_19041_x64", 64},
	{"ntkrnlmp_srv2022_20348_x64", 64},
	{"ntkrnlmp_win11_22000_x64", 64},
};

static void assert_peb_is_listed(const char *list, const char *peb, const struct peb_layout *row)
{
	assert_listed(list, peb, "ImageBaseAddress", row->image_base);
	assert_listed(list, peb, "ProcessHeap", row->process_heap);
	assert_listed(list, peb, "NtGlobalFlag", row->global_flag);
	assert_listed(list, peb, "NumberOfHeaps", row->heap_count);
	assert_listed(list, peb, "ProcessHeaps", row->heap_list);
	assert_listed(list, peb, "OSMajorVersion", row->os_major);
	assert_listed(list, peb, "OSMinorVersion", row->os_minor);
	assert_listed(list, peb, "OSBuildNumber", row->os_build);
	assert_listed(list, peb, "Ldr", row->ldr);
	assert_listed(list, peb, "ProcessParameters", row->parameters);
}

TEST(environment_blocks_of_every_listed_build_are_those_of_table)
{
	unsigned blocks = 0;

	listings_or_skip();
	for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
		const char *list = listed[i].listing;
		const struct peb_layout *row = peb_layout(listed[i].bits);

		assert_int_equal(row->bits, listed[i].bits);
		assert_peb_is_listed(list, "_PEB", row);
		assert_listed(list, "_TEB", "ProcessEnvironmentBlock", row->teb_peb);
		assert_listed(
			list, "_RTL_USER_PROCESS_PARAMETERS", "ImagePathName", row->image_path);
		assert_listed(
			list, "_RTL_USER_PROCESS_PARAMETERS", "CommandLine", row->command_line);
		if (listing_find(list, "_NT_TIB", "Self") != LISTING_NONE)
			assert_listed(list, "_NT_TIB", "Self", row->teb_self);
		if (listing_find(list, "_NT_TIB", "ExceptionList") != LISTING_NONE)
			assert_listed(list, "_NT_TIB", "ExceptionList", row->teb_wow);
		if (listing_find(list, "_TEB", "WowTebOffset") != LISTING_NONE)
			assert_listed(list, "_TEB", "WowTebOffset", row->teb_distance);
		if (listing_find(list, "_UNICODE_STRING", "Buffer") != LISTING_NONE)
			assert_listed(list, "_UNICODE_STRING", "Buffer", row->string_buffer);
		/* Blocks that 64-bit systems keep for 32-bit processes. */
		if (listing_find(list, "_PEB32", NULL) != LISTING_NONE) {
			assert_peb_is_listed(list, "_PEB32", peb_layout(32));
			assert_listed(
				list, "_TEB32", "ProcessEnvironmentBlock", peb_layout(32)->teb_peb);
		}
		blocks++;
	}
	assert_true(blocks > 20);
}

TEST(so_many_bytes_hold_all_fields_of_row)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		const struct peb_layout *row = peb_layout(bits);
		const uint16_t ends[] = {row->process_heap + bits / 8, row->global_flag + 4,
			row->heap_count + 4, row->heap_list + bits / 8, row->os_major + 4,
			row->os_minor + 4, row->os_build + 2, row->ldr + bits / 8,
			row->parameters + bits / 8};

		for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
			assert_true(ends[i] <= row->bytes);
	}
}
