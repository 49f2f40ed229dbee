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

#include "core/arena.h"
#include "core/buf.h"
#include "core/err.h"
#include "diff/frame.h"
#include "diff/match.h"
#include "symbolize/symbolize.h"

struct naming {
	const struct comparison *comparison;
	struct symbolizer *symbolizer;
	bool by_name; /* false: no name is looked for, not even in the dumps */
	struct symbol_query **of_row; /* its frames; NULL: not asked for yet */
	const char ***modules; /* short names by dump and module; NULL while no dump is there */
	struct arena arena;
};

/* Starts nothing yet. Release it in any case. 0 or -ERR_NOMEM. */
int naming_make(
	struct naming *naming, const struct comparison *comparison, bool by_name, struct err *err);
void naming_release(struct naming *naming);

/* Looks for the names of the rows with these numbers, where that was not done yet; many at once are
 * faster. 0 (also when there are no names) or -ERR_NOMEM. */
int naming_find(struct naming *naming, const uint32_t *rows, size_t count, struct err *err);

/* The frames of row number index with the names that were found, all of them, innermost first.
 * Replaces what frames held; none when the row has no stack. 0 or -ERR_NOMEM. */
int naming_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Adds a few words on those frames that names were looked for and not found, or nothing when all
 * have names. 0 or -ERR_NOMEM. */
int naming_missing(const struct naming *naming, struct buf *words);

#endif
