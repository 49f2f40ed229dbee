/* A time as it is asked for: "2026-11-20T10:00", or how long before the newest snapshot. */
#ifndef DIFF_MOMENT_H
#define DIFF_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct moment {
	enum { MOMENT_NONE, MOMENT_AT, MOMENT_BEFORE_NEWEST } kind;
	int64_t ms; /* since 1970-01-01 UTC; or before the newest snapshot */
};

/*
 * Reads YYYY-MM-DD, YYYY-MM-DDThh:mm, YYYY-MM-DDThh:mm:ss or that with .mmm, each in UTC with or without
 * a Z behind it, or a span as in core/duration.h. Of a time that is not told to the millisecond it is
 * the first moment, or the last one when is_end. 0, or -ERR_USAGE: no such text; then *moment is
 * untouched.
 */
int moment_parse(const char *text, bool is_end, struct moment *moment);

/* When that is, by the newest snapshot's time. kind is not MOMENT_NONE. */
int64_t moment_ms(const struct moment *moment, int64_t newest_ms);

#endif
