/*
 * Rows: the sums of a stack in each of several dumps.
 *
 * Stacks are matched by class. Frames are compared by module and offset; each dump has its own list
 * of modules. Frames of a rebuilt module are compared by their location in a function, and frames
 * in no module by address. Ids are only labels, unless MATCH_ID is requested. Results do not depend
 * on the order of stacks and cells in the dumps. A comparison borrows its dumps and owns everything
 * else. */
#ifndef DIFF_MATCH_MATCH_H
#define DIFF_MATCH_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/read/dump_sums.h"
#include "diff/read/frame.h"
#include "diff/trend/trend.h"

enum row_kind {
	ROW_STACK,
	ROW_AMBIGUOUS, /* one of several stacks; which one is unknown: UMDH's "Alias" */
	/* one of several stacks: the dump has several stacks with the id of the blocks */
	ROW_ONE_OF,
	ROW_UNKNOWN, /* the dumps contain the id without a stack */
	ROW_STACKLESS, /* blocks without a recorded stack */
};

struct symbol_options;

/* 56 bytes; a comparison can have millions of rows. */
struct row {
	enum row_kind kind;
	uint32_t candidate_count; /* only for ROW_ONE_OF */
	uint64_t heap; /* address, if rows are kept per heap; otherwise 0 */
	/* Indexed by dump. If all dumps are added up, a single element. */
	struct block_totals *totals;
	/* `dump` is the newest dump with the stack; it provides the row's addresses and names.
	 * `older_dump` is the next older dump with the stack; its names may differ. If only one
	 * dump has the stack, both are equal. */
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
	/* In mode MATCH_ID: number of different stacks with the id in all dumps. Only the first one
	 * in the newest dump is shown. In other modes: 0. */
	uint32_t id_stack_count;
};

/* Criteria for equal frames. Stacks of texts are compared by text, and never match stacks of
 * addresses. */
enum match_mode {
	/* By module and offset, or by address in no module. Frames of a rebuilt module are compared
	 * by function and by location in the function, if known (see CLASS_CODE). */
	MATCH_AUTO,
	MATCH_ID, /* by the dumps' ids; reliable only within one process */
	MATCH_ADDRESS, /* by address; reliable only within one process that unloads no modules */
	MATCH_MODULE, /* by module and offset; another build is another module */
	MATCH_SYMBOL, /* by module, function and line if known, otherwise like MATCH_MODULE */
	MATCH_FUNCTION, /* by module and function if known, otherwise like MATCH_AUTO */
};

#define HEAPS_ALL UINT64_MAX /* all heaps, but not the entries for virtual memory */

/* Returns true if the requested heap address `asked` selects `heap`. */
bool match_heap(uint64_t asked, uint64_t heap);

/* All fields zero: the default request. */
struct match_request {
	enum match_mode mode;
	bool no_symbols; /* names must not be looked up */
	/* Options for looking up names, or NULL. They must outlive the comparison. */
	const struct symbol_options *symbols;
	bool is_sum; /* all dumps are added up, and all blocks count as new */
	bool by_heap; /* rows are kept per heap */
	bool keeps_unchanged; /* unchanged stacks also become rows; ignored in a trend */
	const uint64_t *heaps; /* count only blocks in these heaps */
	size_t heap_count; /* 0: all blocks except those under HEAP_RESERVED */
	/* only blocks that are unreachable, or reachable only from unreachable blocks */
	bool only_lost;
	/* In a trend: times of the dumps; must outlive the comparison. Every stack whose sums
	 * differ between two dumps of a part becomes a row. NULL: only the first and the last dump
	 * are compared. */
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
	bool has_unchanged; /* unchanged stacks are also rows */
	const struct trend_axis *axis; /* in a trend; otherwise NULL */
	/* in a trend: this series' number, from 1, and the number of all series */
	size_t series_number, series_count;
	/* Sums of all blocks, selected or not. Address space is included only if it is selected. */
	struct block_totals old_total, new_total;
	bool hides_reserved; /* some address space is not counted in any total or row */
	struct change reserved;
	/* bytes of the hidden address space; in a trend, the maximum over all dumps */
	uint64_t reserved_most;
	const char *image; /* program of a trend over several processes, or NULL; borrowed */
	/* The fields up to `warning_count` are mainly for a comparison that was read from a file.
	 * The rows of such a comparison lack overhead; `has_overhead` is true if its total line
	 * contains overhead. For dumps, `has_overhead` is true unless they were made from printed
	 * comparisons. */
	const char *read_from;
	bool has_overhead;
	bool is_cut; /* the end is missing */
	/* the base of the file's numbers was guessed, because the file does not show it */
	bool is_guess;
	bool lacks_rows; /* the totals include stacks without rows */
	bool may_lack_rows; /* the file has no total line */
	bool lacks_counts; /* some rows have bytes in OLD, but lack the number of blocks in OLD */
	bool is_partial; /* rows are missing */
	const char *warnings[WARNINGS_MAX]; /* the first warnings, one sentence each */
	size_t warning_count; /* number of all warnings */
	/* Changed rows. In a window of a recording, or with `has_unchanged`, all rows. Totally
	 * ordered; the largest growth from the first dump to the last comes first. */
	struct row *rows;
	size_t row_count;
	/* Locations of addresses, and the names found so far. NULL if the comparison was read from
	 * a file. */
	struct locations *locations;
	struct names *names;
	struct block_totals *sums; /* storage of the rows' totals */
	struct trend *trends; /* indexed by row; NULL without an axis */
	/* Row of each cell, indexed by dump and cell, or ROW_NONE. NULL except for a window of a
	 * recording and for dumps with listed blocks. */
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

/* Returns true for a single window of a recording. In such a comparison, rows that have no
 * blocks of the selected fate (enum block_fate) come last. */
bool comparison_is_window(const struct comparison *comparison);

/* Return a row's sums in the newest dump and in the oldest dump. In a trend of several parts, these
 * are the sums over the newest or oldest dumps of all parts. A single dump has no old sums, except
 * in a trend: there, it is both the newest and the oldest. */
struct block_totals row_new(const struct comparison *comparison, const struct row *row);
struct block_totals row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

#endif
