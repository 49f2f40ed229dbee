/* Operations on any target, on top of struct target_ops. */
#include "snapshot/target/target.h"

#include <inttypes.h>
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

uint64_t target_committed_end(struct target *target, uint64_t addr, uint64_t end)
{
	struct target_region region;

	if (!target->ops->region)
		return end;
	while (addr < end && !target->ops->region(target, addr, &region) && region.addr <= addr &&
		region.end > addr)
		addr = region.end;
	return addr < end ? addr : end;
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

	if (!image->has_looked) {
		image->has_looked = true;
		image->has_page =
			!target_read(image->target, image->base, image->page, sizeof(image->page));
	}
	if (image->has_page && offset < sizeof(image->page) &&
		len <= sizeof(image->page) - offset) {
		memcpy(bytes, image->page + offset, len);
		return 0;
	}
	return target_read(image->target, image->base + offset, bytes, len);
}

struct pe_source target_image_source(struct target_image *image)
{
	return (struct pe_source){.read = read_image, .ctx = image, .in_memory = true};
}
