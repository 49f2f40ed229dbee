/*
 * Regular expressions (PCRE2), a list of them held against many texts.
 *
 * No text can make a match take forever: one that takes too long is an error, never a silent no.
 * Texts need not be valid UTF-8.
 */
#ifndef DIFF_PATTERN_H
#define DIFF_PATTERN_H

#include <stddef.h>

#include "core/err.h"
#include "core/table.h"

struct patterns {
	const char *option; /* that they are given by: errors name it */
	struct pattern *items;
	size_t count, cap;
	struct table known; /* text -> whether any matches */
};

/* Patterns keep what they were made from: texts must outlive them, as option must. */
void patterns_init(struct patterns *patterns, const char *option);
void patterns_release(struct patterns *patterns);

/* Adds one: 0; -ERR_USAGE, with the option and the place in it that is wrong; or -ERR_NOMEM. */
int patterns_add(struct patterns *patterns, const char *text, struct err *err);

/* 1 when any of the patterns matches somewhere in text, else 0; -ERR_USAGE when one takes too long
 * to tell, -ERR_NOMEM. */
int patterns_match(const struct patterns *patterns, const char *text, struct err *err);

/* The index of the first pattern from this one on that never matched, or count. */
size_t patterns_unmatched(const struct patterns *patterns, size_t from);

/* Holds those that never matched against one more text. One that takes too long for it is from now
 * on taken for one that matched: nothing can be said of it. */
void patterns_try(struct patterns *patterns, const char *text);

/* What a pattern was made from. */
const char *pattern_text(const struct patterns *patterns, size_t index);

/* As patterns_match(), and remembers it: for texts that come again and again. */
int patterns_match_known(struct patterns *patterns, const char *text, struct err *err);

#endif
