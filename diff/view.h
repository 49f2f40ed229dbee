/*
 * A view: what of a comparison was asked for, in the order it was asked for. Reports print views
 * and nothing else.
 *
 * A view borrows its comparison and its naming. Row numbers are those of comparison->rows.
 */
#ifndef DIFF_VIEW_H
#define DIFF_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "diff/frame.h"
#include "diff/match.h"
#include "diff/naming.h"

enum view_group {
	GROUP_STACK, /* no groups: a row is a stack */
	GROUP_FUNCTION,
	GROUP_FILE,
	GROUP_MODULE,
	GROUP_HEAP,
};

/* Sums before and after. */
struct change {
	struct census old, new;
};

/* Stacks with something in common. A stack counts once, however often it is in the group. */
struct view_group_row {
	const char *name; /* "module!function", a path, a module, a heap's address */
	struct change self; /* stacks whose innermost frame is in the group: pprof's flat */
	struct change total; /* stacks with any frame in it: pprof's cum */
};

struct view {
	const struct comparison *comparison;
	const struct naming *naming;
	/* Largest first, or as asked for. When grouped, groups are what is shown and rows are what
	 * they are made of. */
	uint32_t *rows;
	size_t row_count;
	size_t shown_count; /* of rows, or of groups: the first ones; the others are but counted */
	enum view_group group;
	struct view_group_row *groups;
	size_t group_count;
	struct change all; /* of the comparison, with rows that did not change */
	struct change selected; /* of rows */
	struct change suppressed; /* of rows a suppression took away */
	size_t suppressed_count;
	bool is_filtered; /* something was left out on purpose: selected is not all */
	bool is_inverted; /* frames come outermost first */
};

/* Everything in the comparison, in its order. comparison and naming must outlive the view; release
 * it in any case. 0 or -ERR_NOMEM. */
int view_make(struct view *view, const struct comparison *comparison, const struct naming *naming);
void view_release(struct view *view);

/*
 * The frames of a row as they are to be shown: allocator's frames gone and turned round where that
 * was asked for. Replaces what frames held. None: the row has no stack to show. 0 or -ERR_NOMEM.
 */
int view_frames(const struct view *view, uint32_t row, struct frames *frames);

#endif
