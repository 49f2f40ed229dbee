/* Offsets of fields in the process environment block, and in structures that are linked with it. */
#ifndef SNAPSHOT_TARGET_PEB_LAYOUT_H
#define SNAPSHOT_TARGET_PEB_LAYOUT_H

#include <stdint.h>

struct peb_layout {
	unsigned bits;
	/* _PEB */
	uint16_t image_base; /* ImageBaseAddress */
	uint16_t process_heap, global_flag, heap_count, heap_list;
	uint16_t os_major, os_minor, os_build;
	uint16_t ldr, parameters;
	uint16_t bytes; /* size of the part with all of these fields */
	uint16_t image_path,
		command_line; /* _RTL_USER_PROCESS_PARAMETERS.ImagePathName, .CommandLine */
	uint16_t string_buffer; /* _UNICODE_STRING.Buffer; .Length is at 0 */
	uint16_t load_order; /* _PEB_LDR_DATA.InLoadOrderModuleList */
	/* _LDR_DATA_TABLE_ENTRY: DllBase, SizeOfImage, FullDllName, and the size of the part with
	 * all of these. The links of the load order list are at 0. */
	uint16_t module_base, module_size, module_path, module_bytes;
	/* _TEB. In a 32-bit process on 64-bit Windows, the pointer at teb_wow of the 64-bit TEB
	 * leads to the 32-bit TEB. */
	uint16_t teb_wow, teb_self, teb_peb;
	/* _TEB.WowTebOffset: distance to the thread's other TEB; since Windows 10 */
	uint16_t teb_distance;
	uint16_t teb_stack; /* _TEB.DeallocationStack: start of the stack's address space */
	uint16_t teb_batch; /* _TEB.GdiTebBatch, which Wine uses for its own data */
	/* _RTLP_PROCESS_HEAP_DESCRIPTOR: Heap, and the size of the part with all fields. The links
	 * are at 0. */
	uint16_t ring_heap, ring_bytes;
	/* _HEAP.UserContext, _SEGMENT_HEAP.UserContext; 0: unknown */
	uint16_t nt_context, segment_context;
};

/* _HEAP.SegmentSignature and _SEGMENT_HEAP.Signature are at the same offset. Sources: public
 * symbols, as for the rows of nt_layout.c and segment_layout.c. */
#define NT_HEAP_SIGNATURE 0xffeeffeeu
#define SEGMENT_HEAP_SIGNATURE 0xddeeddeeu
#define NT_HEAP_SIGNATURE_AT(bits) ((bits) == 64 ? 0x10u : 0x08u)

#define TEB_BATCH_BYTES 0x4e0u /* size of _TEB.GdiTebBatch on x86; x64 has 8 bytes more */

const struct peb_layout *peb_layout(unsigned bits);

#endif
