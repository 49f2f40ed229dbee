/* Texts that match: regular expressions, '*', spellings of modules, lists in files. */
#ifndef DIFF_QUERY_PATTERN_H
#define DIFF_QUERY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/query/naming.h"

/*
 * Regular expressions (PCRE2), a list of them held against many texts.
 *
 * No text can make a match take forever, nor can many: one that takes too long is an error, never a silent no.
 * Texts need not be valid UTF-8.
 */

struct patterns {
	const char *option; /* that they are given by: errors name it */
	struct pattern *items;
	size_t count, cap;
	struct table known; /* text -> whether any matches */
};

/* Patterns keep what they were made from: texts must outlive them, as option must. */
void patterns_init(struct patterns *patterns, const char *option);
void patterns_release(struct patterns *patterns);

/* Adds one: 0, or -ERR_USAGE with the option and the place in it that is wrong. */
int patterns_add(struct patterns *patterns, const char *text, struct err *err);

/* 1 when any of the patterns matches somewhere in text, else 0; -ERR_USAGE when one takes too long
 * to tell. */
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

/* PCRE2's version, as "10.42". */
#define PATTERN_VERSION_BYTES 64
void pattern_version(char to[PATTERN_VERSION_BYTES]);

/*
 * How a module's name is spelt when it is to be one thing: upper and lower case are alike in it, and
 * dumps may differ in them. The newest dump's spelling is the one; of several in a dump, or in a
 * comparison that was read, the first by bytes.
 */

struct spellings {
	struct table known; /* name in lower case -> index into items */
	struct spelt *items;
	size_t count, cap;
	struct buf lower;
};

/* Takes the names of all modules that the naming knows of, which must outlive it. */
void spellings_make(struct spellings *spellings, const struct naming *naming);
void spellings_release(struct spellings *spellings);

/* That of a module's short name, which is itself when it is not known. */
const char *spelling_find(struct spellings *spellings, const char *module);

/* Small text files that users write, one thing on a line: blank lines and lines that start with
 * '#' say nothing. */

/* What to do with a line, without blanks at either end: returns 0 or a negative code, and fills
 * err. place is "file:line", for that; both texts are valid during the call only. */
typedef int listfile_line(void *ctx, const char *text, const char *place, struct err *err);

/* Reads the file at path to its end or to the first failure: 0, -ERR_OPEN, -ERR_READ,
 * -ERR_USAGE for a line that is no text or too long, or what take returned. */
int pattern_list_read(const char *path, listfile_line *take, void *ctx, struct err *err);

#endif
