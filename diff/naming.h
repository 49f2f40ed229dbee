/*
 * The frames of the rows to be shown, with their modules and names.
 *
 * All rows are asked for in one go: finding names is what takes time, and much of it is spent once
 * per batch. A naming borrows the comparison; the names live as long as the naming.
 */
#ifndef DIFF_NAMING_H
#define DIFF_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "diff/match.h"
#include "symbolize/symbolize.h"

struct naming {
	const struct comparison *comparison;
	struct symbolizer *symbolizer;
	struct symbol_query *frames; /* of all rows, in their order; NULL: no names are wanted */
	size_t *first; /* frame of each row; NULL as frames */
};

/* With by_name false no name is looked for, not even in the dumps. Release it in any case.
 * Returns 0 (also when there are no names) or -ERR_NOMEM. */
int naming_make(
	struct naming *naming, const struct comparison *comparison, bool by_name, struct err *err);
void naming_release(struct naming *naming);

/* A frame of the stack of row number index. */
struct symbol_query naming_frame(const struct naming *naming, size_t index, size_t frame);

/* Adds a few words on the frames that have no name, or nothing when all have or no names were
 * wanted. 0 or -ERR_NOMEM. */
int naming_missing(const struct naming *naming, struct buf *words);

/* A module's file name without folder and extension: its length, and where it starts in *name. */
size_t naming_module(const struct module *module, const char **name);

#endif
