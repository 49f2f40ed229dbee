/*
 * What identifies a module, as far as its mapped headers tell.
 */
#ifndef SNAPSHOT_TRACER_MODULE_RECORD_H
#define SNAPSHOT_TRACER_MODULE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

#define MODULE_PATH_UNITS 32767 /* of the longest path that there is */
#define MODULE_PDB_BYTES 1024 /* a longer name is left out */

/* Room for any record. */
struct module_record {
	struct tracer_module module;
	uint8_t names[MODULE_PATH_UNITS * 2 + MODULE_PDB_BYTES];
};

struct module_image {
	uint64_t base;
	uint32_t bytes;
	const void *path; /* UTF-16 */
	uint16_t path_units;
	/* Copies bytes of the image; false when they are not there. Nothing else touches it. */
	bool (*read)(uint64_t addr, void *to, uint32_t len);
};

/* Makes the record of an image. What its headers do not tell, or tell wrongly, is 0 in it. */
void module_record_make(struct module_record *record, const struct module_image *image);

#endif
