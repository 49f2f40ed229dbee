/*
 * A view: the requested part of a comparison, in the requested order. Reports print only views.
 *
 * A view borrows its comparison, and owns its `naming`. Row numbers are indexes in
 * comparison->rows. */
#ifndef DIFF_QUERY_VIEW_H
#define DIFF_QUERY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/balance_view.h"
#include "diff/query/filter.h"
#include "diff/query/heap_view.h"
#include "diff/query/naming.h"
#include "diff/query/pattern.h"
#include "diff/query/strip.h"
#include "diff/query/suppress.h"
#include "diff/read/frame.h"

enum view_group {
	GROUP_STACK, /* no groups: each row is a stack */
	GROUP_FUNCTION,
	GROUP_FILE,
	GROUP_MODULE,
	GROUP_HEAP,
	GROUP_THREAD, /* by the thread that allocated */
	GROUP_MEMORY, /* one group for all heaps, and one for each kind of virtual memory */
};

/* Primary sort key. Groups are sorted by the key of `self`, then by the key of `total`, then by
 * name. */
enum view_sort {
	/* like SORT_BYTES; in a trend like SORT_VERDICT; for pinned rows like SORT_PINNED */
	SORT_DEFAULT,
	SORT_BYTES, /* largest growth in bytes first */
	SORT_COUNT, /* largest growth in blocks first */
	SORT_NEW, /* most bytes in NEW first */
	SORT_OLD, /* most bytes in OLD first */
	SORT_TOTAL, /* only for groups: largest growth of `total` first */
	SORT_NAME, /* innermost frame shown, from A to Z; rows without frames last */
	SORT_PINNED, /* only for pinned rows: largest part first */
	/* Only in a trend: */
	SORT_VERDICT, /* most certain leak first: by verdict, then by the lower bound of the rate */
	SORT_SLOPE, /* most growth per hour first */
};

/* Request for a view. If all fields except `shown_max` are zero, everything is selected, in the
 * comparison's order. */
struct view_request {
	enum view_group group;
	enum view_sort sort;
	size_t shown_max;
	bool is_inverted;
	bool is_part; /* the comparison's rows do not cover all blocks */
	/* in a window: also show rows without blocks of its fate, and make `lives` */
	bool wants_lives;
	/* `filter` and `suppressions` may be NULL. Both contain caches that further views can use
	 * again. */
	struct filter *filter;
	struct suppressions *suppressions;
	struct strip *strip; /* must outlive the view */
};

/* Stacks with something in common. A stack counts once, even if several of its frames are in the
 * group. */
struct view_group_row {
	const char *name; /* "module!function", a path, a module, or a heap's address */
	uint64_t heap; /* if rows are kept per heap or thread: that of the group's rows */
	struct change self; /* stacks whose innermost frame is in the group ("flat" in pprof) */
	struct change total; /* stacks with any frame in the group ("cum" in pprof) */
	/* In a trend: sums at each snapshot, and the trends of these sums. If no stack has its
	 * innermost frame in the group, `self_of` is NULL, and the verdict of `self_trend` is
	 * steady or, if there are too few snapshots, too-few. */
	struct block_totals *self_of, *total_of;
	/* rows that count in `total`; available only if the comparison has `cell_rows` */
	uint32_t *members;
	size_t member_count, member_cap;
	struct trend self_trend, total_trend;
};

struct time_span {
	uint64_t first_ms, last_ms; /* the span is empty if `first_ms` is greater than `last_ms` */
};

/* Sums of a row or group in a window of a recording, for all fates. */
struct window_sums {
	struct block_totals by_fate[BLOCK_FATES]; /* all except FATE_LIVE */
	uint64_t peak_bytes, peak_ms; /* maximum of live bytes, and the first time it was reached */
	/* times of allocations and frees in the window; `freed` includes blocks from before the
	 * window */
	struct time_span allocated, freed;
	/* shortest and longest lifetime of the blocks that were allocated and freed in the
	 * window */
	uint64_t shortest_ms, longest_ms;
	/* median of these lifetimes: exact below 64 ms; above that, with an error of up to 1/64 */
	uint64_t median_ms;
	double lives_ms; /* sum of these lifetimes */
	/* `threads`: ids of the threads that allocated in the window. `heaps`: addresses of the
	 * heaps of all blocks that were live in the window. Both are sorted. */
	const uint64_t *threads, *heaps;
	size_t thread_count, heap_count;
	/* `freed_by` is the stack that freed the most bytes in the window. `freed_by_sum` is the
	 * sum of the blocks that this stack freed. `freed_by_count` is the number of all known
	 * stacks that freed blocks. */
	/* If blocks are divided by thread: the threads that freed blocks in the window, most bytes
	 * first. */
	struct thread_sum {
		uint32_t id;
		struct block_totals sum;
	} * freers;
	size_t freer_count;
	const struct stack *freed_by; /* NULL: unknown */
	struct block_totals freed_by_sum;
	size_t freed_by_count;
};

