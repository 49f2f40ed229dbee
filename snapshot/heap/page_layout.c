/* Layouts of page heap structures, by bitness. */
#include "snapshot/heap/page_layout.h"

/* Source: ntdll listing of Windows 10 x64; for the AVL table, its public declaration. */
static const struct page_layout layout_x64 = {
	.name = "page 10.0 x64",
	.bits = 64,
	.root_storage_bytes = 0x30, /* nVirtualStorageBytes */
	.root_busy_table = 0x38, /* BusyNodesTable */
	.root_busy_committed = 0xb0, /* nBusyAllocationBytesCommitted */
	.root_free_committed = 0xd0, /* nFreeAllocationBytesCommitted */
	.root_next = 0x138, /* NextHeap */
	.root_normal_heap = 0x150, /* NormalHeap */
	.root_bytes = 0x158,
	.table_count = 0x2c, /* NumberGenericTableElements */
	.links_parent = 0x00,
	.links_left = 0x08,
	.links_right = 0x10,
	.block_user = 0x20, /* pUserAllocation */
	.block_virtual = 0x28, /* pVirtualBlock */
	.block_virtual_bytes = 0x30, /* nVirtualBlockSize */
	.block_access_bytes = 0x38, /* nVirtualAccessSize */
	.block_requested = 0x40, /* nUserRequestedSize */
	.block_trace = 0x60, /* StackTrace */
	.block_bytes = 0x68,
	.info_heap = 0x08,
	.info_requested = 0x10,
	.info_actual = 0x18,
	.info_trace = 0x30, /* StackTrace */
	.info_end = 0x3c, /* EndStamp */
	.info_bytes = 0x40,
};

/* Source: ntdll listing of Windows 7 x86. */
static const struct page_layout layout_x86 = {
	.name = "page 6.1 x86",
	.bits = 32,
	.root_storage_bytes = 0x1c,
	.root_busy_table = 0x20,
	.root_busy_committed = 0x60,
	.root_free_committed = 0x70,
	.root_next = 0xa4,
	.root_normal_heap = 0xb4,
	.root_bytes = 0xb8,
	.table_count = 0x18,
	.links_parent = 0x00,
	.links_left = 0x04,
	.links_right = 0x08,
	.block_user = 0x10,
	.block_virtual = 0x14,
	.block_virtual_bytes = 0x18,
	.block_access_bytes = 0x1c,
	.block_requested = 0x20,
	.block_trace = 0x30,
	.block_bytes = 0x34,
	.info_heap = 0x04,
	.info_requested = 0x08,
	.info_actual = 0x0c,
	.info_trace = 0x18,
	.info_end = 0x1c,
	.info_bytes = 0x20,
};

const struct page_layout *page_layout(unsigned bits)
{
	return bits == 64 ? &layout_x64 : &layout_x86;
}
