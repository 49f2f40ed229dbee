/*
 * A view: what of a comparison was asked for, in the order it was asked for. Reports print views
 * and nothing else.
 *
 * A view borrows its comparison, and owns the names of its rows. Row numbers are those of comparison->rows.
 */
#ifndef DIFF_QUERY_VIEW_H
#define DIFF_QUERY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/filter.h"
#include "diff/query/naming.h"
#include "diff/query/pattern.h"
#include "diff/query/strip.h"
#include "diff/query/suppress.h"
#include "diff/read/frame.h"

enum view_group {
	GROUP_STACK, /* no groups: a row is a stack */
	GROUP_FUNCTION,
	GROUP_FILE,
	GROUP_MODULE,
	GROUP_HEAP,
	GROUP_MEMORY, /* heaps, and each sort of ranges */
};

/* What comes first. Of groups it is that of self, then that of total, then the name. */
enum view_sort {
	SORT_DEFAULT, /* BYTES; of a trend VERDICT */
	SORT_BYTES, /* the largest growth in bytes */
	SORT_COUNT, /* the largest growth in blocks */
	SORT_NEW, /* the most bytes in NEW */
	SORT_OLD, /* the most bytes in OLD */
	SORT_TOTAL, /* of groups: the largest growth of the total */
	SORT_NAME, /* the innermost frame that is shown, from A to Z; rows without one last */
	/* Of a trend alone: */
	SORT_VERDICT, /* the least doubtful leak: by verdict, then by what it grows by at least */
	SORT_SLOPE, /* the most growth per hour */
};

/* What is asked for. All zero but shown_max asks for everything in the comparison's order. */
struct view_request {
	enum view_group group;
	enum view_sort sort;
	size_t shown_max;
	bool is_inverted;
	bool is_part; /* the comparison's rows are not of all blocks */
	/* Each may be NULL. They remember what they found. */
	struct filter *filter;
	struct suppressions *suppressions;
	struct strip *strip; /* must outlive the view */
};

/* Stacks with something in common. A stack counts once, however often it is in the group. */
struct view_group_row {
	const char *name; /* "module!function", a path, a module, a heap's address */
	struct change self; /* stacks whose innermost frame is in the group: pprof's flat */
	struct change total; /* stacks with any frame in it: pprof's cum */
	/* Of a trend: the same at each snapshot, and what that says. self_of is NULL when there is
	 * no such stack; self_trend then is steady, if there are
	 * snapshots enough for that. */
	struct block_totals *self_of, *total_of;
	uint32_t *members; /* rows of total: where the comparison has cell_rows */
	size_t member_count, member_cap;
	struct trend self_trend, total_trend;
};

struct time_span {
	uint64_t first_ms, last_ms; /* of nothing first_ms is the later one */
};

/* What became in a window of a recording of all that a row or group has, whatever fate the rows show. */
struct window_sums {
	struct block_totals by_fate[BLOCK_FATES]; /* but FATE_LIVE */
	uint64_t peak_bytes, peak_ms; /* the most that was there at once, and when that was first */
	struct time_span allocated, freed; /* in the window; freed: also what was there before it */
	uint64_t shortest_ms, longest_ms; /* lives of FATE_AIFI */
	uint64_t median_ms; /* from 64 ms on within 1/64 */
	double lives_ms; /* all of them together */
	const uint64_t *threads,
		*heaps; /* that allocated in it, ids; of all that was there, addresses. In order. */
	size_t thread_count, heap_count;
	/* Of what was freed in it by stacks that are known: the one that freed most bytes, and how many there are. */
	const struct stack *freed_by; /* NULL: none is known */
	struct block_totals freed_by_sum;
	size_t freed_by_count;
};

/* What the blocks of a row are, one by one. */
struct row_blocks {
	struct size_change {
		uint64_t bytes, old_count, new_count;
	} * sizes; /* smallest first */
	size_t size_count;
	/* Of two dumps: those of OLD that are in NEW, at the same address with the same stack and size; the others
	 * of NEW; the others of OLD. */
	struct block_totals kept, came, gone;
};

/* What blocks of a row hold. */
struct shown_word {
	uint64_t value;
	uint32_t offset, len; /* in the content */
	const struct dump_pointer *to; /* the block that it leads to, or NULL */
	bool is_in_module; /* it leads there */
	uint64_t return_addr; /* then: what has its name */
};
struct shown_content {
	const struct dump_content *content;
	struct shown_word *words;
	size_t word_count;
};
struct row_contents {
	const struct dump_sums *dump; /* that they are of */
	struct shown_content *items;
	size_t count;
};

