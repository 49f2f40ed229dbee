/* Windows only: UTF-8 and UTF-16, paths, error messages, versions and consoles. */
#ifndef CORE_BASE_OS_WINDOWS_H
#define CORE_BASE_OS_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* Convert between UTF-8 and UTF-16. The caller frees the result, which is NULL for invalid text. */

wchar_t *wide_from_utf8(const char *text);
char *wide_to_utf8(const wchar_t *wide);

/* Convert a path for a system call. Windows limits the length of a full path in its usual form. If
 * the full path is longer, the result has the form without a length limit ("\\?\C:\...").
 * wide_path_long() takes ownership of `path`, which may be NULL. */
wchar_t *wide_path(const char *path);
wchar_t *wide_path_long(wchar_t *path);

/* Writes the message of a Windows error code to `text`. Returns `text`. */
const char *windows_error(unsigned long code, char *text, size_t size);

/* Splits a command line into UTF-8 arguments, starting with the program. *argv is never freed. */
void windows_arguments(const wchar_t *line, int *argc, char ***argv);

/* Loads a system DLL. Returns an HMODULE, or NULL. After this call, all DLLs that are loaded by
 * name come from the system folder, even if the program's folder contains a DLL of that name. */
void *windows_library(const wchar_t *name);

/* Returns Wine's version, or NULL on Windows. */
const char *os_wine_version(void);

/* Returns the build number of Windows; 0 if it is unknown, or on Wine. */
unsigned windows_build(void);

bool console_is(void *handle);

/* Writes UTF-8 to a console. An incomplete character at the end is written when the next call
 * completes it. Returns false on failure. */
bool console_write(void *console, const char *bytes, size_t len);

/* Marks a file for deletion, or removes the mark if `is_temporary` is false. Windows deletes a
 * marked file when its handle is closed, which also happens when the process is terminated. The
 * handle needs the DELETE access right. */

bool path_set_temporary(void *handle, bool is_temporary);

#endif
