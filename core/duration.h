/* Spans of time as people write them: "30s", "30m", "1h30m", "2d". */
#ifndef CORE_DURATION_H
#define CORE_DURATION_H

#include <stdint.h>

/*
 * Reads text as milliseconds: decimal digits and a unit (d, h, m, s, in either case), once or more, each
 * unit smaller than the one before it ("1d12h"). No blanks, signs, fractions; a number has a unit. "0s" is a
 * span. 0, or -ERR_USAGE: no such text, or more than fits; then *ms is untouched.
 */
int duration_parse(const char *text, int64_t *ms);

/* The same text for a whole number of seconds, with what is 0 left out ("1h30m"; "0s"); what is left of a
 * second is dropped. ms is at least 0. Returns text. */
#define DURATION_TEXT_BYTES 48
const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES]);

#endif
