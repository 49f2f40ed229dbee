/*
 * Page heap (verifier.dll): offsets, in bytes, of the fields that the walker reads. Sources: type
 * listings of ntdll for Windows 7 x86 and Windows 10 x64. The AVL table is a public type in
 * Microsoft's headers (RTL_AVL_TABLE). A comment next to each number names the structure and the
 * field.
 */
#ifndef SNAPSHOT_HEAP_PAGE_LAYOUT_H
#define SNAPSHOT_HEAP_PAGE_LAYOUT_H

#include <stdint.h>

struct page_layout {
	const char *name;
	unsigned bits;
	/* _DPH_HEAP_ROOT */
	uint16_t root_storage_bytes, root_busy_table, root_busy_committed;
	uint16_t root_free_committed, root_next, root_normal_heap, root_bytes;
	/* _RTL_AVL_TABLE, _RTL_BALANCED_LINKS */
	uint16_t table_count, links_parent, links_left, links_right;
	/* _DPH_HEAP_BLOCK */
	uint16_t block_user, block_virtual, block_virtual_bytes, block_access_bytes;
	uint16_t block_requested, block_trace, block_bytes;
	/* _DPH_BLOCK_INFORMATION */
	uint16_t info_heap, info_requested, info_actual, info_trace, info_end, info_bytes;
};

#define PAGE_START_FULL 0xabcdbbbbu /* StartStamp of live blocks */
#define PAGE_START_LIGHT 0xabcdaaaau
#define PAGE_END_FULL 0xdcbabbbbu /* EndStamp */
#define PAGE_END_LIGHT 0xdcbaaaaau

const struct page_layout *page_layout(unsigned bits);

#endif
