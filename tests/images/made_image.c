#include "tests/images/image_inside.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct profile profiles[] = {
	{"win7-x86", 32, 6, 1, 7601, false},
	{"win7-x64", 64, 6, 1, 7601, false},
	{"win8-x64", 64, 6, 2, 9200, false},
	{"win8-x86", 32, 6, 2, 9200, false},
	{"win81-x64", 64, 6, 3, 9600, false},
	{"win81-x86", 32, 6, 3, 9600, false},
	{"win10-10240-x64", 64, 10, 0, 10240, false},
	{"win10-14393-x64", 64, 10, 0, 14393, false},
	{"win10-16299-x64", 64, 10, 0, 16299, false},
	{"win10-17134-x64", 64, 10, 0, 17134, false},
	{"win10-17134-x86", 32, 10, 0, 17134, false},
	{"win10-17763-x64", 64, 10, 0, 17763, false},
	{"win10-x86", 32, 10, 0, 19041, false},
	{"win10-x64", 64, 10, 0, 19041, false},
	{"win11-x64", 64, 10, 0, 22000, false},
	{"win11-26100-x86", 32, 10, 0, 26100, false},
	{"win11-26100-x64", 64, 10, 0, 26100, false},
	{"wow64", 32, 10, 0, 19041, true},
	{"wow64-26100", 32, 10, 0, 26100, true},
};

const struct profile *profile_at(size_t number)
{
	return number < sizeof(profiles) / sizeof(*profiles) ? &profiles[number] : NULL;
}

const struct profile *profile_find(const char *name)
{
	for (size_t i = 0; profile_at(i); i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}

void image_die(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fputs("make_image: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	exit(1);
}

void *image_grow(void *rows, size_t *capacity, size_t count, size_t row_bytes)
{
	if (count < *capacity)
		return rows;
	*capacity = *capacity ? 2 * *capacity : 64;
	rows = realloc(rows, *capacity * row_bytes);
	if (!rows)
		image_die("out of memory");
	return rows;
}

/* splitmix64, by Sebastiano Vigna (public domain): any state is a valid seed. */
uint64_t image_hash(uint64_t value)
{
	value += 0x9e3779b97f4a7c15u;
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
	return value ^ (value >> 31);
}

uint64_t image_random(struct image *image, uint64_t limit)
{
	image->random_state += 0x9e3779b97f4a7c15u;
	return image_hash(image->random_state) % limit;
}

uint64_t image_chance(const struct image *image, const char *what, uint64_t limit)
{
	uint64_t hash = image->options.seed;
	for (; *what; what++)
		hash = image_hash(hash ^ (unsigned char)*what);
	return hash % limit;
}

struct side *image_at_side(struct image *image)
{
	return &image->sides[image->bits == 64];
}

static const struct side *side_of(const struct image *image)
{
	return &image->sides[image->bits == 64];
}

bool image_is_other_side(const struct image *image)
{
	return image->bits != image->profile->bits;
}

void image_side(struct image *image, unsigned bits)
{
	image->bits = bits;
}

const struct image_options *image_options(const struct image *image)
{
	return &image->options;
}

const struct profile *image_profile(const struct image *image)
{
	return &side_of(image)->profile;
}

unsigned image_ptr_bytes(const struct image *image)
{
	return image->bits / 8;
}

bool image_has_ust(const struct image *image)
{
	return (image->options.nt_global_flag & FLAG_STACK_TRACES) && !image_is_other_side(image) &&
	       !image->options.is_flag_only;
}

unsigned image_stack_count(const struct image *image)
{
	return image->options.stack_count;
}

uint64_t image_stack_record(struct image *image, unsigned stack)
{
	if (!image_has_ust(image))
		return 0;
	if (stack >= image->options.stack_count)
		image_die("no stack %u", stack);
	return image_at_side(image)->stacks[stack].record;
}

uint32_t image_lfh_key(const struct image *image)
{
	return side_of(image)->lfh_key;
}

uint64_t image_hp_heap_key(const struct image *image)
{
	return side_of(image)->hp_heap_key;
}

uint64_t image_hp_lfh_key(const struct image *image)
{
	return side_of(image)->hp_lfh_key;
}

uint64_t image_page_heap_list(const struct image *image)
{
	return side_of(image)->page_heap_list;
}

void image_mark(struct image *image, const char *name, uint64_t addr)
{
	image->marks = image_grow(
		image->marks, &image->mark_capacity, image->mark_count, sizeof(*image->marks));
	image->marks[image->mark_count++] = (struct mark){name, addr};
}

uint64_t image_marked(const struct image *image, const char *name, size_t number)
{
	for (size_t i = 0; i < image->mark_count; i++)
		if (strcmp(image->marks[i].name, name) == 0 && number-- == 0)
			return image->marks[i].addr;
	return 0;
}

/* Windows 7 places reservations from low addresses up; later versions place them at random high
 * addresses on x64. */
static uint64_t first_place(struct image *image, const struct profile *profile)
{
	if (profile->bits == 32)
		return 0x00800000 + image_random(image, 64) * GRANULE_BYTES;
	if (profile->os_build < 9200)
		return 0x00200000 + image_random(image, 64) * GRANULE_BYTES;
	return (0x100 + image_random(image, 0x180)) << 32 | image_random(image, 0x4000) << 16;
}

/* Returns the size of the area for heaps: all memory below the modules, or on x64 64 GB per heap if
 * there are few heaps. */
static uint64_t room_for_heaps(struct image *image, unsigned count)
{
	uint64_t end = 0x6f000000;
	if (image->bits == 64)
		end = image_profile(image)->os_build < 9200 ? 0x7f000000000 : 0x7f0000000000;
	uint64_t room = end - image_at_side(image)->heaps_from;
	return image->bits == 64 && count < room >> 36 ? (uint64_t)count << 36 : room;
}

void image_begin_heap(struct image *image, unsigned number, unsigned count)
{
	struct side *side = image_at_side(image);
	uint64_t room = room_for_heaps(image, count);
	/* If there are many heaps, the first and largest one gets a quarter of the area. */
	uint64_t first = count > 100 ? room / 4 : room / count;
	uint64_t from = number ? first + (room - first) / (count - 1) * (number - 1) : 0;
	image->random_state = image_hash(image->options.seed ^ image_hash(number + image->bits));
	side->cursor = (side->heaps_from + from) & ~(uint64_t)(GRANULE_BYTES - 1);
}

struct image *image_new(const struct profile *profile, const struct image_options *options)
{
	struct image *image = calloc(1, sizeof(*image));
	if (!image)
		image_die("out of memory");
	image->options = *options;
	image->profile = profile;
	image->random_state = image_hash(options->seed);
	for (unsigned i = 0; i < 2; i++) {
		struct side *side = &image->sides[i];
		side->profile = *profile;
		side->profile.bits = i ? 64 : 32;
		side->cursor = first_place(image, &side->profile);
	}
	image->bits = profile->bits;
	image_make_process(image);
	image->is_late = true;
	image->sides[0].heaps_from = image->sides[0].cursor;
	image->sides[1].heaps_from = image->sides[1].cursor;
	return image;
}

void image_free(struct image *image)
{
	for (size_t i = 0; i < image->region_count; i++) {
		free(image->regions[i].access);
		free(image->regions[i].data);
	}
	for (size_t i = 0; i < 2; i++) {
		free(image->sides[i].stacks);
		free(image->sides[i].ring.heaps);
		free(image->sides[i].ring.blocks);
	}
	free(image->regions);
	free(image->heaps);
	free(image->containers);
	free(image->blocks);
	free(image->marks);
	free(image);
}