struct row_blocks {
	struct size_change {
		uint64_t bytes, old_count, new_count;
	} * sizes; /* smallest first */
	size_t size_count;
	/* For two dumps. `kept`: blocks that are in both dumps, with equal address, stack and size.
	 * `came`: blocks only in NEW. `gone`: blocks only in OLD. */
	struct block_totals kept, came, gone;
};

/* Containers that a row's blocks keep allocated. */
struct row_pinned {
	size_t container_count;
	struct block_totals blocks; /* the row's blocks in these containers; no overhead */
	/* Committed bytes of the containers that have blocks of this row only, and of those that
	 * also have blocks of other rows. */
	uint64_t alone_bytes, shared_bytes;
	/* Sum of alone_bytes and of the row's part of shared_bytes, by number of blocks. The parts
	 * of all rows add up to the containers. */
	uint64_t part_bytes;
};

struct pinned_view {
	struct row_pinned *rows; /* indexed by row of the comparison; NULL: not requested */
	size_t container_count;
	uint64_t committed_bytes;
	struct block_totals blocks; /* all blocks in the containers */
	/* Blocks without a stack. Dumps do not record which group of such blocks is in a
	 * container, so no row has them. */
	struct row_pinned stackless;
	uint64_t left_count; /* number of containers that the dump does not list */
};

/* Contents of a row's blocks. */
struct shown_word {
	uint64_t value;
	uint32_t offset, len; /* in the content */
	const struct dump_pointer *to; /* block that the word points to, or NULL */
	bool is_in_module; /* the word is an address in a module */
	uint64_t return_addr; /* if `is_in_module`: the address to look up, whose name is shown */
};
struct shown_content {
	const struct dump_content *content;
	struct shown_word *words;
	size_t word_count;
};
struct row_contents {
	const struct dump_sums *dump; /* dump that contains the blocks */
	struct shown_content *items;
	size_t count;
};

struct lives;

struct view {
	const struct comparison *comparison;
	struct naming naming;
	/* Numbers of the selected rows, in the order of the view. In a grouped view, groups are
	 * shown instead of rows, and `rows` contains the members of all groups. */
	uint32_t *rows;
	size_t row_count;
	/* Number of further selected rows, which follow the first `row_count` elements of `rows`.
	 * These rows are never shown and only count in sums. In a window of a recording, they are
	 * the rows without blocks of the window's fate, and count in `window`. In a grouped view,
	 * they are unchanged rows, and count in groups. */
	size_t other_count;
	/* only the first `shown_count` rows or groups are shown; the rest only count in sums */
	size_t shown_count;
	enum view_group group;
	enum view_sort sort; /* SORT_DEFAULT: the comparison's own order */
	struct view_group_row *groups;
	size_t group_count;
	struct pinned_view pinned;
	struct change all; /* sum of the comparison, including unchanged rows */
	struct change selected; /* sum of the selected rows */
	/* In a trend: the sums of the selected rows at each snapshot, and their trend. Otherwise
	 * NULL. */
	struct block_totals *series;
	struct trend trend;
	size_t series_number, series_count; /* as in the comparison */
	struct change suppressed;
	size_t suppressed_count;
	struct heap_view heaps;
	/* balance of the whole process, regardless of the selected rows */
	struct balance_view balance;
	/* `selected` does not cover all stacks: rows were left out on request, or are missing */
	bool is_filtered;
	bool is_inverted; /* frames are shown outermost first */
	struct strip *strip; /* may be NULL */
	struct spellings *spellings; /* spellings of modules in names of groups; may be NULL */
	/* growth of stacks that consist only of allocators' frames, see view_find_uncalled() */
	uint64_t uncalled_bytes;
	/* Results of view_window(), or NULL. The first element has the sums of all selected stacks,
	 * including stacks without blocks of the window's fate. After it, there is one element for
	 * each row or group that is shown. */
	struct window_sums *window;
	bool wants_lives;
	struct lives *lives; /* result of view_window() if requested; otherwise NULL */
	bool has_sizes, has_age; /* kinds of data in `blocks` */
	/* results of view_blocks(), indexed like the rows shown; may be NULL */
	struct row_blocks *blocks;
	/* results of view_contents(), indexed like the rows shown; NULL: the dumps have no
	 * contents */
	struct row_contents *contents;
	struct arena arena; /* storage of groups and blocks */
};

