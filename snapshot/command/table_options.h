/*
 * What run and attach let be said about the tracer's tables.
 */
#ifndef SNAPSHOT_TABLE_OPTIONS_H
#define SNAPSHOT_TABLE_OPTIONS_H

#include <stdint.h>

#include "core/err.h"

/* A 32-bit program has little address space. */
#define TABLES_DEFAULT_BYTES ((uint64_t)(sizeof(void *) == 8 ? 4096 : 128) << 20)

/* --max-mb and --sample, each in bytes: 0, or -ERR_USAGE. */
int table_limit_parse(const char *text, uint64_t *bytes, struct err *err);
int table_sample_parse(const char *text, uint64_t *bytes, struct err *err);

#endif
