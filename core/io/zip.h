/*
 * Zip archives, as far as logs come in them: stored and deflated entries, of any size. Nothing that an archive says is
 * trusted.
 */
#ifndef CORE_IO_ZIP_H
#define CORE_IO_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

struct zip;

struct zip_entry {
	const char *name; /* to be shown and matched, never a path to write to */
	uint64_t bytes, packed_bytes, offset; /* of its head in the archive */
	uint32_t crc;
	unsigned method, flags;
};

bool zip_is_head(const void *bytes, size_t len);

/* Reads the list of entries: 0; -ERR_OPEN, -ERR_READ, -ERR_BAD_ZIP. */
int zip_open(struct zip **zip, const char *path, struct err *err);
void zip_close(struct zip *zip);

size_t zip_count(const struct zip *zip);
const struct zip_entry *zip_entry(const struct zip *zip, size_t number);

/* Writes an entry's bytes, which are as many as it says and have its checksum, to a new file: 0; -ERR_CREATE,
 * -ERR_WRITE, -ERR_READ, -ERR_BAD_ZIP. */
int zip_unpack(struct zip *zip, size_t number, const char *path, struct err *err);

#endif
