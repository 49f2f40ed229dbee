/* The order of names as people count: "a2" before "a10". */
#ifndef DIFF_NATURAL_ORDER_H
#define DIFF_NATURAL_ORDER_H

/* As qsort() wants it: numbers by their value, all else byte by byte; names that are alike in this by their
 * bytes, so that only equal names are equal. */
int natural_order(const char *a, const char *b);

#endif
