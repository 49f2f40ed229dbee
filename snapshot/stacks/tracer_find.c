/* Finds the tracer's DLL in a target, and checks the tracer's area. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "snapshot/stacks/tracer_read.h"

/* Size of the area's head, which is identical in every version. */
#define HEAD_BYTES offsetof(struct tracer_area, pointer_bytes)

/* A 32-bit process also has 64-bit modules, but no 64-bit tracer. */
static bool is_tracer(const struct target *target, const char *path)
{
	return !text_compare(
		module_path_base(path), target->bits == 32 ? TRACER_DLL_32 : TRACER_DLL_64);
}

int tracer_find(struct target *target, const struct module *modules, size_t count,
	uint64_t *area_addr, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct target_image at = {.target = target, .base = modules[i].base};
		struct pe_source source = target_image_source(&at);
		struct pe_image *image;
		uint32_t rva = 0;
		int rc;

		if (!is_tracer(target, modules[i].path))
			continue;
		image = xmalloc(sizeof(*image));
		rc = pe_read_headers(&source, image);
		if (!rc)
			rc = pe_find_export(&source, image, TRACER_EXPORT, &rva);
		free(image);
		if (rc)
			return target_err(target, modules[i].base, "no tracer in its DLL", err);
		*area_addr = modules[i].base + rva;
		return 0;
	}
	return err_set(err, ERR_NOT_TRACED, target->name, NULL);
}

static int check_version(
	const struct target *target, const struct tracer_area *area, struct err *err)
{
	if (area->magic != TRACER_MAGIC)
		return err_set(err, ERR_TARGET, target->name, "its tracer is not one of hsnap's");
	if (area->version != TRACER_VERSION)
		return err_set(err, ERR_TARGET, target->name,
			"its tracer has version %lu, and this hsnap reads version %d; use the "
			"hsnap that attached it",
			(unsigned long)area->version, TRACER_VERSION);
	if (area->area_bytes != sizeof(*area))
		return err_set(err, ERR_TARGET, target->name,
			"its tracer has %lu bytes of counters, and this hsnap reads %zu; use the "
			"hsnap that attached it",
			(unsigned long)area->area_bytes, sizeof(*area));
	return 0;
}

int tracer_check(const struct target *target, const struct tracer_area *area, struct err *err)
{
	switch (area->state) {
	case TRACER_ON: return 0;
	case TRACER_LOADED:
		return err_set(err, ERR_NOT_TRACED, target->name,
			"its tracer is loaded, and was never switched on");
	case TRACER_OFF: return err_set(err, ERR_NOT_TRACED, target->name, "already detached");
	default: return err_set(err, ERR_TARGET, target->name, "its tracer is in an unknown state");
	}
}

/* Returns true if the tracer's reserved memory lies in the address space. tracer_table.c checks the
 * tables in that memory. */
static bool is_sound(const struct target *target, const struct tracer_area *area)
{
	return area->pointer_bytes == (target->bits == 32 ? 4 : 8) &&
	       area->reserved_bytes <= TARGET_SPACE_BYTES &&
	       area->reserved <= TARGET_SPACE_BYTES - area->reserved_bytes;
}

int tracer_area_read(
	struct target *target, uint64_t area_addr, struct tracer_area *area, struct err *err)
{
	int rc;

	/* These first bytes are identical in every version. */
	if (target_read(target, area_addr, area, HEAD_BYTES))
		return target_err(target, area_addr, "unreadable tracer", err);
	rc = check_version(target, area, err);
	if (rc)
		return rc;
	if (target_read(target, area_addr, area, sizeof(*area)))
		return target_err(target, area_addr, "unreadable tracer", err);
	return is_sound(target, area) ? 0 : target_err(target, area_addr, "damaged tracer", err);
}

static bool is_reallocating(struct target *target, uint64_t area_addr)
{
	struct tracer_shard shards[TRACER_SHARDS];

	return !target_read(target, area_addr + offsetof(struct tracer_area, shards), shards,
		       sizeof(shards)) &&
	       tracer_is_reallocating(shards);
}

bool tracer_is_busy(struct target *target, uint64_t area_addr, bool with_blocks)
{
	struct tracer_ranges ranges;

	if (with_blocks && is_reallocating(target, area_addr))
		return true;
	if (target_read(target, area_addr + offsetof(struct tracer_area, ranges), &ranges,
		    sizeof(ranges)))
		return false;
	/* If a lock is never released, `changing` remains odd forever. */
	return (ranges.changing & 1) && !ranges.broken;
}
