/* Names of source files without the part of their path that everybody here knows. */
#ifndef SYMBOLIZE_STRIP_PATH_H
#define SYMBOLIZE_STRIP_PATH_H

#include <stddef.h>

/* What is left of file without the longest of the prefixes that it begins with, and without the slash
 * behind that; file when it begins with none, or nothing would be left. A prefix ends where a component of
 * the path does. Both slashes are the same, and in paths with a drive or a backslash upper and lower case
 * too. */
const char *strip_path(const char *file, const char *const *prefixes, size_t count);

#endif
