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
 * What a stack consists of, as a number: equal for stacks that are to be one row, whatever their
 * dump, id or heap.
 *
 * Nothing of a stack is copied. Stacks are compared where they are, frame by frame, each frame as
 * the place that the matching mode makes of it.
 */

struct stack_class {
	enum row_kind kind : 8; /* by id: ROW_STACK, whatever the id has */
	/* One of those that have it. Of ROW_ONE_OF: index into lists; of ROW_STACKLESS: none. */
	uint32_t dump : 24; /* READ_MAX fits */
	uint32_t stack;
};

/* Classes in their order, each once: one of them is the true one. */
struct class_list {
	uint32_t *classes;
	size_t count;
};

/* What was found for a stack that dumps have in common. */
struct class_memo {
	uint32_t
		alike; /* for dumps that are like that one, see struct locations; UINT32_MAX: nothing yet */
	uint32_t number;
};

struct stack_classes {
	const struct dump_sums *dumps;
	const struct locations *locations;
	const struct names *names;
	enum match_mode mode;
	bool by_symbol; /* names are there, for some frames at least */
	bool *has_names; /* by rank: that build of a module has some; NULL when by_symbol is false */
	uint32_t **texts; /* by dump and text: its number, see text_numbers() */
	size_t *process; /* by dump: the first one of its process */
	struct class_memo *memo; /* by number of sums.shared */
	size_t memo_count;
	struct hash_index index;
	struct stack_class *list;
	size_t count, cap;
	struct class_list *lists;
	size_t list_count, list_cap;
	struct location *frames; /* of the stack at hand, depth of them */
	size_t frame_cap;
	uint32_t depth;
	struct arena arena;
};

/* locations and names must outlive it. */
void stack_classes_make(struct stack_classes *classes, const struct dump_sums *dumps,
	size_t dump_count, const struct locations *locations, struct names *names,
	const struct match_request *request);
void stack_classes_release(struct stack_classes *classes);

/* Gives back what only finding classes needs, which must not be done then. */
void stack_classes_close(struct stack_classes *classes);

/* Gives back the classes themselves: what is left is stack_order(). */
void stack_classes_forget(struct stack_classes *classes);

/* The classes of all stacks of a dump, by their number. */
void stack_classes_find(struct stack_classes *classes, size_t dump, uint32_t *numbers);

/* The class of a dump's blocks that have no stack. */
uint32_t stack_class_none(struct stack_classes *classes, size_t dump);

/* The class of blocks that have one of some stacks, unknown which: count numbers, sorted here;
 * one number when all are the same. */
uint32_t stack_class_one_of(struct stack_classes *classes, uint32_t *all, size_t count);

/* A total order of classes that depends on nothing else. */
int stack_class_order(const struct stack_classes *classes, uint32_t a, uint32_t b);

/* How many frames two classes have in common from the innermost on, most at most. Fewer when that cannot be told
 * at a glance. */
uint32_t stack_class_common(
	const struct stack_classes *classes, uint32_t a, uint32_t b, uint32_t most);

/* Of classes that have so many frames in common: where these numbers differ, they have the order of the classes. */
uint64_t stack_class_key(const struct stack_classes *classes, uint32_t number, uint32_t common);

/* The same of the frames of two stacks. */
int stack_order(const struct stack_classes *classes, size_t dump_a, const struct stack *a,
	size_t dump_b, const struct stack *b);

/* The place of a frame by its function alone, in a unit above UINT32_MAX, where its module was rebuilt and it has a name;
 * otherwise the place that it is compared by. Of stacks with addresses, when names are there. */
struct location stack_class_function(const struct stack_classes *classes, size_t dump,
	const struct stack *stack, uint32_t index);

/* Pairs of classes that are one in different builds (class_pairs.c). */

struct class_pairs {
	const struct stack_classes *classes;
	uint32_t *builds; /* by dump; NULL: nothing was rebuilt */
	uint32_t build_count;
	uint64_t *masks; /* by class: a bit for each build whose dumps have it */
	size_t mask_count;
};

void class_pairs_init(struct class_pairs *pairs, const struct stack_classes *classes, size_t dumps);
void class_pairs_release(struct class_pairs *pairs);

/* Takes the classes that stack_classes_find() found for a dump. */
void class_pairs_add(
	struct class_pairs *pairs, size_t dump, const uint32_t *numbers, size_t stack_count);

/* Returns, by class, the one that it is to be; NULL: all stay. The caller frees it. Before stack_classes_close(). */
uint32_t *class_pairs_find(const struct class_pairs *pairs);

/* Ids as hexadecimal numbers of any length. */
int stack_id_order(const char *a, const char *b);

/*
 * What rows are shown by: their ids, and the dumps and stacks that give their frames.
 */

/*
 * Labels the rows of a comparison. rows[dump][cell] is the number of the row that the cell went to,
 * ROW_NONE: to none that is left.
 */
void rows_label(
	struct comparison *comparison, const struct stack_classes *classes, uint32_t *const *rows);

#endif
