/*
 * Groups of blocks without a stack, in hdiff.
 *
 * A group of a dump becomes a stack with the id "0", so everything that works on stacks works on
 * groups. Its first frame is a label for the size of the blocks. Its second frame, if any, is a
 * label for the text at their start or, as if it were a return address, the address in a module to
 * which their first word points, plus 1. Labels are numbers that no address can be.
 */
#ifndef DIFF_READ_STACKLESS_H
#define DIFF_READ_STACKLESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/stackless_note.h"
#include "diff/read/dump_sums.h"

#define STACKLESS_ID "0"

/* Bits 56 to 63 of a label. Addresses of processes have 00 or FF there. */
enum { STACKLESS_LABEL_SIZE = 0x5a, STACKLESS_LABEL_TEXT, STACKLESS_LABEL_WIDE };

/* Fills the frames of a group, and returns their number. */
uint32_t stackless_frames(const struct stackless_group *group, uint64_t frames[2]);

/* Returns true if a stack represents a group. */
static inline bool stackless_is(const struct stack *stack)
{
	return stack->frame_count && !stack->is_named &&
	       stack_frame(stack, 0) >> 56 == STACKLESS_LABEL_SIZE &&
	       !strcmp(stack->id, STACKLESS_ID);
}

/* Returns true if a frame of such a stack is a label. */
static inline bool stackless_is_label(uint64_t frame)
{
	return frame >> 56 >= STACKLESS_LABEL_SIZE && frame >> 56 <= STACKLESS_LABEL_WIDE;
}

/* Returns true, and the size of each block, if a stack represents a group of one size. */
bool stackless_size(const struct stack *stack, uint64_t *bytes);

/* Returns true if a label is for several sizes. */
bool stackless_is_range(uint64_t label);

#define STACKLESS_NAME_BYTES 64

/* Formats a label: "(no stack) 64 B". */
void stackless_name(uint64_t label, char name[STACKLESS_NAME_BYTES]);

/* Sizes of groups without a word that have rows of their own. Blocks of other sizes are in rows for
 * powers of two. */
#define STACKLESS_SIZES 8
struct stackless_sizes {
	uint64_t exact[STACKLESS_SIZES];
	size_t count;
	bool has_groups; /* some dump has groups */
};

/* Chooses the sizes whose bytes differ most between the dumps. Ignores sizes of only a few blocks. */
void stackless_sizes_choose(
	struct stackless_sizes *sizes, const struct dump_sums *dumps, size_t dump_count);

/* Returns the label by which a group without a word is compared and shown. */
uint64_t stackless_label(const struct stackless_sizes *sizes, uint64_t label);

/* Returns the frame by which a stack is compared and shown: the label of a size that has no row of
 * its own becomes the label of a power of two. Inline, because it is called for every frame. */
static inline uint64_t stackless_frame(
	const struct stackless_sizes *sizes, const struct stack *stack, uint32_t index)
{
	const uint64_t frame = stack_frame(stack, index);

	return sizes->has_groups && stack->frame_count == 1 && stackless_is(stack) ?
		       stackless_label(sizes, frame) :
		       frame;
}

#endif
