/* Parses and prints sizes, times and durations in the form in which people write them. */
#ifndef CORE_BASE_PARSE_H
#define CORE_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes: "65536", "64K", "1.5M", "2GiB". */

/* Parses `len` characters as a number of bytes: decimal digits and an optional unit. The units K,
 * M, G and T are powers of 1024. "KB" and "KiB" are equivalent to "K", and case is ignored. A
 * number with a unit may have a fraction; the result is rounded down. Returns 0, or -ERR_USAGE for
 * other text or a result of more than 64 bits. */
int size_parse(const char *text, size_t len, uint64_t *bytes);

/* Times: "2026-11-20T10:25:48.123Z" (ISO 8601, UTC, milliseconds). */

/* Room for seven numbers of any size. This is more than a date needs, but gcc 14 does not know how
 * large the numbers are. */
#define DATE_TEXT_BYTES 96

/* Prints `ms`, counted since 1970-01-01 UTC, for years 1 to 9999. Prints "?" for any other year.
 * Returns `text`. */
const char *date_text(int64_t ms, char text[DATE_TEXT_BYTES]);

/* Parses a time; milliseconds are optional. Returns 0, or -ERR_BAD_LINE for other text. */
int date_parse(const char *text, int64_t *ms);

/* Parses YYYY-MM-DD, YYYY-MM-DDThh:mm, YYYY-MM-DDThh:mm:ss or YYYY-MM-DDThh:mm:ss.mmm, each in UTC
 * and with an optional Z. Sets *first_ms and *last_ms to the first and last millisecond of that
 * day, minute, second or millisecond. Returns 0, or -ERR_USAGE with both unchanged. */
int date_span_parse(const char *text, int64_t *first_ms, int64_t *last_ms);

/* Durations: "30s", "30m", "1h30m", "2d", "500ms", "1.5h", "6.859 s". */

/* Parses a duration: one or more numbers, each with a unit (d, h, m, s or ms; case is ignored),
 * largest unit first ("1d12h"). The last number may have a fraction, unless its unit is ms; the
 * result is rounded down. A blank may precede a unit, because printed durations contain a blank
 * there. Signs are not allowed, and every number needs a unit; "0s" is valid. Returns 0, or
 * -ERR_USAGE with `*ms` unchanged. */
int duration_parse(const char *text, int64_t *ms);

/* Prints a duration in whole seconds, rounded down, omitting zero parts ("1h30m"; "0s" for less
 * than a second). `ms` must not be negative. Returns `text`. */
#define DURATION_TEXT_BYTES 48
const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES]);

/* Moments: a date such as "2026-11-20T10:00", or a span before the newest snapshot. */

struct moment {
	enum { MOMENT_NONE, MOMENT_AT, MOMENT_BEFORE_NEWEST } kind;
	int64_t ms; /* since 1970-01-01 UTC, or before the newest snapshot */
};

/* Parses a date or time as date_span_parse() does, or a duration as duration_parse() does. A date,
 * or a time without milliseconds, covers many moments: `*moment` becomes the first of them, or the
 * last if `is_end` is set. Returns 0, or -ERR_USAGE with `*moment` unchanged. */
int moment_parse(const char *text, bool is_end, struct moment *moment);

/* Converts a moment to ms since 1970-01-01 UTC. kind must not be MOMENT_NONE. */
int64_t moment_ms(const struct moment *moment, int64_t newest_ms);

#endif
