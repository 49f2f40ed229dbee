#include "tests/images/image_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct region *image_region(struct image *image, uint64_t addr)
{
	struct region *last = image->last;
	if (last && addr >= last->base && addr - last->base < last->bytes)
		return last;
	size_t low = 0;
	size_t high = image->region_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (image->regions[middle].base <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	struct region *region = &image->regions[low - 1];
	if (addr - region->base >= region->bytes)
		return NULL;
	image->last = region;
	return region;
}

static void *zeroed(uint64_t count)
{
	void *rows = calloc(count, 1);
	if (!rows)
		image_die("out of memory");
	return rows;
}

struct region *image_reserve_at(struct image *image, uint64_t base, uint64_t bytes)
{
	uint64_t rounded = (bytes + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
	image->regions = image_grow(image->regions, &image->region_capacity, image->region_count,
		sizeof(*image->regions));
	size_t at = image->region_count;
	while (at > 0 && image->regions[at - 1].base > base)
		at--;
	struct region *regions = image->regions;
	if ((at > 0 && base - regions[at - 1].base < regions[at - 1].bytes) ||
		(at < image->region_count && regions[at].base - base < rounded))
		image_die("no free place at %" PRIX64, base);
	memmove(&regions[at + 1], &regions[at], (image->region_count - at) * sizeof(*regions));
	image->region_count++;
	image->last = &regions[at];
	regions[at] = (struct region){.base = base,
		.bytes = rounded,
		.access = zeroed(rounded / PAGE_BYTES),
		.data = zeroed(rounded),
		.use = image->is_late ? USE_HEAP : USE_OTHER,
		.protect = 4};
	return &regions[at];
}

uint64_t image_reserve(struct image *image, uint64_t bytes, uint64_t align)
{
	if (align < GRANULE_BYTES)
		align = GRANULE_BYTES;
	struct side *side = image_at_side(image);
	uint64_t base = (side->cursor + align - 1) / align * align;
	/* Windows sometimes leaves a gap between two reservations. */
	uint64_t gap = image_random(image, 4) * GRANULE_BYTES;
	uint64_t rounded = (bytes + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
	side->cursor = base + rounded + gap;
	if (image->bits == 32 && side->cursor > 0x70000000)
		image_die("more than fits into 32 bits");
	return image_reserve_at(image, base, bytes)->base;
}

static struct region *region_of_all(
	struct image *image, uint64_t addr, uint64_t bytes, const char *what)
{
	struct region *region = image_region(image, addr);
	if (!region || bytes > region->bytes - (addr - region->base))
		image_die("%s of what is not reserved: %" PRIX64 " + %" PRIX64, what, addr, bytes);
	return region;
}

void image_commit(struct image *image, uint64_t addr, uint64_t bytes, unsigned access)
{
	struct region *region = region_of_all(image, addr, bytes, "commit");
	uint64_t first = (addr - region->base) / PAGE_BYTES;
	uint64_t end = (addr - region->base + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	memset(region->access + first, (int)access, end - first);
}

uint64_t image_committed(struct image *image, uint64_t addr, uint64_t bytes)
{
	struct region *region = region_of_all(image, addr, bytes, "count");
	uint64_t first = (addr - region->base) / PAGE_BYTES;
	uint64_t count = 0;
	for (uint64_t i = 0; i < bytes / PAGE_BYTES; i++)
		count += region->access[first + i] != 0;
	return count * PAGE_BYTES;
}

bool image_is_held(unsigned access)
{
	return access != 0 && access != IMAGE_GUARD;
}

void image_decommit(struct image *image, uint64_t addr, uint64_t bytes)
{
	image_commit(image, addr, bytes, 0);
	struct region *region = image_region(image, addr);
	memset(region->data + (addr - region->base), 0, bytes);
}

static uint8_t *bytes_at(struct image *image, uint64_t addr, uint64_t bytes)
{
	struct region *region = image_region(image, addr);
	uint64_t offset = region ? addr - region->base : 0;
	if (!region || bytes == 0 || bytes > region->bytes - offset ||
		!image_is_held(region->access[offset / PAGE_BYTES]) ||
		!image_is_held(region->access[(offset + bytes - 1) / PAGE_BYTES]))
		image_die("not committed: %" PRIX64 " + %" PRIX64, addr, bytes);
	return region->data + offset;
}

void image_write(struct image *image, uint64_t addr, uint64_t value, size_t bytes)
{
	uint8_t *at = bytes_at(image, addr, bytes);
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

uint64_t image_get(struct image *image, uint64_t addr, size_t bytes)
{
	const uint8_t *at = bytes_at(image, addr, bytes);
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

void image_write_ptr(struct image *image, uint64_t addr, uint64_t value)
{
	image_write(image, addr, value, image_ptr_bytes(image));
}

uint64_t image_get_ptr(struct image *image, uint64_t addr)
{
	return image_get(image, addr, image_ptr_bytes(image));
}

void image_fill(struct image *image, uint64_t addr, int byte, uint64_t bytes)
{
	if (bytes > 0)
		memset(bytes_at(image, addr, bytes), byte, bytes);
}

void image_write_bytes(struct image *image, uint64_t addr, const void *bytes, size_t count)
{
	if (count > 0)
		memcpy(bytes_at(image, addr, count), bytes, count);
}

void image_write_text(struct image *image, uint64_t addr, const char *text)
{
	for (size_t i = 0; text[i]; i++)
		image_write(image, addr + 2 * i, (unsigned char)text[i], 2);
}

void image_write_string(struct image *image, uint64_t addr, uint64_t text_addr, const char *text)
{
	size_t bytes = 2 * strlen(text);
	image_write(image, addr, bytes, 2);
	image_write(image, addr + 2, bytes + 2, 2);
	image_write_ptr(image, addr + image_ptr_bytes(image), text_addr);
	image_write_text(image, text_addr, text);
}

void image_list_init(struct image *image, uint64_t head)
{
	image_write_ptr(image, head, head);
	image_write_ptr(image, head + image_ptr_bytes(image), head);
}

void image_list_add(struct image *image, uint64_t head, uint64_t entry)
{
	unsigned ptr = image_ptr_bytes(image);
	uint64_t last = image_get_ptr(image, head + ptr);
	image_write_ptr(image, entry, head);
	image_write_ptr(image, entry + ptr, last);
	image_write_ptr(image, last, entry);
	image_write_ptr(image, head + ptr, entry);
}
