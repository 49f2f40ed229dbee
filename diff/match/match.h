/*
 * Rows: the sums of a stack in each of several dumps.
 *
 * Stacks are matched by class. A frame is compared by module and offset, using its own dump's
 * modules; by location in a function, if the module was rebuilt; or by address, if it lies in no
 * module. Ids are only labels, unless MATCH_ID is requested. Results do not depend on the order of
 * stacks and cells in the dumps. A comparison borrows its dumps and owns everything else.
 */
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
	ROW_AMBIGUOUS, /* one of several stacks, unknown which: UMDH's "Alias" */
	ROW_ONE_OF, /* one of several stacks, for blocks whose id has several stacks in the dump */
	ROW_UNKNOWN, /* the dumps have the id but not its stack */
	ROW_STACKLESS, /* blocks without a recorded stack */
};

struct symbol_options;

/* 56 bytes; a comparison can have millions of rows. */
struct row {
	enum row_kind kind;
	uint32_t candidate_count; /* only for ROW_ONE_OF */
	uint64_t heap; /* address, if rows are kept per heap; otherwise 0 */
	/* Sums by dump; in a sum of all dumps, one element. */
	struct block_totals *totals;
	/* Index of the newest dump that has the stack, which provides its addresses and names.
	 * Index of the next older one, whose names may differ; may be equal to dump. */
	uint32_t dump, older_dump;
	union {
		const struct stack *stack; /* NULL: no frames to show */
		const struct frames *frames; /* as given, if the comparison was read */
	};
	/* Distinct ids, the newest dump's first, then by text; the first is the row's label. */
	const char *const *ids;
	uint32_t id_count;
	/* MATCH_ID: number of different stacks that the dumps have for the id; only the newest
	 * dump's first one is shown. 0 in other modes. */
	uint32_t id_stack_count;
};

/* Stacks of texts instead of addresses are compared by text, and only with each other. */
enum match_mode {
	/* By module and offset, or by address in no module; frames of a rebuilt module by function
	 * and location in it, where known (CLASS_CODE). */
	MATCH_AUTO,
	MATCH_ID, /* by the dumps' ids: only sound within one process */
	MATCH_ADDRESS, /* only sound within one process that unloads nothing */
	MATCH_MODULE, /* by module and offset; another build is another module */
	MATCH_SYMBOL, /* by module, function and line where known, otherwise as MODULE */
	MATCH_FUNCTION, /* by module and function where known, otherwise as AUTO */
};

#define HEAPS_ALL UINT64_MAX /* all heaps, without the headings of virtual memory */

/* Returns true if heap is selected by the requested address. */
bool match_heap(uint64_t asked, uint64_t heap);

/* All zero is the default. */
struct match_request {
	enum match_mode mode;
	bool no_symbols; /* names must not be looked up */
	/* Options for looking up names, which must outlive the comparison; or NULL. */
	const struct symbol_options *symbols;
	bool is_sum; /* all dumps are added up; everything in them is new */
	bool by_heap; /* rows are kept per heap */
	bool keeps_unchanged; /* make rows of unchanged stacks, too; not in a trend */
	const uint64_t *heaps; /* only blocks in these heaps */
	size_t heap_count; /* 0: all blocks except those under HEAP_RESERVED */
	bool only_lost; /* only blocks that are unreachable or reachable only from such blocks */
	/* In a trend: when the dumps were taken; must outlive the comparison. Every stack that
	 * differs between two dumps of a part becomes a row. NULL: only the first and the last dump
	 * count. */
	const struct trend_axis *axis;
};

#define ROW_NONE UINT32_MAX

struct change {
	struct block_totals old, new;
};

struct comparison {
	const struct dump_sums *dumps; /* oldest first; NULL: the comparison was read from a file */
	size_t dump_count; /* 2 if it was read: totals[0] of a row is OLD */
	bool is_sum; /* all dumps are added up; nothing is old */
	bool has_unchanged; /* unchanged stacks are rows, too */
	const struct trend_axis *axis; /* in a trend, otherwise NULL */
	size_t series_number, series_count; /* in a trend: from 1, among all its series */
	/* Sums of all blocks, selected or not; address space counts only if selected. */
	struct block_totals old_total, new_total;
	bool hides_reserved; /* address space exists that is in no total and no row */
	struct change reserved;
	uint64_t reserved_most; /* maximum of bytes in any dump of a trend */
	const char *image; /* borrowed; program of a trend over several processes, or NULL */
	/* For a comparison that was read. Its rows lack overhead; has_overhead is true only if a
	 * total line gives it, and false for several comparisons in a row. */
	const char *read_from;
	bool has_overhead;
	bool is_cut; /* the end is missing */
	bool is_guess; /* whether its numbers are hexadecimal was guessed */
	bool lacks_rows; /* the totals include stacks without rows */
	bool may_lack_rows; /* the file has no total line */
	bool lacks_counts; /* some rows with blocks in OLD lack their number */
	bool is_partial; /* rows are missing */
	const char *warnings[WARNINGS_MAX]; /* the first ones, a sentence each */
	size_t warning_count; /* of all warnings */
	/* Rows that changed; all rows in a window of a recording or with has_unchanged. Total
	 * order, with the largest growth from first to last at the start. */
	struct row *rows;
	size_t row_count;
	/* Locations of addresses, and names found so far. NULL if the comparison was read. */
	struct locations *locations;
	struct names *names;
	struct block_totals *sums; /* storage of the rows' totals */
	struct trend *trends; /* by row, if axis is set; otherwise NULL */
	/* Row of each cell, by dump and cell, or ROW_NONE. Only for a window of a recording and for
	 * dumps with listed blocks; otherwise NULL. */
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

/* Signed numbers that hold every difference of two sums. */
struct delta {
	int64_t block_count, requested_bytes, overhead_bytes;
};

/* dumps must outlive the comparison. */
void comparison_make(struct comparison *comparison, const struct dump_sums *dumps,
	size_t dump_count, const struct match_request *request);
void comparison_release(struct comparison *comparison);

/* Returns true for one window of a recording. Rows without blocks of the window's fate are then
 * last. */
bool comparison_is_window(const struct comparison *comparison);

/* Return the sums in the newest and in the oldest dump. A single dump has no old sums, except in a
 * trend, where it is both. */
struct block_totals row_new(const struct comparison *comparison, const struct row *row);
struct block_totals row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

#endif
