/* Sums of stacks whose frames are texts. */
#ifndef DIFF_READ_TEXT_SUMS_H
#define DIFF_READ_TEXT_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/dump_sums.h"

/*
 * Fills sums with stacks from a file that is not a dump: a printed comparison, folded stacks, a
 * profile. frame_parse() can read each frame's text. All blocks are in one heap. */
struct text_sums {
	struct dump_sums *sums;
	struct table texts; /* maps a text to its number */
	struct u64map cells; /* maps a stack to its cell */
	uint32_t *hashes; /* of the texts, indexed by number */
	size_t text_cap, hash_cap, cell_cap;
};

/* Initialises `texts` and the sums, which text_sums_end() completes and the caller releases. */
void text_sums_begin(struct text_sums *texts, struct dump_sums *sums, const char *path);
void text_sums_end(struct text_sums *texts);

/* Returns the number of a frame's text. Replaces control characters with blanks. */
uint64_t text_sums_frame(struct text_sums *texts, const char *text, size_t len);

/* Adds blocks to a stack, which has at most DUMP_FRAMES_MAX frames. If `id` is NULL, an id is
 * computed from the frames' texts. text_sums_add_stackless() adds blocks without a stack. Both
 * return 0, or -1 if the total would overflow. */
int text_sums_add(struct text_sums *texts, const char *id, const uint64_t *frames, size_t count,
	const struct block_totals *blocks);
int text_sums_add_stackless(struct text_sums *texts, const struct block_totals *blocks);

#endif
