#include "snapshot/peb_layout.h"

/*
 * struct _PEB: ProcessHeap, NtGlobalFlag, NumberOfHeaps, ProcessHeaps, OSMajorVersion,
 * OSMinorVersion, OSBuildNumber, Ldr. Public symbols of ntdll and of the kernel, XP to Windows 11
 * 22000, the same in all; as listed by Volatility, ntdiff and phnt. Wine 8.0 has ProcessHeap and
 * NtGlobalFlag there too and leaves the heap list empty.
 */
static const struct peb_layout layouts[] = {
	{.bits = 32,
		.process_heap = 0x18,
		.global_flag = 0x68,
		.heap_count = 0x88,
		.heap_list = 0x90,
		.os_major = 0xa4,
		.os_minor = 0xa8,
		.os_build = 0xac,
		.ldr = 0x0c,
		.bytes = 0xb0},
	{.bits = 64,
		.process_heap = 0x30,
		.global_flag = 0xbc,
		.heap_count = 0xe8,
		.heap_list = 0xf0,
		.os_major = 0x118,
		.os_minor = 0x11c,
		.os_build = 0x120,
		.ldr = 0x18,
		.bytes = 0x124},
};

const struct peb_layout *peb_layout(unsigned bits)
{
	return &layouts[bits == 64];
}
