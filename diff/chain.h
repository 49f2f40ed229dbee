/* Chains: printed comparisons in a row, each of which continues where the previous one ends. They form
 * a trend. */
#ifndef DIFF_CHAIN_H
#define DIFF_CHAIN_H

#include <stdbool.h>

#include "core/base/err.h"
#include "diff/file_list.h"
#include "diff/inputs.h"

/* Returns true if all files are printed comparisons, and there are two or more. */
bool chain_is(const struct file_list *list);

/* Reads printed comparisons into one dump for each moment. Each file must continue where the
 * previous one ends. Returns 0, -ERR_USAGE if the files do not join, or an error of
 * comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

#endif
