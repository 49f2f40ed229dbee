/*
 * Rows: the sums of a stack in each of several dumps.
 *
 * Stacks are matched by class. A frame is compared by module and offset, using the modules of the
 * frame's own dump. If the module was rebuilt, the frame is compared by its location in a function.
 * If it lies in no module, it is compared by address. Ids are only labels, unless MATCH_ID is
 * requested. Results do not depend on the order of stacks and cells in the dumps. A comparison
 * borrows its dumps and owns everything else. */
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
	ROW_AMBIGUOUS, /* one of several stacks, not known which: UMDH's "Alias" */
	ROW_ONE_OF, /* one of several stacks, for blocks whose id has several stacks in the dump */
	ROW_UNKNOWN, /* the dumps have the id but no stack for it */
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
	/* `dump` is the index of the newest dump that has the stack; it provides the row's
	 * addresses and names. `older_dump` is the index of the next older dump with the stack,
	 * whose names may differ. It equals `dump` if no other dump has the stack. */
	uint32_t dump, older_dump;
	union {
		const struct stack *stack; /* NULL: no frames to show */
		/* as written in the file, if the comparison was read from a file */
		const struct frames *frames;
	};
	/* Distinct ids: those of newer dumps first, and in ascending order within a dump. The first
	 * id is the row's label. */
	const char *const *ids;
	uint32_t id_count;
	/* In mode MATCH_ID, the number of different stacks that the dumps have for the id. Only the
	 * newest dump's first stack is shown. In other modes 0. */
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

/* Returns true if the requested heap address selects `heap`. */
bool match_heap(uint64_t asked, uint64_t heap);

/* All fields zero: the default request. */
struct match_request {
	enum match_mode mode;
	bool no_symbols; /* names must not be looked up */
	/* Options for looking up names, or NULL. They must outlive the comparison. */
	const struct symbol_options *symbols;
	bool is_sum; /* all dumps are added up; everything in them is new */
	bool by_heap; /* rows are kept per heap */
	bool keeps_unchanged; /* unchanged stacks become rows, too; ignored in a trend */
	const uint64_t *heaps; /* only blocks in these heaps are counted */
	size_t heap_count; /* 0: all blocks except those under HEAP_RESERVED */
	/* only blocks that are unreachable, or reachable only from unreachable blocks */
	bool only_lost;
	/* In a trend: the times of the dumps. The axis must outlive the comparison. Every stack
	 * that differs between two dumps of a part becomes a row. NULL: only the first and the last
	 * dump are compared. */
	const struct trend_axis *axis;
};

#define ROW_NONE UINT32_MAX

struct change {
	struct block_totals old, now;
};

struct comparison {
	const struct dump_sums *dumps; /* oldest first; NULL: the comparison was read from a file */
	size_t dump_count; /* 2 if it was read from a file; `totals[0]` of a row is then OLD */
	bool is_sum; /* all dumps are added up; nothing is old */
	bool has_unchanged; /* unchanged stacks are rows, too */
	const struct trend_axis *axis; /* in a trend; otherwise NULL */
	/* in a trend: number from 1 among all its series, and their count */
	size_t series_number, series_count;
	/* Sums of all blocks, selected or not. Address space is included only if it is selected. */
	struct block_totals old_total, new_total;
	bool hides_reserved; /* some address space is not counted in any total or row */
	struct change reserved;
	uint64_t reserved_most; /* maximum number of bytes in any dump of a trend */
	const char *image; /* program of a trend over several processes, or NULL; borrowed */
	/* The fields up to `warning_count` are mainly for a comparison that was read from a file.
	 * Its rows lack overhead. `has_overhead` is true only if a total line contains overhead. It
	 * is false for dumps made from several printed comparisons. */
	const char *read_from;
	bool has_overhead;
	bool is_cut; /* the end is missing */
	/* the file does not show whether its numbers are hexadecimal; a guess was made */
	bool is_guess;
	bool lacks_rows; /* the totals include stacks without rows */
	bool may_lack_rows; /* the file has no total line */
	bool lacks_counts; /* some rows with blocks in OLD lack the number of these blocks */
	bool is_partial; /* rows are missing */
	const char *warnings[WARNINGS_MAX]; /* the first warnings, a sentence each */
	size_t warning_count; /* number of all warnings */
	/* Rows that changed, or all rows in a window of a recording or with `has_unchanged`.
	 * Totally ordered, starting with the largest growth from the first dump to the last. */
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

/* Returns true for a single window of a recording. Its rows without blocks of the window's fate
 * come last. */
bool comparison_is_window(const struct comparison *comparison);

/* Return a row's sums in the newest and in the oldest dump. A single dump has no old sums, except
 * in a trend, where it is both the newest and the oldest. */
struct block_totals row_new(const struct comparison *comparison, const struct row *row);
struct block_totals row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

#endif
