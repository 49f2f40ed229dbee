/* Groups of heap blocks without a stack: blocks of one heap with the same size and first word. */
#ifndef CORE_DUMP_STACKLESS_NOTE_H
#define CORE_DUMP_STACKLESS_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump/kv.h"
#include "core/dump/model.h"

#define STACKLESS_TEXT_MAX 7 /* characters of a text */
#define STACKLESS_START_BYTES (2 * STACKLESS_TEXT_MAX) /* bytes that decide a block's word */

/* Returns the ASCII text at the start of a block, as in struct stackless_group. `step` is the number
 * of bytes per character, 1 or 2. Returns 0 if these bytes are not text: fewer than 4 characters, or
 * a text that does not end with a zero, at the end of the block, or after STACKLESS_TEXT_MAX
 * characters. */
uint64_t stackless_text(const unsigned char *bytes, size_t len, unsigned step);

/* Stores the characters of a text and a terminator in `text`. */
void stackless_text_get(uint64_t word, char text[STACKLESS_TEXT_MAX + 1]);

/* Returns the greatest power of two that is not above `bytes`, which is not 0. */
static inline uint64_t stackless_power(uint64_t bytes)
{
	uint64_t power = 1;

	while (power <= bytes / 2)
		power *= 2;
	return power;
}

/* Parses a note of kind "stackless". Sets `group->heap` to 0 and `*heap` to the heap's address.
 * Returns 0 or -ERR_BAD_LINE. */
int stackless_note_read(const struct kv *kv, struct stackless_group *group, uint64_t *heap);

#endif
