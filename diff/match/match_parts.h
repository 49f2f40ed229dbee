/* The parts of matching: numbers for frames, classes of stacks, labels of rows. */
#ifndef DIFF_MATCH_MATCH_PARTS_H
#define DIFF_MATCH_MATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/locations.h"
#include "diff/match/match.h"
#include "diff/read/dump_sums.h"

/*
 * Numbers for the frames of stacks that have no addresses but text: equal for texts that say the
 * same, in whatever dump.
 */

/*
 * For each dump an array, in the order of its texts, of numbers from 1 that follow the text, in
 * arena. However an offset is spelt does not count ("+0x00000808", "+808"); with by_function neither
 * it nor what is behind it. NULL: out of memory.
 */
uint32_t **stack_frame_numbers(
	const struct dump_sums *dumps, size_t count, bool by_function, struct arena *arena);

/*
 * What a stack consists of, as a number: equal for stacks that are to be one row, whatever their
 * dump, id or heap.
 *
 * Nothing of a stack is copied. Stacks are compared where they are, frame by frame, each frame as
 * the place that the matching mode makes of it.
 */

struct content {
	enum row_kind kind; /* by id: ROW_STACK, whatever the id has */
	/* One of those that have it. Of ROW_ONE_OF: index into lists; of ROW_STACKLESS: none. */
	uint32_t dump, stack;
};

/* Contents in their order, each once: one of them is the true one. */
struct content_list {
	uint32_t *contents;
	size_t count;
};

/* What was found for a stack that dumps have in common. */
struct content_memo {
	uint32_t
		alike; /* for dumps that are like that one, see struct locations; UINT32_MAX: nothing yet */
	uint32_t number;
};

struct stack_classes {
	const struct dump_sums *dumps;
	const struct locations *places;
	const struct names *names;
	enum match_mode mode;
	bool by_symbol; /* names are there, for some frames at least */
	bool *has_names; /* by rank: that build of a module has some; NULL when by_symbol is false */
	uint32_t **texts; /* see stack_frame_numbers() */
	size_t *process; /* by dump: the first one of its process */
	struct content_memo *memo; /* by number of sums.shared */
	size_t memo_count;
	struct hash_index index;
	struct content *list;
	size_t count, cap;
	struct content_list *lists;
	size_t list_count, list_cap;
	struct location *frames; /* of the stack at hand, depth of them */
	size_t frame_cap;
	uint32_t depth;
	struct arena arena;
};

/* places and names must outlive it. Release it in any case. 0 or -ERR_NOMEM. */
int stack_classes_make(struct stack_classes *contents, const struct dump_sums *dumps,
	size_t dump_count, const struct locations *places, struct names *names,
	const struct match_request *request);
void stack_classes_release(struct stack_classes *contents);

/* The content of a dump's stack (its index, or STACK_NONE). 0 or -ERR_NOMEM. */
int content_of(struct stack_classes *contents, size_t dump, uint32_t stack, uint32_t *number);

/* The content of blocks that have one of some stacks, unknown which: count numbers, sorted here;
 * one number when all are the same. 0 or -ERR_NOMEM. */
int content_one_of(struct stack_classes *contents, uint32_t *all, size_t count, uint32_t *number);

/* A total order of contents that depends on nothing else. */
int content_order(const struct stack_classes *contents, uint32_t a, uint32_t b);

/* The same of the frames of two stacks. */
int content_stack_order(const struct stack_classes *contents, size_t dump_a, const struct stack *a,
	size_t dump_b, const struct stack *b);

/* Ids as hexadecimal numbers of any length. */
int stack_id_order(const char *a, const char *b);

/*
 * What rows are shown by: their ids, and the dumps and stacks that give their frames.
 */

#define ROW_NONE UINT32_MAX

/*
 * Labels the rows of a comparison. rows[dump][cell] is the number of the row that the cell went to,
 * ROW_NONE: to none that is left. 0 or -ERR_NOMEM.
 */
int rows_label(
	struct comparison *comparison, const struct stack_classes *contents, uint32_t *const *rows);

#endif
