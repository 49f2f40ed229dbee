/* Chains: two or more printed comparisons that form a trend. Each comparison starts where the
 * previous one ends. */
#ifndef DIFF_CHAIN_H
#define DIFF_CHAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/dump/source.h"
#include "diff/file_list.h"
#include "diff/inputs.h"

/* Returns true if the files are two or more printed comparisons. In that case, also removes
 * duplicates from the list, and prints the names of all removed files. Files of unknown kind are
 * also removed if they were found in a folder or by a pattern. */
bool chain_find(struct file_list *list, FILE *messages);

/* Reads one printed comparison and reports its defects. `by_id` is as in struct read_words. Returns
 * the result of comparison_read(). */
int chain_read_comparison(struct inputs *inputs, struct comparison *comparison,
	struct source *source, const char *name, bool by_id, struct err *err);

/* Converts printed comparisons to dumps, one per moment. Returns 0, -ERR_USAGE if the files do not
 * form a chain, or an error of comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

#endif
