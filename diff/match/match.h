/*
 * Rows: the sums of a stack in each of several dumps.
 *
 * Stacks that count as equal form a class, and each class becomes a row. Two stacks are equal if
 * all of their frames are equal. Frames are compared by module and offset, because each dump has
 * its own list of modules. Frames of a rebuilt module are compared by their location in a function,
 * and frames in no module by address. Ids of stacks are only labels, unless MATCH_ID is requested.
 * Results do not depend on the order of stacks and sums in the dumps. A comparison borrows its
 * dumps and owns everything else. */
#ifndef DIFF_MATCH_MATCH_H
#define DIFF_MATCH_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/read/dump_sums.h"
#include "diff/read/frame.h"
#include "diff/read/stackless.h"
#include "diff/trend/trend.h"

enum row_kind {
	ROW_STACK,
	/* the dump lists several possible stacks for one id, as UMDH does with "Alias" */
	ROW_AMBIGUOUS,
	/* the dump lists the blocks with an id only, and several of its stacks have this id */
	ROW_ONE_OF,
	ROW_UNKNOWN, /* the dump contains an id for the blocks, but no stack with this id */
	ROW_STACKLESS, /* blocks without a recorded stack */
};

struct symbol_options;

/* 56 bytes; a comparison can have millions of rows. */
struct row {
	enum row_kind kind;
	uint32_t candidate_count; /* only for ROW_ONE_OF */
	/* address, if rows are kept per heap; a thread's id, if they are kept per thread; otherwise
	 * 0 */
	uint64_t heap;
	/* Indexed by dump. If all dumps are added up, a single element. */
	struct block_totals *totals;
	/* `dump` is the newest dump with the stack, and provides the row's addresses and names.
	 * `older_dump` is the next older dump with the stack, whose names may differ. If only one
	 * dump has the stack, both fields are equal. */
	uint32_t dump, older_dump;
	union {
		const struct stack *stack; /* NULL: no frames to show */
		/* as written in the file, if the comparison was read from a file */
		const struct frames *frames;
	};
	/* Distinct ids: ids of newer dumps first, ids of one dump in ascending order. The first id
	 * is the row's label. */
	const char *const *ids;
	uint32_t id_count;
	/* In mode MATCH_ID: number of different stacks that have the id, in all dumps together.
	 * Only the first of the newest dump's stacks is shown. In other modes: 0. */
	uint32_t id_stack_count;
	bool is_torn; /* in a printed comparison: lines of the stack were left out */
};

/* Criteria for equal frames. Stacks of texts are compared by text, and never match stacks of
 * addresses. */
enum match_mode {
	/* By module and offset. Frames in no module are compared by address. Frames of a rebuilt
	 * module are compared by function and by location in the function (see CLASS_CODE), if both
	 * are known. */
	MATCH_AUTO,
	MATCH_ID, /* by the dumps' ids; reliable only within one process */
	MATCH_ADDRESS, /* by address; reliable only within one process that unloads no modules */
	MATCH_MODULE, /* by module and offset; another build is another module */
	MATCH_SYMBOL, /* by module, function and line if known, otherwise like MATCH_MODULE */
	MATCH_FUNCTION, /* by module and function if known, otherwise like MATCH_AUTO */
};

#define HEAPS_ALL UINT64_MAX /* all heaps, but not the entries for virtual memory and handles */
#define HANDLES_ALL (UINT64_MAX - 1) /* handles of all types */

/* Returns true if the requested heap address `asked` selects `heap`. */
bool match_heap(uint64_t asked, uint64_t heap);

/* All fields zero: the default request. */
struct match_request {
	enum match_mode mode;
	bool no_symbols; /* names must not be looked up */
	/* Options for looking up names, or NULL. They must outlive the comparison. */
	const struct symbol_options *symbols;
	/* All dumps are of one process. A frame in no module of its dump is looked up in the others. */
	bool is_one_process;
	bool is_sum; /* all dumps are added up, and all blocks count as new */
	bool by_heap, by_thread; /* rows are kept per heap, or per thread that allocated */
	bool keeps_unchanged; /* unchanged stacks also become rows; ignored in a trend */
	const uint64_t *heaps; /* count only blocks in these heaps */
	/* 0: all blocks, but no reserved address space (HEAP_RESERVED) and no handles */
	size_t heap_count;
	/* only blocks that are unreachable, or reachable only from unreachable blocks */
	bool only_lost;
	/* In a trend: times of the dumps, and their division into parts, one for each process. Must
	 * outlive the comparison. A stack becomes a row if its sums differ between any two dumps of
	 * one part. NULL: only the first and the last dump are compared. */
	const struct trend_axis *axis;
};

