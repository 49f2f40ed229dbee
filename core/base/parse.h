/* Sizes, times and durations as people write them, parsed and printed. */
#ifndef CORE_BASE_PARSE_H
#define CORE_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Sizes: "65536", "64K", "1.5M", "2GiB". */

/* Parses len characters as bytes: decimal digits and an optional unit K, M, G or T (KB and KiB are
 * the same, in either case), a power of 1024. A number with a unit may have a fraction; the result
 * is rounded down. Returns 0, or -ERR_USAGE for other text or more than 64 bits. */
int size_parse(const char *text, size_t len, uint64_t *bytes);

/* Times: "2026-11-20T10:25:48.123Z" (ISO 8601, UTC, milliseconds). */

/* Room for seven numbers of any size: gcc 14 does not see their limits. */
#define DATE_TEXT_BYTES 96

/* Prints ms since 1970-01-01 UTC, years 1 to 9999; outside them the text is "?". Returns text. */
const char *date_text(int64_t ms, char text[DATE_TEXT_BYTES]);

/* Sets *ms and returns 0, or returns -ERR_BAD_LINE if text is not such a time. Milliseconds are
 * optional. */
int date_parse(const char *text, int64_t *ms);

/* Parses YYYY-MM-DD, YYYY-MM-DDThh:mm, YYYY-MM-DDThh:mm:ss or that with .mmm, each in UTC with an
 * optional Z. Sets the first and the last millisecond of that day, minute, second or millisecond.
 * Returns 0, or -ERR_USAGE with both unchanged. */
int date_span_parse(const char *text, int64_t *first_ms, int64_t *last_ms);

/* Durations: "30s", "30m", "1h30m", "2d", "500ms", "1.5h", "6.859 s". */

/* Parses a duration: one or more numbers, each with a unit (d, h, m, s, ms, in either case),
 * largest unit first ("1d12h"). The last number may have a fraction, unless its unit is ms; the
 * result is rounded down. A blank may precede a unit, as in printed durations. No signs; every
 * number needs a unit; "0s" is valid. Returns 0, or -ERR_USAGE with *ms unchanged. */
int duration_parse(const char *text, int64_t *ms);

/* Prints a duration in whole seconds, rounded down, without zero parts ("1h30m"; "0s"). ms is at
 * least 0. Returns text. */
#define DURATION_TEXT_BYTES 48
const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES]);

#endif
