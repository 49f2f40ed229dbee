/*
 * Order in numbers: all of them, or only those of some ranks. None of them is NaN.
 */
#ifndef DIFF_RANKS_H
#define DIFF_RANKS_H

#include <stddef.h>

void ranks_sort(double *values, size_t count);

/* Sorts values, of which it gives how many pairs fell: the first greater than the second. scratch: as many
 * as there are values. */
double ranks_count_falls(double *values, double *scratch, size_t count);

/*
 * Moves values until each of ranks[], which rise and are below count, has the value that it would
 * have if they were sorted. The same numbers always are moved in the same way.
 */
void ranks_select(double *values, size_t count, const size_t *ranks, size_t rank_count);

#endif