#define ROW_NONE UINT32_MAX

struct change {
	struct block_totals old, now;
};

struct comparison {
	const struct dump_sums *dumps; /* oldest first; NULL: the comparison was read from a file */
	/* 2 for a comparison that was read from a file; `totals[0]` of its rows is OLD */
	size_t dump_count;
	bool is_sum; /* all dumps are added up; nothing is old */
	struct stackless_sizes stackless_sizes;
	bool has_unchanged; /* unchanged stacks are also rows */
	const struct trend_axis *axis; /* in a trend; otherwise NULL */
	/* in a trend: this series' number, from 1, and the number of all series */
	size_t series_number, series_count;
	/* Sums of all blocks, including blocks that are not selected. Reserved address space and
	 * handles are included only if they are selected. */
	struct block_totals old_total, new_total;
	/* reserved address space exists, but is not counted in any total or row */
	bool hides_reserved;
	struct change reserved;
	/* Handles, which are blocks of 0 bytes, if they are not counted in any total or row. */
	struct change handles;
	/* only in a trend: bytes of the hidden address space, maximum over all dumps */
	uint64_t reserved_most;
	const char *doubt; /* why limits of growth must not pass, or NULL; borrowed */
	bool shows_hosts; /* the inputs are of several machines, so reports name them */
	const char *image; /* program of a trend over several processes, or NULL; borrowed */
	/* The fields up to `warning_count` are mainly for a comparison that was read from a file.
	 * The rows of such a comparison lack overhead, and `has_overhead` is true if the
	 * comparison's total line contains overhead. For dumps, `has_overhead` is true unless the
	 * dumps were made from printed comparisons. */
	const char *read_from;
	bool has_overhead;
	bool is_cut; /* the end is missing */
	/* the base of the file's numbers was guessed, because the file does not show it */
	bool is_guess;
	bool lacks_rows; /* the totals include stacks without rows */
	bool lacks_blocks; /* a dump records no numbers of blocks, so no number of blocks is known */
	bool may_lack_rows; /* the file has no total line */
	bool lacks_counts; /* some rows have bytes in OLD, but lack the number of blocks in OLD */
	bool is_partial; /* rows are missing */
	const char *warnings[WARNINGS_MAX]; /* the first warnings, one sentence each */
	size_t warning_count; /* number of all warnings */
	/* Usually only rows that changed. All rows are included in a window of a recording, or if
	 * `has_unchanged` is set. The rows have a total order that starts with the largest growth
	 * from the first dump to the last. */
	struct row *rows;
	size_t row_count;
	/* Locations of addresses, and the names found so far. NULL if the comparison was read from
	 * a file. */
	struct locations *locations;
	struct names *names;
	struct block_totals *sums; /* storage of the rows' totals */
	struct trend *trends; /* indexed by row; NULL without an axis */
	/* Indexed by dump and cell (the sum of a stack in one heap): the cell's row, or ROW_NONE.
	 * Available only for a window of a recording and for dumps with listed blocks; otherwise
	 * NULL. */
	uint32_t **cell_rows;
	struct arena arena;
};

/* Returns the number of sums in each row. */
static inline size_t comparison_columns(const struct comparison *comparison)
{
	return comparison->is_sum ? 1 : comparison->dump_count;
}

/* Returns a row's trend, or NULL if the comparison has no axis. */
static inline const struct trend *row_trend(
	const struct comparison *comparison, const struct row *row)
{
	return comparison->trends ? &comparison->trends[row - comparison->rows] : NULL;
}

/* Signed numbers that can hold any difference of two sums. */
struct delta {
	int64_t block_count, requested_bytes, overhead_bytes;
};

/* `dumps` must outlive the comparison. */
void comparison_make(struct comparison *comparison, const struct dump_sums *dumps,
	size_t dump_count, const struct match_request *request);
void comparison_release(struct comparison *comparison);

/* Returns true if the comparison shows a window of one recording. In that case, rows that have no
 * blocks of the selected fate (enum block_fate) come last. */
bool comparison_is_window(const struct comparison *comparison);

/* row_new() returns a row's sums in the newest dump, row_old() its sums in the oldest dump. In a
 * trend, both functions add up the results of all parts. A trend's only dump is both the newest and
 * the oldest. Outside of trends, a single dump has no old sums. */
struct block_totals row_new(const struct comparison *comparison, const struct row *row);
struct block_totals row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

#endif
