/*
 * What there is to say of a printed comparison while it is read: told to whoever asked for it, and
 * kept for reports.
 */
#ifndef DIFF_COMPARISON_WORDS_H
#define DIFF_COMPARISON_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "diff/match/match.h"
#include "diff/read/read_comparison.h"

struct reader_voice {
	struct comparison *to; /* keeps what is said */
	const char *name; /* of the file */
	const struct read_words *words;
	struct err *err;
	size_t skips;
};

/* A sentence on what the file lacks. 0, -ERR_NOMEM or what the words' own function returned. */
int voice_warn(struct reader_voice *voice, const char *text);

/* A line or row that is left out. 0; as above; -ERR_BAD_LINE when nobody is told of such, or when
 * there were too many. */
int voice_skip(struct reader_voice *voice, uint64_t line, const char *why);

#endif
