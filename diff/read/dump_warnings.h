/* What the dumps of a series lack: most often all of them the same, which is told once. */
#ifndef DIFF_DUMP_WARNINGS_H
#define DIFF_DUMP_WARNINGS_H

#include <stddef.h>

#include "core/buf.h"
#include "diff/read/sum.h"

struct dump_warning {
	const struct sums *first; /* that has it */
	size_t number; /* among its warnings; WARNINGS_MAX: of it no more than how many it is, */
	size_t more; /* in all dumps together */
	size_t dump_count; /* that have it */
};

struct dump_warnings {
	struct dump_warning *items; /* in the order of the dumps */
	size_t count, cap;
};

/* Gathers those of dumps[0..count), which it borrows, each text once. Release it in any case. 0 or
 * -ERR_NOMEM. */
int dump_warnings_gather(struct dump_warnings *warnings, const struct sums *dumps, size_t count);
void dump_warnings_release(struct dump_warnings *warnings);

/* Appends its text, and of how many dumps it is when it is not of the first alone. 0 or -ERR_NOMEM. */
int dump_warning_words(struct buf *words, const struct dump_warning *warning);

#endif
