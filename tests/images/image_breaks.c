/*
 * Damage to the minidump itself, and to the process's own lists.
 */
#include "tests/images/image_inside.h"

/* Numbers of the minidump's own that are not true. */
BREAK(count_modules, image->lies.module_count = UINT32_MAX)
BREAK(count_ranges, image->lies.range_count = UINT32_MAX)
BREAK(count_infos, image->lies.info_count = UINT32_MAX)
BREAK(count_threads, image->lies.thread_count = UINT32_MAX)
BREAK(module_bytes, image->lies.module_bytes = 0xfffff000)
BREAK(range_bytes, image->lies.range_bytes = (uint64_t)1 << 63)
BREAK(range_wild, image->lies.range_start = UINT64_MAX - 0xfff)
BREAK(base_rva, image->lies.base_rva = UINT64_MAX - 0xff)

static uint64_t heap_count_place(struct image *image)
{
	return image_marked(image, "process.peb", 0) + (image_ptr_bytes(image) == 8 ? 0xe8 : 0x88);
}

BREAK(count_heaps, image_put(image, heap_count_place(image), UINT32_MAX, 4))
BREAK(heap_list_wild, image_put_ptr(image, heap_count_place(image) + 8, 0xfffff00d))
BREAK(heap_wild, image_put_ptr(image, image_marked(image, "process.heap-list", 0), 0x7ffe1233))

static void heap_twice(struct image *image)
{
	uint64_t list = image_marked(image, "process.heap-list", 0);
	image_put_ptr(image, list + image_ptr_bytes(image), image_get_ptr(image, list));
}

static void cycle_loader(struct image *image)
{
	const struct side *side = image_at_side(image);
	uint64_t list = side->ldr + (image_ptr_bytes(image) == 8 ? 0x10 : 0xc);
	uint64_t first = image_get_ptr(image, list);
	image_put_ptr(image, first, first);
}

const struct image_break dump_breaks[] = {
	{"count-modules-ffffffff", "the dump counts 2^32-1 modules", count_modules},
	{"count-ranges-ffffffff", "the dump counts 2^32-1 ranges of memory", count_ranges},
	{"count-infos-ffffffff", "the dump counts 2^32-1 memory infos", count_infos},
	{"count-threads-ffffffff", "the dump counts 2^32-1 threads", count_threads},
	{"count-heaps-ffffffff", "the PEB counts 2^32-1 heaps", count_heaps},
	{"lying-module-size", "all modules say to have almost 4 GB", module_bytes},
	{"range-2-63", "a range of memory says to have 2^63 bytes", range_bytes},
	{"range-wild", "a range of memory is at the end of all addresses", range_wild},
	{"base-rva-wild", "the memory is said to be at 2^64-100h of the file", base_rva},
	{"heap-list-wild", "PEB.ProcessHeaps points at nothing", heap_list_wild},
	{"heap-wild", "the first heap's address is wild", heap_wild},
	{"heap-twice", "the second heap is the first", heap_twice},
	{"cycle-loader", "the loader's list is a circle without its head", cycle_loader},
	{0},
};
