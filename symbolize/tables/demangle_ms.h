/* Names as Microsoft's compiler makes them: demangle_posix.c or demangle_windows.c. */
#ifndef SYMBOLIZE_DEMANGLE_MS_H
#define SYMBOLIZE_DEMANGLE_MS_H

#include "core/buf.h"

/* name begins with "?". Adds what it means to text: 1; 0 and nothing when nobody here can say; or
 * -ERR_NOMEM. */
int demangle_ms(const char *name, struct buf *text);

#endif
