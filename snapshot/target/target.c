#include "snapshot/target/target.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/memory.h"

int target_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	if (addr + len < addr)
		return -ERR_READ;
	target->reads++;
	target->read_bytes += len;
	return target->ops->read(target, addr, bytes, len);
}

int target_u32(struct target *target, uint64_t addr, uint32_t *value)
{
	unsigned char bytes[4];
	int rc = target_read(target, addr, bytes, sizeof(bytes));

	if (!rc)
		*value = bytes_u32(bytes);
	return rc;
}

int target_u64(struct target *target, uint64_t addr, uint64_t *value)
{
	unsigned char bytes[8];
	int rc = target_read(target, addr, bytes, sizeof(bytes));

	if (!rc)
		*value = bytes_u64(bytes);
	return rc;
}

uint64_t target_committed_bytes(struct target *target)
{
	struct target_region region = {0};
	uint64_t bytes = 0;

	if (!target->ops->region)
		return TARGET_SPACE_BYTES;
	while (!target->ops->region(target, region.end, &region) && region.end > region.addr)
		bytes += region.end - region.addr;
	return bytes < TARGET_SPACE_BYTES ? bytes : TARGET_SPACE_BYTES;
}

int target_err(struct target *target, uint64_t addr, const char *what, struct err *err)
{
	if (!target->ops->is_alive(target))
		return err_set(err, ERR_GONE, target->name, NULL);
	return err_set(err, ERR_TARGET, target->name, "%s at %" PRIX64, what, addr);
}

static int read_image(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	struct target_image *image = ctx;

	return target_read(image->target, image->base + offset, bytes, len);
}

struct pe_source target_image_source(struct target_image *image)
{
	return (struct pe_source){.read = read_image, .ctx = image, .in_memory = true};
}

#define PAGE_BYTES 4096u /* the smallest there are */

void target_ranges_init(struct target_ranges *ranges)
{
	*ranges = (struct target_ranges){0};
}

void target_ranges_release(struct target_ranges *ranges)
{
	free(ranges->items);
	target_ranges_init(ranges);
}

void target_ranges_clear(struct target_ranges *ranges)
{
	ranges->count = 0;
	ranges->is_settled = false;
}

int target_ranges_add(struct target_ranges *ranges, uint64_t addr, uint64_t len)
{
	if (!len)
		return 0;
	if (len > TARGET_SPACE_BYTES || addr > TARGET_SPACE_BYTES - len ||
		ranges->count >= TARGET_RANGES_MAX ||
		array_grow((void **)&ranges->items, &ranges->cap, ranges->count,
			sizeof(*ranges->items)))
		return -ERR_NOMEM;
	ranges->items[ranges->count++] = (struct target_range){addr, addr + len};
	ranges->is_settled = false;
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct target_range *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Whether the range after last can be read with it. */
static bool is_one(const struct target_range *last, const struct target_range *next)
{
	return next->addr <= last->end || next->addr / PAGE_BYTES == (last->end - 1) / PAGE_BYTES;
}

void target_ranges_settle(struct target_ranges *ranges)
{
	struct target_range *items = ranges->items;
	size_t kept = 0;

	ranges->is_settled = true;
	if (!ranges->count)
		return;
	qsort(items, ranges->count, sizeof(*items), by_addr);
	for (size_t i = 1; i < ranges->count; i++) {
		if (!is_one(&items[kept], &items[i]))
			items[++kept] = items[i];
		else if (items[kept].end < items[i].end)
			items[kept].end = items[i].end;
	}
	ranges->count = kept + 1;
}

uint64_t target_ranges_bytes(const struct target_ranges *ranges)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < ranges->count; i++)
		bytes += ranges->items[i].end - ranges->items[i].addr;
	return bytes;
}
