/* The dumps of a trend, or what was found in folders: whatever is no whole dump is left out. */
#ifndef DIFF_INPUTS_MANY_H
#define DIFF_INPUTS_MANY_H

#include "diff/inputs.h"
#include "diff/inputs/file_list.h"

/* Whether a file that was found is the one that the report goes to: one from the last time, in the
 * folder that is read again, is not even foreign there. */
bool input_is_output(const struct options *options, const char *path);

/* Reads them into inputs->dumps and makes the series, of which nothing but the comparison is missing
 * then. 0 or an error; -ERR_NOT_DUMP when there is no dump that can be used. */
int inputs_read_many(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err);

#endif
