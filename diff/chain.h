/* Chains: printed comparisons in a row, each of which continues where the previous one ends. They form
 * a trend. */
#ifndef DIFF_CHAIN_H
#define DIFF_CHAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/err.h"
#include "diff/file_list.h"
#include "diff/inputs.h"

/* Returns true if the files are two or more printed comparisons. Then removes duplicates, and found
 * files of no known kind, from the list, and prints their names. */
bool chain_find(struct file_list *list, FILE *say);

/* Reads printed comparisons into one dump for each moment. Each file must continue where the
 * previous one ends. Returns 0, -ERR_USAGE if the files do not join, or an error of
 * comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

#endif