/* Makes a view of the whole comparison, in the comparison's order. The comparison must outlive the
 * view. `by_name`: see naming_make(). */
void view_make(struct view *view, const struct comparison *comparison, bool by_name);
void view_release(struct view *view);

/* Finds the rows that pin containers of the only dump, which must list its blocks and containers.
 * Only these rows are then selected. Must be called before view_select(). */
void view_find_pinned(struct view *view);

/*
 * Restricts a new view to the requested rows, and sorts it. Looks up the names of all rows that
 * will be shown, and of rows whose selection depends on names. Invariant: all = selected +
 * suppressed + rows that the filters dropped. Returns 0, or -ERR_USAGE if a pattern takes too long.
 * After an error, the view can only be released. */
int view_select(struct view *view, const struct view_request *request, struct err *err);

/* Adds up the growth of rows whose frames are all layers, so that the caller of the allocator is
 * unknown. Ignores rows with less than a thousandth of the growth. */
void view_find_uncalled(struct view *view, struct strip *strip);

/* Computes `window` if the comparison covers a window of a recording. Reads the events of the
 * window. Must be called after view_select(). Returns 0, or an error of core/record. */
int view_window(struct view *view, struct err *err);

/* Finds the blocks of each row shown. Possible only for comparisons of one or two dumps that list
 * their blocks. `has_age` requires two dumps. */
void view_blocks(struct view *view, bool has_sizes, bool has_age);

/* Looks up the names in the stacks that created the heaps. */
void view_find_creators(struct view *view);

/* Finds the contents of the blocks of the rows shown. Looks up the names of addresses in the
 * contents. */
void view_contents(struct view *view);

/* If `is_in_module` of a word is set, stores the frame at the word's address in `frames`, and
 * returns true. Otherwise returns false. */
bool view_word_frame(const struct view *view, const struct dump_sums *dump,
	const struct shown_word *word, struct frames *frames);

/* Number of sort keys for the trend of a row or group. Keys are compared in sequence, and the trend
 * with the larger key is sorted first. */
#define TREND_KEYS 6

#define SIGN_BIT (UINT64_C(1) << 63)

/* Returns a key that preserves the order of signed numbers. */
static inline uint64_t signed_key(int64_t value)
{
	return (uint64_t)value ^ SIGN_BIT;
}

/* Computes the sort keys of a trend. For SORT_VERDICT: the verdict; the lower bound of the rate;
 * the rate in bytes and in blocks; the net growth in bytes and in blocks. With too few snapshots,
 * only the net growth is used. For SORT_SLOPE: the rate, then the net growth. For other sorts, all
 * keys are equal. */
void trend_keys(const struct trend *trend, enum view_sort sort, uint64_t keys[TREND_KEYS]);

/* Compares keys for qsort(). */
int trend_keys_order(const uint64_t a[TREND_KEYS], const uint64_t b[TREND_KEYS]);

struct delta change_delta(const struct change *change);

struct change row_change(const struct comparison *comparison, const struct row *row);

/* Adds `more` to `*to`; overflow wraps around. */
void change_add(struct change *to, const struct change *more);
void change_add_row(
	struct change *change, const struct comparison *comparison, const struct row *row);

/* Stores the frames of a row in `frames` in the form that is shown: without layers of allocators,
 * and inverted if requested. Replaces the content of `frames`. Stores no frames if the row has no
 * stack to show. */
void view_frames(const struct view *view, uint32_t row, struct frames *frames);

/* Stores the frames of `freed_by`, which must not be NULL. */
void view_freed_by_frames(
	const struct view *view, const struct window_sums *sums, struct frames *frames);

#endif
