/*
 * Rows: what a stack adds up to in each of several dumps.
 *
 * Stacks are matched by class: each frame as (module, offset) by its own dump's modules, as a
 * place in a function where the module was rebuilt, or as an address when it lies in none. Ids
 * are labels, unless it is asked for otherwise. Nothing depends on the order of stacks and cells in
 * the dumps. A comparison borrows the dumps it is made from and owns everything else.
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
	ROW_ONE_OF, /* the same, for blocks that name an id which the dump gives several stacks */
	ROW_UNKNOWN, /* the dumps name an id and never give its stack */
	ROW_STACKLESS, /* blocks no stack was recorded for */
};

struct symbol_options;

/* 56 bytes, for there are millions. */
struct row {
	enum row_kind kind;
	uint32_t candidate_count; /* of ROW_ONE_OF */
	uint64_t heap; /* its address, when rows are kept apart by heap; else 0 */
	/* What the row adds up to, by dump; in a sum, in all of them. */
	struct block_totals *totals;
	/* By number the newest dump that has the stack, for its addresses and names, and the next one, which
	 * may have other names, or the same. */
	uint32_t dump, older_dump;
	union {
		const struct stack *stack; /* NULL: there is nothing to show */
		const struct frames *frames; /* as they were given, when the comparison was read */
	};
	/* Without doubles, the newest dump's first, then by text; the first is the row's label. */
	const char *const *ids;
	uint32_t id_count;
	/* MATCH_ID: how many different stacks the dumps give for the id; of several only the newest
	 * dump's first is shown. 0 in other modes. */
	uint32_t id_stack_count;
};

/* Stacks that have no addresses but text are compared by it, and with each other only. */
enum match_mode {
	/* By module and offset, and by address where there is no module; frames of a module that was
	 * rebuilt, by function and where in it that is, as far as that is known (CLASS_CODE). */
	MATCH_AUTO,
	MATCH_ID, /* by what the dumps call a stack: only sound within one process */
	MATCH_ADDRESS, /* only sound within one process that unloads nothing */
	MATCH_MODULE, /* by module and offset; another build is another module */
	MATCH_SYMBOL, /* by module, function and line where these are known, else as MODULE */
	MATCH_FUNCTION, /* by module and function where that is known, else as AUTO */
};

#define HEAPS_ALL                                                                                  \
	UINT64_MAX /* in the place of an address: any but the headings of virtual memory */

/* Whether a heap is one that is asked for. */
bool match_heap(uint64_t asked, uint64_t heap);

/* All zero is the default. */
struct match_request {
	enum match_mode mode;
	bool no_symbols; /* names must not be looked for */
	/* How names are looked for, also later, while the comparison lives; or NULL. */
	const struct symbol_options *symbols;
	bool is_sum; /* all dumps are added up, and everything in them is new */
	bool by_heap; /* the same stack in two heaps is two rows */
	bool keeps_unchanged; /* stacks that did not change are rows; not for a trend */
	const uint64_t *heaps; /* only blocks of these; */
	size_t heap_count; /* 0: of all but what is under the heading HEAP_RESERVED */
	bool only_lost; /* only blocks that nothing leads to, or only such blocks do */
	/* For a trend: when the dumps were taken, which must outlive the comparison. Rows are then all
	 * stacks that differ between any two dumps of a part. NULL: only the first and the last dump count. */
	const struct trend_axis *axis;
};

#define ROW_NONE UINT32_MAX

/* A sum before and after. */
struct change {
	struct block_totals old, new;
};

struct comparison {
	const struct dump_sums *dumps; /* oldest first; NULL: the comparison was read, not made */
	size_t dump_count; /* 2 when it was read: struct row's of[0] is OLD */
	bool is_sum; /* of all dumps; then nothing is old */
	bool has_unchanged; /* stacks that did not change are rows, too */
	const struct trend_axis *axis; /* of a trend, else NULL */
	size_t series_number, series_count; /* of a trend: among all its series, from 1 */
	/* Of all blocks, whatever was asked for; with address space only when that was. */
	struct block_totals old_total, new_total;
	bool hides_reserved; /* there is some, in no total and in no row: */
	struct change reserved;
	uint64_t reserved_most; /* bytes in any dump of a trend */
	const char
		*image; /* of a trend over several processes: whose they are; or NULL. Borrowed. */
	/* Of a comparison that was read. Its rows do not tell their overhead, and without a total
	 * line in the file nothing does: has_overhead false. It is false for several in a row, too. */
	const char *read_from;
	bool has_overhead;
	bool is_cut; /* its end is missing */
	bool is_guess; /* nothing told whether its numbers are hexadecimal or decimal */
	bool lacks_rows; /* the totals count stacks of which there are no rows */
	bool may_lack_rows; /* there is no total line */
	bool lacks_counts; /* OLD's number of blocks is not told by all rows that have any */
	bool is_partial; /* rows that ought to be there are not */
	const char *warnings[WARNINGS_MAX]; /* the first ones: what it lacks, a sentence each */
	size_t warning_count; /* of all */
	/* Rows that changed; all rows of a window of a recording, or with has_unchanged. The largest growth from first to last
	 * comes first: a total order. */
	struct row *rows;
	size_t row_count;
	/* When it was made: where addresses lie, and the names that matching or naming looked for. */
	struct locations *locations;
	struct names *names;
	struct block_totals *sums; /* what the rows' of point to */
	struct trend *trends; /* by row, when there is an axis; else NULL */
	/* By dump the row of each of its cells, or ROW_NONE: of a window of a recording, and of dumps whose blocks
	 * are listed; else NULL. */
	uint32_t **cell_rows;
	struct arena arena;
};

/* How many sums a row has. */
static inline size_t comparison_columns(const struct comparison *comparison)
{
	return comparison->is_sum ? 1 : comparison->dump_count;
}

/* What a row's series says; NULL: the comparison has no axis. */
static inline const struct trend *row_trend(
	const struct comparison *comparison, const struct row *row)
{
	return comparison->trends ? &comparison->trends[row - comparison->rows] : NULL;
}

/* A signed number with room for every difference of two sums. */
struct delta {
	int64_t block_count, requested_bytes, overhead_bytes;
};

/* dumps must outlive the comparison. */
void comparison_make(struct comparison *comparison, const struct dump_sums *dumps,
	size_t dump_count, const struct match_request *request);
void comparison_release(struct comparison *comparison);

/* Returns true if it is of one window of a recording. Then rows with nothing of the window's class come last. */
bool comparison_is_window(const struct comparison *comparison);

/* The newest dump's sums, and the oldest one's: nothing when there is but one, which in a trend is
 * both. */
struct block_totals row_new(const struct comparison *comparison, const struct row *row);
struct block_totals row_old(const struct comparison *comparison, const struct row *row);

struct delta row_delta(const struct comparison *comparison, const struct row *row);
struct delta comparison_delta(const struct comparison *comparison);

/* What the dumps of a comparison add up to, whatever is in them. */

#endif