struct view {
	const struct comparison *comparison;
	struct naming naming;
	/* Largest first, or as asked for. When grouped, groups are what is shown and rows are what
	 * they are made of. */
	uint32_t *rows;
	size_t row_count;
	/* Number of rows after these that are selected and not shown: of a window of a recording those that have nothing of its
	 * class, which count in window; of groups those that did not change, which count in groups. */
	size_t other_count;
	size_t shown_count; /* of rows, or of groups: the first ones; the others are but counted */
	enum view_group group;
	enum view_sort sort; /* DEFAULT: the comparison's own order */
	struct view_group_row *groups;
	size_t group_count;
	struct change all; /* of the comparison, with rows that did not change */
	struct change selected; /* of rows */
	/* Of a trend: what is selected adds up to at each snapshot, and what that says. Else NULL. */
	struct block_totals *series;
	struct trend trend;
	size_t series_number, series_count; /* as its comparison has them */
	struct change suppressed; /* of rows a suppression took away */
	size_t suppressed_count;
	bool is_filtered; /* something was left out on purpose or has no rows: selected is not all */
	bool is_inverted; /* frames come outermost first */
	struct strip *strip; /* or NULL */
	struct spellings *spellings; /* of modules in names of groups; or NULL */
	uint64_t uncalled_bytes; /* growth that ends in an allocator: view_find_uncalled() */
	/* Sums of a window, after view_window(): of all stacks that are selected, also those with nothing of its class; then
	 * of each row or group that is shown. Or NULL. */
	struct window_sums *window;
	bool has_sizes, has_age; /* of blocks: */
	struct row_blocks *blocks; /* after view_blocks(): by row that is shown; or NULL */
	struct row_contents *
		contents; /* after view_contents(): by row that is shown; NULL: the dumps have none */
	struct arena arena; /* what groups and blocks have */
};

/* Everything in the comparison, in its order, which must outlive the view. by_name as naming_make(). */
void view_make(struct view *view, const struct comparison *comparison, bool by_name);
void view_release(struct view *view);

/*
 * Narrows a view just made to what is asked for, in the order that is asked for. Looks for the names
 * of rows that this depends on, and of those that will be shown. all = selected + suppressed + what
 * filters left out, always. 0, or -ERR_USAGE when a pattern takes too long: then the view can only be
 * released.
 */
int view_ask(struct view *view, const struct view_request *request, struct err *err);

/* Adds up the growth of rows whose frames are all layers: the stack ends before their caller. Rows with less than a thousandth of
 * the growth do not count. */
void view_find_uncalled(struct view *view, struct strip *strip);

/* Fills in what a view that was asked for has of the window of a recording that its comparison is of; of any other it
 * does nothing. Goes through the events of the window. 0, or an error of core/record. */
int view_window(struct view *view, struct err *err);

/* Fills in what the blocks of each row are that is shown, of a comparison whose one or two dumps list them; has_age: of
 * two. */
void view_blocks(struct view *view, bool has_sizes, bool has_age);

/* Fills in what dumps say that blocks of shown rows hold, and looks for the names of what that leads to. */
void view_contents(struct view *view);

/* Where a word leads to that is_in_module, as the one frame that frames then have; else false. */
bool view_word_frame(const struct view *view, const struct dump_sums *dump,
	const struct shown_word *word, struct frames *frames);

/* Keys of a trend, of rows and of groups alike: the first that differs decides, and the larger one comes
 * first. */
#define TREND_KEYS 6

/* Of SORT_VERDICT: the verdict, what it grows by at least, what it grows by in bytes and in blocks, net
 * growth in bytes and in blocks; of too few snapshots the net growth alone. Of SORT_SLOPE: what it grows by,
 * then the net growth; all the same of any other sort. */
void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS]);

/* As qsort() wants it. */
int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS]);

/* What a change adds up to. */
struct delta change_delta(const struct change *change);

/* A row's sums before and after. */
struct change row_change(const struct comparison *comparison, const struct row *row);

/* to += more; what does not fit wraps around. */
void change_add(struct change *to, const struct change *more);
void change_add_row(
	struct change *change, const struct comparison *comparison, const struct row *row);

/*
 * The frames of a row as they are to be shown: allocator's frames gone and turned round where that
 * was asked for. Replaces what frames held. None: the row has no stack to show.
 */
void view_frames(const struct view *view, uint32_t row, struct frames *frames);

/* The same of the stack that freed most, which must be known. */
void view_freed_by_frames(
	const struct view *view, const struct window_sums *sums, struct frames *frames);

#endif
