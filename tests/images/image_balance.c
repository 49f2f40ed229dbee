/* Threads, views and handles of the process, and the figures of its balance. The figures are sums over
 * what the maker made: each region knows its use. */
#include "tests/images/image_inside.h"

#include <inttypes.h>

const struct made_handles image_handles[] = {{"Event", 12}, {"File", 9}, {"Key", 7}, {"", 2},
	{"Thread", THREADS}, {"ALPC Port", 2}, {"Section", 4}, {"Mutant", 1}, {NULL, 0}};

/* ---- threads and views, all below 1C0000, where image_reserve() reserves nothing */

struct stack_place {
	uint64_t base, bytes, committed;
};

#define TEBS_FROM 0x10000
#define TEB32_OFFSET 0x2000
#define VIEW_FILE 0x190000
#define VIEW_COPIES 0x1a0000
#define VIEW_SHARED 0x1b0000

/* Stacks of the second and third thread; {of the process's bitness, of the 64-bit side}. */
static const struct stack_place stack_places[THREADS - 1][2] = {
	{{0x40000, 0x40000, 0x5000}, {0x100000, 0x40000, 0x6000}},
	{{0x80000, 0x80000, 0x9000}, {0x140000, 0x40000, 0x3000}},
};

/* Commits the end of a stack, and a guard page below it. */
static void make_stack(struct image *image, const struct stack_place *place, uint64_t teb)
{
	uint64_t end = place->base + place->bytes;
	image_reserve_at(image, place->base, place->bytes)->use = USE_STACK;
	image_commit(image, end - place->committed, place->committed, IMAGE_READ | IMAGE_WRITE);
	image_commit(image, end - place->committed - PAGE_BYTES, PAGE_BYTES, IMAGE_GUARD);
	image_fill_teb(image, teb, place->base, place->bytes);
}

static void make_thread(struct image *image, unsigned number)
{
	uint64_t tebs = TEBS_FROM + (number - 1) * GRANULE_BYTES;
	const struct stack_place *places = stack_places[number - 1];
	image_reserve_at(image, tebs, GRANULE_BYTES)->use = USE_SYSTEM;
	image_commit(image, tebs, 0x3000, IMAGE_READ | IMAGE_WRITE);
	image->tebs[number] = tebs;
	if (image->profile->is_wow64) {
		image_side(image, 64);
		make_stack(image, &places[1], tebs);
		image_side(image, 32);
		tebs += TEB32_OFFSET;
	}
	make_stack(image, &places[0], tebs);
	if (image->profile->is_wow64)
		image_join_tebs(image, tebs, tebs - TEB32_OFFSET);
}

void image_make_threads(struct image *image)
{
	bool is_64 = image->profile->bits == 64 || image->profile->is_wow64;
	image->tebs[0] = image->sides[is_64].teb;
	for (unsigned i = 1; i < THREADS; i++)
		make_thread(image, i);
}

static void make_view(
	struct image *image, uint64_t base, uint64_t bytes, uint32_t protect, unsigned access)
{
	struct region *region = image_reserve_at(image, base, GRANULE_BYTES);
	region->use = USE_VIEW;
	region->protect = protect;
	image_commit(image, base, bytes, access);
}

/* Makes a read-only view, a copy-on-write view of which two pages were written, and a shared
 * view. */
void image_make_views(struct image *image)
{
	unsigned access = IMAGE_READ | IMAGE_WRITE;
	make_view(image, VIEW_FILE, 0x3000, 2, IMAGE_READ);
	make_view(image, VIEW_COPIES, 0x5000, 8, access | IMAGE_COPIED);
	image_commit(image, VIEW_COPIES + 0x1000, 0x2000, access);
	make_view(image, VIEW_SHARED, 0x4000, 4, access);
}

/* ---- figures */

/* Returns true if the process wrote to this page of an image or view, which is then a copy. */
static bool is_copy(const struct region *region, unsigned access)
{
	bool is_written = (access & IMAGE_WRITE) && !(access & IMAGE_COPIED);
	return is_written &&
	       (region->use == USE_MODULE || (region->use == USE_VIEW && region->protect == 8));
}

static uint64_t committed(const struct image *image, enum region_use use, bool is_of_copies)
{
	uint64_t pages = 0;
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		for (uint64_t page = 0; page < region->bytes / PAGE_BYTES; page++) {
			unsigned access = region->access[page];
			pages += region->use == use && access != 0 &&
				 is_copy(region, access) == is_of_copies;
		}
	}
	return pages * PAGE_BYTES;
}

static uint64_t reserved(const struct image *image, enum region_use use)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < image->region_count; i++)
		bytes += image->regions[i].use == use ? image->regions[i].bytes : 0;
	return bytes;
}

/* The system counts more than what is in the address space, such as page tables. */
struct made_counters image_counters(const struct image *image)
{
	uint64_t bytes = 0x7000;
	for (enum region_use use = USE_OTHER; use <= USE_SYSTEM; use++)
		bytes += committed(image, use, false);
	bytes += committed(image, USE_VIEW, true) + committed(image, USE_MODULE, true);
	return (struct made_counters){bytes, bytes + 0x123000, bytes / 0x2000 * 0x1000};
}

static void write_memory(FILE *file, const char *part, uint64_t bytes)
{
	fprintf(file, "memory %s %" PRIu64 "\n", part, bytes);
}

static void write_handles(FILE *file)
{
	unsigned count = 0;
	for (const struct made_handles *row = image_handles; row->count; row++) {
		if (*row->type)
			fprintf(file, "handles %u %s\n", row->count, row->type);
		count += row->count;
	}
	fprintf(file, "count handles %u\ncount threads %u\n", count, THREADS);
}

void image_write_balance(const struct image *image, FILE *file)
{
	struct made_counters counters = image_counters(image);
	uint64_t requested = 0, overhead = 0;
	for (size_t i = 0; i < image->block_count; i++) {
		requested += image->blocks[i].requested;
		overhead += image->blocks[i].overhead;
	}
	/* The blocks of a page heap also have pages that are only reserved. */
	if (overhead > committed(image, USE_HEAP, false) - requested)
		overhead = committed(image, USE_HEAP, false) - requested;
	write_memory(file, "private", counters.private_bytes);
	write_memory(file, "private-peak", counters.private_peak);
	write_memory(file, "working-set", counters.working_set);
	write_memory(file, "heap-blocks", requested);
	write_memory(file, "heap-overhead", overhead);
	write_memory(file, "heap-free", committed(image, USE_HEAP, false) - requested - overhead);
	write_memory(file, "tracer", 0);
	write_memory(file, "thread-stacks", committed(image, USE_STACK, false));
	write_memory(file, "thread-stacks-reserved", reserved(image, USE_STACK));
	write_memory(file, "virtual", committed(image, USE_OTHER, false));
	write_memory(file, "image-copies", committed(image, USE_MODULE, true));
	write_memory(file, "view-copies", committed(image, USE_VIEW, true));
	write_memory(file, "system", committed(image, USE_SYSTEM, false));
	write_memory(file, "mapped", committed(image, USE_VIEW, false));
	write_memory(file, "images", committed(image, USE_MODULE, false));
	write_handles(file);
}
