/* Windows only: UTF-8 to UTF-16 and back, and error texts. The caller frees what is returned; NULL: out of memory
 * or, for wide_from_utf8(), text that is not UTF-8. */
#ifndef CORE_UTF_WINDOWS_H
#define CORE_UTF_WINDOWS_H

#include <stddef.h>
#include <wchar.h>

wchar_t *wide_from_utf8(const char *text);
char *utf8_from_wide(const wchar_t *wide);

/* The text of a Windows error code. Returns text. */
const char *windows_error(unsigned long code, char *text, size_t size);

#endif
