/* Sizes, times and spans of time as people write them, and back. */
#ifndef CORE_BASE_PARSE_H
#define CORE_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Amounts of memory as people write them: "65536", "64K", "1.5M", "2 GiB" without the blank. */

/*
 * Reads len characters as bytes: decimal digits and a unit (K, M, G, T; KB and KiB are the same, in
 * either case), which stand for powers of 1024. With a unit there may be a fraction; what it leaves
 * of a byte is dropped. 0, or -ERR_USAGE: no such text, or more than 64 bits hold.
 */
int size_parse(const char *text, size_t len, uint64_t *bytes);

/* Times as text: "2026-11-20T10:25:48.123Z" (ISO 8601, UTC, milliseconds) and back. */

#define DATE_TEXT_BYTES 96 /* seven numbers of any size: gcc 14 does not see their limits */

/* ms since 1970-01-01 UTC, years 1 to 9999; outside them the text is "?". Returns text. */
const char *date_text(int64_t ms, char text[DATE_TEXT_BYTES]);

/* 0 and *ms, or -ERR_BAD_LINE when text is no such time (milliseconds may be missing). */
int date_parse(const char *text, int64_t *ms);

/*
 * Reads YYYY-MM-DD, YYYY-MM-DDThh:mm, YYYY-MM-DDThh:mm:ss or that with .mmm, each in UTC with or without
 * a Z behind it: the first and the last ms of the day, minute, second or ms that it tells. 0, or -ERR_USAGE: no
 * such text; then both are untouched.
 */
int date_span_parse(const char *text, int64_t *first_ms, int64_t *last_ms);

/* Spans of time as people write them: "30s", "30m", "1h30m", "2d", "500ms", "1.5h", "6.859 s". */

/*
 * Reads text as milliseconds: decimal digits and a unit (d, h, m, s, ms, in either case), once or more, each
 * unit smaller than the one before it ("1d12h"). The last number may have a fraction, but not of a millisecond; what it
 * leaves of one is dropped. A blank may stand before a unit, as in what is printed. No signs; a number has a unit. "0s" is
 * a span. 0, or -ERR_USAGE: no such text, or more than fits; then *ms is untouched.
 */
int duration_parse(const char *text, int64_t *ms);

/* The same text for a whole number of seconds, with what is 0 left out ("1h30m"; "0s"); what is left of a
 * second is dropped. ms is at least 0. Returns text. */
#define DURATION_TEXT_BYTES 48
const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES]);

#endif
