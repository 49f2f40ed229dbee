/* Matching texts: regular expressions, '*', spellings of modules, lists in files. */
#ifndef DIFF_QUERY_PATTERN_H
#define DIFF_QUERY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/query/naming.h"

/*
 * Lists of regular expressions (PCRE2) that are matched against many texts.
 *
 * Matching is limited in time, for each text and for all texts together. A match that takes too
 * long is an error and never counts as "no match". Texts need not be valid UTF-8. */

struct patterns {
	const char *option; /* option that the patterns belong to, for errors */
	struct pattern *items;
	size_t count, cap;
	struct table known; /* caches results: maps a text to true if any pattern matches it */
};

/* Extensions of the files of modules. */
#define MODULE_EXTENSIONS 4
extern const char *const module_extensions[MODULE_EXTENSIONS];

/* Removes the extensions of modules from a pattern, in place: "app.exe!f" and "app\\.exe!f" become
 * "app!f", which is the form of a frame's name. */
void pattern_drop_extensions(char *pattern);

/* Initializes an empty list. `option`, and the texts of patterns that are added, must outlive
 * `patterns`. */
void patterns_init(struct patterns *patterns, const char *option);
void patterns_release(struct patterns *patterns);

/* Adds a pattern. Returns 0, or -ERR_USAGE with the option and the offset of the syntax error. */
int patterns_add(struct patterns *patterns, const char *text, struct err *err);

/* Returns 1 if any pattern matches somewhere in `text`, 0 if no pattern matches, or -ERR_USAGE if a
 * match takes too long. */
int patterns_match(const struct patterns *patterns, const char *text, struct err *err);

/* Returns the index of the first pattern at or after index `from` that never matched. If all of
 * them matched, returns the number of patterns. */
size_t patterns_unmatched(const struct patterns *patterns, size_t from);

/* Matches a text against the patterns that never matched. If a match takes too long, its result is
 * unknown, and the pattern counts as matched after that. */
void patterns_try(struct patterns *patterns, const char *text);

const char *pattern_text(const struct patterns *patterns, size_t index);

/* Matches like patterns_match(), with a cache for texts that occur repeatedly. */
int patterns_match_known(struct patterns *patterns, const char *text, struct err *err);

/* Stores PCRE2's version, such as "10.42". */
#define PATTERN_VERSION_BYTES 64
void pattern_version(char to[PATTERN_VERSION_BYTES]);

/* Spellings of module names. Case is ignored in module names, so dumps may spell the same name
 * differently. Reports use the spelling in the newest dump. If this dump spells a name in several
 * ways, reports use the spelling that is first in byte order. For a printed comparison, reports
 * also use the first spelling in byte order. */

struct spellings {
	struct table known; /* maps a name in lower case to its index in `items` */
	struct spelt *items;
	size_t count, cap;
	struct buf lower;
};

/* Collects the names of all modules in `naming`, which must outlive `spellings`. */
void spellings_make(struct spellings *spellings, const struct naming *naming);
void spellings_release(struct spellings *spellings);

/* Returns the spelling of a module's short name, or `module` itself if it is unknown. */
const char *spelling_find(struct spellings *spellings, const char *module);

/* Small text files written by users, one entry per line. Blank lines and lines that start with '#'
 * are ignored. */

/* Handles a line, which has no surrounding blanks. `place` is "file:line", for errors. Both strings
 * are valid only during the call. Returns 0, or a negative code after filling `err`. */
typedef int listfile_line(void *ctx, const char *text, const char *place, struct err *err);

/* Reads the file at `path`. Stops at the first error. Returns 0, -ERR_OPEN, -ERR_READ, -ERR_USAGE
 * for a line that is too long or not text, or the error that `take` returned. */
int pattern_list_read(const char *path, listfile_line *take, void *ctx, struct err *err);

#endif
