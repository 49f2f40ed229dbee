/* Names of files by pattern: what a shell does where there is none that does it. */
#ifndef DIFF_FILE_GLOB_H
#define DIFF_FILE_GLOB_H

#include <stdbool.h>

/* True when '*' (any text) or '?' (one character) is in text. */
bool file_glob_is(const char *text);

/* True when all of name is as the pattern says; letters of ASCII are alike in either case, as
 * in names of files on Windows. A name that starts with a dot is hidden from patterns that do not. Takes time in proportion to the
 * product of both lengths at worst. */
bool file_glob_match(const char *pattern, const char *name);

#endif
