/* A file or two, given by name: each is said and used as far as it goes. */
#ifndef DIFF_INPUTS_FEW_H
#define DIFF_INPUTS_FEW_H

#include "diff/inputs.h"
#include "diff/inputs/file_list.h"

/* Reads them in the order in which they were given into inputs->dumps, or a single printed comparison
 * into inputs->series[0]. 1: that was it; 0; or an error. */
int inputs_read_few(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err);

#endif
