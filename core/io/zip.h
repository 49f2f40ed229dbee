/*
 * Zip archives, limited to the features used for packing logs: stored and deflated entries of any
 * size. Nothing in an archive is trusted.
 */
#ifndef CORE_IO_ZIP_H
#define CORE_IO_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct zip;

struct zip_entry {
	const char *name; /* for display and matching; never used as a path to write to */
	/* offset: position of the local header in the archive */
	uint64_t bytes, packed_bytes, offset;
	uint32_t crc;
	unsigned method, flags;
};

bool zip_is_head(const void *bytes, size_t len);

/* Reads the list of entries. Returns 0, -ERR_OPEN, -ERR_READ or -ERR_BAD_ZIP. */
int zip_open(struct zip **zip, const char *path, struct err *err);
void zip_close(struct zip *zip);

size_t zip_count(const struct zip *zip);
const struct zip_entry *zip_entry(const struct zip *zip, size_t number);

/* Unpacks an entry to a new file, and verifies its size and checksum. Returns 0, -ERR_CREATE,
 * -ERR_WRITE, -ERR_READ or -ERR_BAD_ZIP. */
int zip_unpack(struct zip *zip, size_t number, const char *path, struct err *err);

#endif
