#include "tests/images/image_inside.h"
#include "tests/images/model_plan.h"

/* Writes false numbers into the minidump's own streams. */
BREAK(count_modules, image->lies.module_count = UINT32_MAX)
BREAK(count_ranges, image->lies.range_count = UINT32_MAX)
BREAK(count_infos, image->lies.info_count = UINT32_MAX)
BREAK(count_threads, image->lies.thread_count = UINT32_MAX)
BREAK(module_bytes, image->lies.module_bytes = 0xfffff000)
BREAK(range_bytes, image->lies.range_bytes = (uint64_t)1 << 63)
BREAK(range_wild, image->lies.range_start = UINT64_MAX - 0xfff)
BREAK(base_rva, image->lies.base_rva = UINT64_MAX - 0xff)

/* The balance of the process. */
BREAK(count_handles, image->lies.handle_count = UINT32_MAX)
BREAK(handle_bytes, image->lies.handle_bytes = 8)
BREAK(handle_bytes_wild, image->lies.handle_bytes = UINT32_MAX)
BREAK(type_name_wild, image->lies.type_name = 0xfffffff0)
BREAK(type_name_bytes, image->lies.type_name_bytes = 0xfffffffe)
BREAK(many_types, image->lies.has_many_types = true)
BREAK(counter_wild, image->lies.counter = UINT64_MAX - 1)
BREAK(counters_revision, image->lies.counters_revision = 3)
BREAK(info_bytes, image->lies.info_bytes = UINT64_MAX - 0xfff)
BREAK(info_start, image->lies.info_start = 0x1000)
BREAK(info_allocation_high, image->lies.info_allocation = (uint64_t)1 << 46)
BREAK(info_allocation_low, image->lies.info_allocation = 0x1000)
BREAK(info_state, image->lies.info_state = 0x4000)
BREAK(info_type, image->lies.info_type = 0x30000)
BREAK(info_twice, image->lies.is_info_twice = true)
BREAK(info_swapped, image->lies.is_info_swapped = true)
BREAK(teb_wild, image->tebs[1] = 0x7ffe1000)

static uint64_t heap_count_place(struct image *image)
{
	return image_marked(image, "process.peb", 0) + (image_ptr_bytes(image) == 8 ? 0xe8 : 0x88);
}

BREAK(count_heaps, image_write(image, heap_count_place(image), UINT32_MAX, 4))
BREAK(heap_list_wild, image_write_ptr(image, heap_count_place(image) + 8, 0xfffff00d))
BREAK(heap_wild, image_write_ptr(image, image_marked(image, "process.heap-list", 0), 0x7ffe1233))

static void heap_twice(struct image *image)
{
	uint64_t list = image_marked(image, "process.heap-list", 0);
	if (image_at_side(image)->ring.head)
		image_die("nothing to damage: a second heap in the PEB");
	image_write_ptr(image, list + image_ptr_bytes(image), image_get_ptr(image, list));
}

static void cycle_loader(struct image *image)
{
	const struct side *side = image_at_side(image);
	uint64_t list = side->ldr + (image_ptr_bytes(image) == 8 ? 0x10 : 0xc);
	uint64_t first = image_get_ptr(image, list);
	image_write_ptr(image, first, first);
}

/* ---- ring of heaps */

static size_t ring_count(struct image *image)
{
	size_t count = 0;
	model_marked(image, "ring entry", 0);
	while (image_marked(image, "ring entry", count))
		count++;
	return count;
}

static uint64_t ring_last(struct image *image)
{
	return model_marked(image, "ring entry", ring_count(image) - 1);
}

static uint64_t blink_of(struct image *image, uint64_t entry)
{
	return entry + image_ptr_bytes(image);
}

BREAK(ring_cut, image_write_ptr(image,
			model_marked(image, "ring entry", (ring_count(image) - 1) / 2), 0x7ffe1238))
BREAK(ring_not_named_back,
	image_write_ptr(image, model_marked(image, "ring context", ring_count(image) - 1),
		model_marked(image, "ring spare block", 0)))
BREAK(ring_missing, image_write_ptr(image, model_marked(image, "ring process context", 0), 0))

/* If there are three entries, loops back to the second one: a walk that began at the first entry
 * would never end. */
static void ring_loop(struct image *image)
{
	size_t earlier = ring_count(image) > 2 ? 1 : 0;
	image_write_ptr(image, ring_last(image), model_marked(image, "ring entry", earlier));
}

static void ring_no_head(struct image *image)
{
	uint64_t first = model_marked(image, "ring entry", 0);
	uint64_t last = ring_last(image);
	image_write_ptr(image, last, first);
	image_write_ptr(image, blink_of(image, first), last);
}

/* Links an entry of a destroyed heap after the first entry. */
static void ring_stale(struct image *image)
{
	uint64_t first = model_marked(image, "ring entry", 0);
	uint64_t next = image_get_ptr(image, first);
	uint64_t stale = model_marked(image, "ring spare block", 0);
	image_fill(image, stale, 0, 4ull * image_ptr_bytes(image));
	image_write_ptr(image, stale, next);
	image_write_ptr(image, blink_of(image, stale), first);
	image_write_ptr(image, stale + 2ull * image_ptr_bytes(image),
		image_reserve(image, GRANULE_BYTES, 0));
	image_write_ptr(image, first, stale);
	image_write_ptr(image, blink_of(image, next), stale);
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
	{"count-handles-ffffffff", "the dump counts 2^32-1 handles", count_handles},
	{"handle-bytes-8", "an entry of a handle has 8 bytes", handle_bytes},
	{"handle-bytes-ffffffff", "an entry of a handle has 2^32-1 bytes", handle_bytes_wild},
	{"type-name-wild", "the names of handles' types are outside the file", type_name_wild},
	{"type-name-long", "the names of handles' types have 2^32-2 bytes", type_name_bytes},
	{"many-types", "300 more handles, each of its own type", many_types},
	{"counters-wild", "the VM counters are 2^64-2", counter_wild},
	{"counters-revision-3", "the VM counters have an unknown form", counters_revision},
	{"info-size-wild", "a memory info has almost 2^64 bytes", info_bytes},
	{"info-low", "a memory info is at 1000", info_start},
	{"info-allocation-high", "a memory info lies before its allocation", info_allocation_high},
	{"info-allocation-low", "an allocation begins in an earlier one", info_allocation_low},
	{"info-state", "a memory info has an unknown state", info_state},
	{"info-type", "a memory info has an unknown type", info_type},
	{"info-twice", "a memory info occurs twice", info_twice},
	{"info-swapped", "two memory infos are in the wrong order", info_swapped},
	{"teb-wild", "a thread's TEB is not in the dump", teb_wild},
	{"heap-list-wild", "PEB.ProcessHeaps points at nothing", heap_list_wild},
	{"heap-wild", "the first heap's address is wild", heap_wild},
	{"heap-twice", "the second heap is the first", heap_twice},
	{"cycle-loader", "the loader's list is a circle without its head", cycle_loader},
	{"ring-cut", "an entry of the ring of heaps leads to memory that is not there", ring_cut},
	{"ring-not-named-back", "the last heap of the ring names a block without an entry",
		ring_not_named_back},
	{"ring-loop", "the ring's last entry leads to an earlier one, not to the head", ring_loop},
	{"ring-no-head", "the ring closes without its head", ring_no_head},
	{"ring-stale", "the ring has an entry whose heap was destroyed", ring_stale},
	{"ring-missing", "the process heap names no entry of the ring", ring_missing},
	{0},
};
