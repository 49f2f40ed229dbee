/*
 * The frames of the rows to be shown, with their modules and names.
 *
 * Names are requested in batches, because looking them up is slow and much of the cost is per
 * batch. Each distinct address is looked up only once, even if matching has already requested it. A
 * naming borrows the comparison, which owns the names. For a printed comparison, no names are
 * looked up: its rows already have their frames. */
#ifndef DIFF_QUERY_NAMING_H
#define DIFF_QUERY_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/read/frame.h"

struct naming {
	const struct comparison *comparison;
	bool by_name; /* false: names are not even taken from the dumps */
	bool *is_asked; /* indexed by row: naming_find() was called for the row */
	const char ***modules; /* short names, indexed by dump and module; NULL without dumps */
	struct frame **texts; /* frames parsed from texts, indexed by dump and text */
	struct shown_functions *shown; /* results of function_shown() */
	struct arena arena;
};

void naming_make(struct naming *naming, const struct comparison *comparison, bool by_name);
void naming_release(struct naming *naming);

/* Looks up the names of those rows that have not been looked up yet. Large batches are faster.
 * symbol_options_check() must have accepted the comparison's options. */
void naming_find(struct naming *naming, const uint32_t *rows, size_t count);

/* Stores all frames of row number `index` in `frames`, innermost first. They have the names found,
 * in the form that function_shown() makes. Replaces the content of `frames`; stores no frames if
 * the row has no stack. Strings live as long as the naming and the comparison. */
void naming_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Stores the frames without names, except names that the stack itself contains. */
void naming_raw_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Look up names, and store frames, for stacks in a dump of the comparison that have no row. */
void naming_find_stacks(
	struct naming *naming, size_t dump, const struct stack *stacks, size_t count);
void naming_stack_frames(const struct naming *naming, const struct dump_sums *dump,
	const struct stack *stack, struct frames *frames);

/* Looks up the name of a return address in a dump. Returns true if the address has a name. */
bool naming_find_addr(struct naming *naming, size_t dump, uint64_t addr);

/* Appends a message about frames whose names were not found. It contains their number, their
 * modules, and a command that explains, for the first dump with such frames, why names are missing.
 * Appends nothing if all frames have names. If `is_stopped`, the lookup was interrupted, and the
 * message contains only the number. */
void naming_missing(const struct naming *naming, bool is_stopped, struct buf *words);

#endif
