/*
 * Numbers with a fraction, as text that is the same on every system.
 *
 * C libraries differ in how they print such numbers, so this is worked out in integers: the number
 * itself, to the last digit before the point, rounded to thousandths (halves away from 0). No zeros at
 * the end of a fraction, no point without one, no exponent, no "-0".
 */
#ifndef DIFF_FRACTION_H
#define DIFF_FRACTION_H

#define FRACTION_TEXT_BYTES 320 /* for every double */

/* Returns text; NULL when value is no number, or none that ends. */
const char *fraction_text(double value, char text[FRACTION_TEXT_BYTES]);

#endif
