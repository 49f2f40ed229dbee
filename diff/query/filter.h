/* Selection of stacks, and the check for filters that match nothing. */
#ifndef DIFF_QUERY_FILTER_H
#define DIFF_QUERY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/naming.h"
#include "diff/query/pattern.h"
#include "diff/read/frame.h"

/* Selection of stacks. Looking up names is slow, so conditions that need no names are checked
 * first. */

struct filter {
	/* A stack is selected if any frame matches `include` (or `include` is empty) and no frame
	 * matches `exclude`. Patterns are matched against each spelling of a frame's
	 * "module!function" and source file, and its raw forms "module+OFFSET" and "ADDRESS". */
	struct patterns include, exclude;
	/* A stack must also have a frame in one of these modules. Names ignore case and may omit
	 * the extension. */
	const char *const *modules;
	size_t module_count;
	/* Minimum growth or decrease in bytes and blocks. In a trend, minimum difference between
	 * the lowest and the highest snapshot of a process. */
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* in a trend: bit mask of the selected verdicts; 0: all */
	struct buf name, addr;
};

enum verdict {
	VERDICT_DROP,
	VERDICT_KEEP,
	VERDICT_NAMES, /* the result depends on names */
	VERDICT_NAMES_EXCLUDE, /* the row is included, but names can still exclude it */
};

void filter_init(struct filter *filter);
void filter_release(struct filter *filter);

/* Returns true if the filter can drop a row. */
bool filter_is_active(const struct filter *filter);

/* Returns true if a row's change is large enough and, in a trend, the verdict on the row is
 * selected. */
bool filter_change(
	const struct filter *filter, const struct comparison *comparison, const struct row *row);

/* Filters a row before the names of its frames are looked up. Returns 0 or an error of
 * patterns_match(). */
int filter_raw(struct filter *filter, const struct comparison *comparison, const struct row *row,
	const struct frames *frames, enum verdict *verdict, struct err *err);

/* Completes a verdict of filter_raw(), once the frames have names. Sets it to VERDICT_DROP or
 * VERDICT_KEEP. */
int filter_named(
	struct filter *filter, const struct frames *frames, enum verdict *verdict, struct err *err);

/* Returns the file name of a frame's module, with extension, or NULL if unknown. The caller must
 * not free the name. */
const char *filter_frame_file(
	const struct comparison *comparison, const struct row *row, const struct frame *frame);

/* Filters that match nothing: a module or heap that is in no dump, or a pattern without a match.
 * Such a filter is probably a typing error. It would select no stack, so every growth limit would
 * pass. */

/* Reports an option's value that matches nothing; `what` describes the problem. `is_unsure`: no limit
 * may pass. The dumps list all modules or heaps, and this one is not among them, or the stacks or
 * names that could match are missing. */
typedef void unmatched_report(
	void *ctx, const char *option, const char *value, const char *what, bool is_unsure);

/* Checks the values of --module against the modules of the dumps. For a printed comparison, checks
 * them against the modules of its frames. */
void unmatched_modules(const struct filter *filter, const struct naming *naming,
	unmatched_report *messages, void *ctx);

/* Checks the values of --heap. Reports nothing for a printed comparison, which has no heaps. */
void unmatched_heaps(const struct comparison *comparison, const uint64_t *heaps, size_t count,
	unmatched_report *messages, void *ctx);

/*
 * Checks the values of -i and -x after rows were selected, and reports each pattern that matches no
 * row. A pattern that has not matched so far is tried on all rows that pass the filters for growth,
 * verdict and module. Names of these rows are looked up. Reports nothing if no rows pass these
 * filters. Does not report a pattern that takes too long. If `messages` is NULL, matches the
 * patterns without reporting. `is_part`: the rows do not cover all blocks. */
void unmatched_patterns(struct filter *filter, struct naming *naming, bool is_part,
	unmatched_report *messages, void *ctx);

#endif
