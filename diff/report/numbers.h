/* Numbers as text. */
#ifndef DIFF_REPORT_NUMBERS_H
#define DIFF_REPORT_NUMBERS_H

#include <stdint.h>

/*
 * Numbers with a fraction, as text that is equal on every system.
 *
 * All digits before the point are written, and the fraction is rounded to thousandths (halves away
 * from 0). The text has no trailing zeros or trailing point, no exponent, and is never "-0". */

#define FRACTION_TEXT_BYTES 320 /* enough for every double */

/* Returns the text, or NULL if `value` is not finite. */
const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES]);

/* report_size() writes "12.3 MiB" or "512 B" and report_count() "4,102"; both return `text`.
 * report_percent() returns a rounded percentage. */
#define REPORT_SIZE_BYTES 40
#define REPORT_COUNT_BYTES 32
const char *report_size(uint64_t bytes, char text[REPORT_SIZE_BYTES]);
const char *report_count(uint64_t count, char text[REPORT_COUNT_BYTES]);
unsigned report_percent(uint64_t part, uint64_t whole);

/* Writes one digit after the point: "-11.8". Writes "> 1e17" for larger numbers. Returns `text`. */
const char *report_tenths(double value, char text[REPORT_SIZE_BYTES]);

#endif
