/* Windows only: UTF-8 and UTF-16, error texts, versions. */
#ifndef CORE_BASE_OS_WINDOWS_H
#define CORE_BASE_OS_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

/* Windows only: UTF-8 to UTF-16 and back, and error texts. The caller frees what is returned; NULL: out of memory
 * or, for wide_from_utf8(), text that is not UTF-8. */

wchar_t *wide_from_utf8(const char *text);
char *wide_to_utf8(const wchar_t *wide);

/* The same for a path, to hand it to the system: one that is too long for the system's usual form, as it
 * is or from the current folder on, is made one of the form that has no limit ("\\?\C:\..."). The second
 * takes path, which may be NULL, over. */
wchar_t *wide_path(const char *path);
wchar_t *wide_path_long(wchar_t *path);

/* The text of a Windows error code. Returns text. */
const char *windows_error(unsigned long code, char *text, size_t size);

/* The words of a command line, its program first, as UTF-8; *argv is never freed. */
void windows_arguments(const wchar_t *line, int *argc, char ***argv);

/* Loads a DLL of the system: a HMODULE, or NULL. From then on what it and others load by name is the system's, too, whatever
 * lies beside the program. */
void *windows_library(const wchar_t *name);

/* The version of the Wine that this runs on, or NULL: it is Windows. */
const char *os_wine_version(void);

/* The build of the Windows that this runs on; 0: unknown, or Wine. */
unsigned windows_build(void);

/* Returns true if a HANDLE is a console's. */
bool console_is(void *handle);

/* Writes UTF-8 to a console (console_windows.c). A character that is cut is completed by the next call. Returns false if
 * that failed. */
bool console_write(void *console, const char *bytes, size_t len);

/* Windows only, for os_windows.c and path_windows.c: whether a file goes when its handle is closed, in whatever
 * way this process ends. The handle has the right to delete. */

bool path_set_temporary(void *handle, bool is_temporary);

#endif
