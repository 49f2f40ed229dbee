/*
 * The product of two series.
 */
#ifndef DIFF_PRODUCT_H
#define DIFF_PRODUCT_H

#include <stddef.h>

static inline double product(const double *a, const double *b, size_t count)
{
	double sums[4] = {0};
	size_t i = 0;

	for (; i + 4 <= count; i += 4) {
		for (size_t k = 0; k < 4; k++)
			sums[k] += a[i + k] * b[i + k];
	}
	for (; i < count; i++)
		sums[0] += a[i] * b[i];
	return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

#endif
