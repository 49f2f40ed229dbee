/* Layouts of the process environment block, with their sources. */
#include "snapshot/target/peb_layout.h"

/*
 * struct _PEB: ImageBaseAddress, ProcessHeap, NtGlobalFlag, NumberOfHeaps, ProcessHeaps,
 * OSMajorVersion, OSMinorVersion, OSBuildNumber, Ldr. Sources: public symbols of ntdll and of the
 * kernel, XP to Windows 11 22000, as listed by Volatility, ntdiff and phnt; identical in all
 * versions. In Wine 8.0, ProcessHeap and NtGlobalFlag have the same offsets, and the list of heaps
 * is empty.
 *
 * ProcessParameters, _RTL_USER_PROCESS_PARAMETERS.ImagePathName and CommandLine,
 * _UNICODE_STRING.Buffer, _PEB_LDR_DATA, _LDR_DATA_TABLE_ENTRY, _TEB.NtTib.Self,
 * _TEB.ProcessEnvironmentBlock, _TEB.DeallocationStack, _TEB.GdiTebBatch: the same sources, XP to Windows 11 22000. For _TEB.NtTib.Self: phnt
 * and Microsoft's winternl.h. _TEB.WowTebOffset: the same, since Windows 10.
 *
 * The NtTib.ExceptionList of a 64-bit _TEB points to the 32-bit _TEB: HeapStat, phnt, and a dump of
 * a 32-bit program written by 64-bit Windows 7.
 *
 * _RTLP_PROCESS_HEAP_DESCRIPTOR and the UserContexts: public symbols of ntdll 26100, x64, as listed
 * by ntoskrnlib. dbgscope uses them to read live processes. x86: _HEAP.UserContext as in two dumps
 * of 26200; the descriptor's offsets follow from the order of its fields. */
static const struct peb_layout layouts[] = {
	{.bits = 32,
		.image_base = 0x08,
		.process_heap = 0x18,
		.global_flag = 0x68,
		.heap_count = 0x88,
		.heap_list = 0x90,
		.os_major = 0xa4,
		.os_minor = 0xa8,
		.os_build = 0xac,
		.ldr = 0x0c,
		.parameters = 0x10,
		.bytes = 0xb0,
		.image_path = 0x38,
		.command_line = 0x40,
		.string_buffer = 4,
		.load_order = 0x0c,
		.module_base = 0x18,
		.module_size = 0x20,
		.module_path = 0x24,
		.module_bytes = 0x2c,
		.teb_wow = 0,
		.teb_self = 0x18,
		.teb_peb = 0x30,
		.teb_distance = 0xfdc,
		.teb_stack = 0xe0c,
		.teb_batch = 0x1d4,
		.ring_heap = 0x08,
		.ring_bytes = 0x0c,
		.nt_context = 0xdc},
	{.bits = 64,
		.image_base = 0x10,
		.process_heap = 0x30,
		.global_flag = 0xbc,
		.heap_count = 0xe8,
		.heap_list = 0xf0,
		.os_major = 0x118,
		.os_minor = 0x11c,
		.os_build = 0x120,
		.ldr = 0x18,
		.parameters = 0x20,
		.bytes = 0x124,
		.image_path = 0x60,
		.command_line = 0x70,
		.string_buffer = 8,
		.load_order = 0x10,
		.module_base = 0x30,
		.module_size = 0x40,
		.module_path = 0x48,
		.module_bytes = 0x58,
		.teb_wow = 0,
		.teb_self = 0x30,
		.teb_peb = 0x60,
		.teb_distance = 0x180c,
		.teb_stack = 0x1478,
		.teb_batch = 0x2f0,
		.ring_heap = 0x10,
		.ring_bytes = 0x18,
		.nt_context = 0x188,
		.segment_context = 0x38},
};

const struct peb_layout *peb_layout(unsigned bits)
{
	return &layouts[bits == 64];
}
