#include <stdlib.h>
#include <strings.h>

#include "core/pe.h"
#include "snapshot/heap/segment/segment_heap.h"

/*
 * ntdll keeps the keys of segment heaps side by side (RtlpHpHeapGlobals), under a name that only symbols
 * know. One of them is known from the heaps themselves: where it stands in ntdll's writable data, the
 * other one is next to it.
 */

#define SCAN_BYTES_MAX ((uint64_t)16 << 20) /* of all modules of that name; ntdll has far less */
#define NTDLL "ntdll.dll"

struct scan {
	struct nt_walk *nt;
	const struct segment_parts *parts;
	const struct segment_globals *wanted;
	uint64_t left; /* bytes that may still be looked at */
};

static bool is_at(const struct scan *scan, uint64_t addr)
{
	struct memory *memory = scan->nt->memory;
	unsigned bits = scan->parts->bits;
	uint64_t heap_key, lfh_key;

	return !memory_ptr(memory, bits, addr + scan->parts->globals_heap_key, &heap_key) &&
	       heap_key == scan->wanted->heap_key &&
	       !memory_ptr(memory, bits, addr + scan->parts->globals_lfh_key, &lfh_key) &&
	       scan->wanted->fits(scan->wanted->ctx, (uint32_t)lfh_key);
}

static bool scan_section(struct scan *scan, uint64_t addr, uint64_t end)
{
	unsigned step = scan->parts->bits / 8;
	uint8_t there;

	for (; addr + step <= end && scan->left >= step; addr += step) {
		scan->left -= step;
		if (is_at(scan, addr))
			return true;
		if (addr % CLAIM_PAGE_BYTES < step && memory_u8(scan->nt->memory, addr, &there))
			addr = (addr | (CLAIM_PAGE_BYTES - 1)) + 1 -
			       step; /* on with the next page */
	}
	return false;
}

static bool scan_module(struct scan *scan, uint64_t base)
{
	struct target_image at = {scan->nt->memory->target, base};
	const struct pe_source source = target_image_source(&at);
	struct pe_image *image = malloc(sizeof(*image));
	bool found = false;

	if (image && !pe_read_headers(&source, image) && image->bits == scan->parts->bits) {
		for (size_t i = 0; !found && i < image->section_count; i++) {
			const struct pe_section *section = &image->sections[i];
			uint64_t addr = base + section->rva;

			if (section->is_writable)
				found = scan_section(scan, addr, addr + section->size_bytes);
		}
	}
	free(image);
	return found;
}

bool segment_globals_find(
	struct nt_walk *nt, const struct segment_parts *parts, const struct segment_globals *wanted)
{
	struct target *target = nt->memory->target;
	struct scan scan = {.nt = nt, .parts = parts, .wanted = wanted, .left = SCAN_BYTES_MAX};
	struct snapshot modules;
	struct err err;
	bool found = false;

	snapshot_init(&modules);
	if (!target->ops->modules(target, &modules, &err)) {
		for (size_t i = 0; !found && i < modules.module_count; i++) {
			const struct module *module = &modules.modules[i];

			if (module->path && !strcasecmp(path_base(module->path), NTDLL))
				found = scan_module(&scan, module->base);
		}
	}
	snapshot_release(&modules);
	return found;
}
