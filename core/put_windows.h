/* Windows only, for os_windows.c and put_windows.c: whether a file goes when its handle is closed, in whatever
 * way this process ends. The handle has the right to delete. */
#ifndef CORE_PUT_WINDOWS_H
#define CORE_PUT_WINDOWS_H

#include <stdbool.h>

void set_temporary(void *handle, bool is_temporary);

#endif
