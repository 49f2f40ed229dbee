/* Spans of time as XML writes them: "PT30M", "P1DT12H". */
#ifndef SNAPSHOT_ISO_DURATION_H
#define SNAPSHOT_ISO_DURATION_H

#include <stdint.h>

#include "core/buf.h"

/* Adds ms, at least 0, of which what is left of a second is dropped: 0 or -ERR_NOMEM. */
int iso_duration_add(struct buf *text, int64_t ms);

/*
 * Reads days, hours, minutes and seconds, each once at most and in this order: 0 and *ms, or
 * -ERR_USAGE. Years, months and fractions are refused: the first two have no length of their own.
 */
int iso_duration_parse(const char *text, int64_t *ms);

#endif
