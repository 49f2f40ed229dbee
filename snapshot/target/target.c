#include "snapshot/target/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

int window_init(struct target_window *window, struct target *target)
{
	*window = (struct target_window){.target = target, .bytes = malloc(TARGET_WINDOW_BYTES)};
	return window->bytes ? 0 : -ERR_NOMEM;
}

void window_release(struct target_window *window)
{
	free(window->bytes);
	window->bytes = NULL;
}

void window_range(struct target_window *window, uint64_t end)
{
	window->end = end;
	window->len = 0;
}

const unsigned char *window_at(struct target_window *window, uint64_t addr, size_t len)
{
	uint64_t left;

	if (addr >= window->addr && addr - window->addr <= window->len &&
		window->len - (addr - window->addr) >= len)
		return window->bytes + (addr - window->addr);
	if (addr >= window->end || window->end - addr < len)
		return NULL;
	left = window->end - addr;
	window->len = 0;
	if (left > TARGET_WINDOW_BYTES)
		left = TARGET_WINDOW_BYTES;
	if (target_read(window->target, addr, window->bytes, (size_t)left))
		return NULL;
	window->addr = addr;
	window->len = (size_t)left;
	return window->bytes;
}
