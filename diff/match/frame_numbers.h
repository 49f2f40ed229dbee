/*
 * Numbers for the frames of stacks that have no addresses but text: equal for texts that say the
 * same, in whatever dump.
 */
#ifndef DIFF_FRAME_NUMBERS_H
#define DIFF_FRAME_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "diff/read/sum.h"

/*
 * For each dump an array, in the order of its texts, of numbers from 1 that follow the text, in
 * arena. However an offset is spelt does not count ("+0x00000808", "+808"); with by_function neither
 * it nor what is behind it. NULL: out of memory.
 */
uint32_t **frame_numbers(
	const struct sums *dumps, size_t count, bool by_function, struct arena *arena);

#endif
