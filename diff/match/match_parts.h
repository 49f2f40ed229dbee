/* Parts of matching: classes of stacks, pairs of classes, and labels of rows. */
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
 * Class of a stack: a number that is equal for all stacks that form one row, regardless of their
 * dump, id or heap.
 *
 * Stacks are not copied. They are compared in place, frame by frame, by the location that the
 * matching mode assigns to each frame. */

struct stack_class {
	/* in mode MATCH_ID always ROW_STACK, even if the id has several stacks */
	enum row_kind kind : 8;
	/* One of the class's stacks: its dump and its number. For ROW_ONE_OF, `stack` is an index
	 * in `lists` instead. For ROW_STACKLESS, it is unused. */
	uint32_t dump : 24; /* holds up to READ_MAX dumps */
	uint32_t stack;
};

/* Classes of all stacks that blocks may belong to if their own stack is unknown (ROW_ONE_OF). The
 * classes are distinct and sorted. */
struct class_list {
	uint32_t *classes;
	size_t count;
};

/* Cached class of a stack that several dumps share. */
struct class_memo {
	/* the entry is valid for each dump that has this value in `alike` of struct locations;
	 * UINT32_MAX: the entry is empty */
	uint32_t alike;
	uint32_t number;
};

/* Numbers the texts of frames, for stacks that consist of texts instead of addresses. Returns the
 * numbers, which start at 1, indexed by dump and text. The arrays are allocated from `arena`.
 * Numbers have the same order as the texts. Equal texts have equal numbers in all dumps. Different
 * notations of an offset are equal ("+0x00000808", "+808"). With `by_function`, the offset and the
 * text after it are ignored. */
uint32_t **text_numbers(
	const struct dump_sums *dumps, size_t count, bool by_function, struct arena *arena);

struct stack_classes {
	const struct dump_sums *dumps;
	const struct locations *locations;
	const struct names *names;
	const struct stackless_sizes *stackless_sizes;
	enum match_mode mode;
	bool by_symbol; /* names were looked up, so frames can be compared by name */
	/* indexed by rank: at least one frame in this build of the module has a name; NULL unless
	 * `by_symbol` */
	bool *has_names;
	uint32_t **texts; /* text numbers, indexed by dump and text; see text_numbers() */
	size_t *process; /* indexed by dump: the first dump of the same process */
	struct class_memo *memo; /* indexed by number in `sums.shared` */
	size_t memo_count;
	struct hash_index index;
	struct stack_class *list;
	size_t count, cap;
	struct class_list *lists;
	size_t list_count, list_cap;
	struct location *frames; /* frames of the current stack */
	size_t frame_cap;
	uint32_t depth;
	struct arena arena;
};

/* `locations` and `names` must outlive `classes`. */
void stack_classes_make(struct stack_classes *classes, const struct dump_sums *dumps,
	size_t dump_count, const struct locations *locations, struct names *names,
	const struct match_request *request);
void stack_classes_release(struct stack_classes *classes);

/* Frees the memory that is needed only to find classes. After that, no class can be looked up. */
void stack_classes_close(struct stack_classes *classes);

/* Frees the classes. After that, only stack_order() can be called. */
void stack_classes_forget(struct stack_classes *classes);

/* Finds the classes of all stacks of a dump, and stores them in `numbers`, which is indexed by
 * stack. */
void stack_classes_find(struct stack_classes *classes, size_t dump, uint32_t *numbers);

/* Returns the class of a dump's blocks that have no stack. */
uint32_t stack_class_none(struct stack_classes *classes, size_t dump);

/* Returns the class for blocks whose stack belongs to one of the classes in `all[0..count)`. Sorts
 * the array. If all elements are equal, returns that class. */
uint32_t stack_class_one_of(struct stack_classes *classes, uint32_t *all, size_t count);

/* Compares two classes. The order of classes is total, and depends only on the content of their
 * stacks. */
int stack_class_order(const struct stack_classes *classes, uint32_t a, uint32_t b);

/* Returns the number of equal frames at the inner ends of two classes, but at most `most`. May
 * return less to avoid an expensive comparison. */
uint32_t stack_class_common(
	const struct stack_classes *classes, uint32_t a, uint32_t b, uint32_t most);

/* Returns a sort key for classes whose first `common` innermost frames are equal. If two keys
 * differ, they sort like their classes. */
uint64_t stack_class_key(const struct stack_classes *classes, uint32_t number, uint32_t common);

/* Compares the frames of two stacks in the order of classes. */
int stack_order(const struct stack_classes *classes, size_t dump_a, const struct stack *a,
	size_t dump_b, const struct stack *b);

/* For a frame that has a name in a rebuilt module, returns a location that represents the whole
 * function. The unit of such a location is above UINT32_MAX. For any other frame, returns the
 * location by which the frame is compared. If `by_symbol` is set, the stack must consist of
 * addresses. */
struct location stack_class_function(const struct stack_classes *classes, size_t dump,
	const struct stack *stack, uint32_t index);

/* Pairs of classes that are the same stack in different builds of a module (class_pairs.c). */

struct class_pairs {
	const struct stack_classes *classes;
	uint32_t *builds; /* indexed by dump; NULL: nothing was rebuilt */
	uint32_t build_count;
	/* indexed by class; bit N is set if a dump of build N contains the class */
	uint64_t *masks;
	size_t mask_count;
};

void class_pairs_init(struct class_pairs *pairs, const struct stack_classes *classes, size_t dumps);
void class_pairs_release(struct class_pairs *pairs);

/* Adds the classes that stack_classes_find() returned for a dump. */
void class_pairs_add(
	struct class_pairs *pairs, size_t dump, const uint32_t *numbers, size_t stack_count);

/* Returns an array, indexed by class, with the class that each class must be replaced with. Returns
 * NULL if no class must be replaced. The caller frees the array. Must be called before
 * stack_classes_close(). */
uint32_t *class_pairs_find(const struct class_pairs *pairs);

/* Compares ids as hexadecimal numbers of any length. */
int stack_id_order(const char *a, const char *b);

/* Labels each row of a comparison: stores the row's ids, the stack to show, and the dumps that
 * provide its frames. `rows[dump][cell]` is the row of a cell, or ROW_NONE. */
void rows_label(
	struct comparison *comparison, const struct stack_classes *classes, uint32_t *const *rows);

#endif
