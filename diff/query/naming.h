/*
 * Frames of the rows to show, with modules and names.
 *
 * Looking up names is slow and costs nearly the same for one name as for many, so names are
 * requested in batches. Each address is looked up only once, also if matching needs its name too.
 * struct naming borrows the comparison, which owns the names. Rows of a printed comparison already
 * have their frames, so nothing is looked up for them. */
#ifndef DIFF_QUERY_NAMING_H
#define DIFF_QUERY_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/read/frame.h"

struct naming {
	const struct comparison *comparison;
	bool by_name; /* if false, no names are used, not even names that the dumps contain */
	bool *is_asked; /* indexed by row: naming_find() was called for the row */
	const char ***modules; /* short names, indexed by dump and module; NULL without dumps */
	/* indexed by rank: name that distinguishes the module from those with its short name, or NULL;
	 * NULL if no module needs one */
	const char **doubles;
	struct frame **texts; /* frames parsed from texts, indexed by dump and text */
	struct shown_functions *shown; /* results of function_shown() */
	struct arena arena;
};

/* Finds a module's file name without folder and extension. Stores its start in `*name` and returns
 * its length. */
size_t naming_short_name(const struct module *module, const char **name);

/* Fills `doubles`. Called by naming_make(). */
void naming_find_doubles(struct naming *naming);

void naming_make(struct naming *naming, const struct comparison *comparison, bool by_name);
void naming_release(struct naming *naming);

/* Looks up the names of the given rows unless this was already done. Prefer large batches. Requires
 * that symbol_options_check() accepted the comparison's options. */
void naming_find(struct naming *naming, const uint32_t *rows, size_t count);

/* Stores all frames of row number `index` in `frames`, innermost first, with the names that were
 * found. function_shown() defines the form of the names. Replaces the content of `frames`. Stores
 * no frames if the row has no stack. Strings live as long as `naming` and the comparison. */
void naming_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Stores the frames as in naming_frames(), but without names. Only names that the stack itself
 * contains as text are included. */
void naming_raw_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Two functions for stacks of a dump that have no row. naming_find_stacks() looks up their names;
 * naming_stack_frames() stores the frames of one stack. */
void naming_find_stacks(
	struct naming *naming, size_t dump, const struct stack *stacks, size_t count);
void naming_stack_frames(const struct naming *naming, const struct dump_sums *dump,
	const struct stack *stack, struct frames *frames);

/* Looks up the name of a return address in a dump. Returns true if the address has a name. */
bool naming_find_addr(struct naming *naming, size_t dump, uint64_t addr);

/* Appends a message about frames without names: their number, their modules, and a command. The
 * command explains why names are missing in the first dump that lacks any. If the lookup was
 * interrupted (`is_stopped`), the message contains only the number. Appends nothing if all frames
 * have names. */
void naming_missing(const struct naming *naming, bool is_stopped, struct buf *words);

#endif
