/* What a program is called, as a part of a file's name. */
#ifndef SNAPSHOT_PROGRAM_NAME_H
#define SNAPSHOT_PROGRAM_NAME_H

#include <stdbool.h>

#include "core/buf.h"

/* Adds what the program whose image is the file program, in whatever folder, is called, without ".exe".
 * program may come from a file that anybody wrote: what is added is one part of a path on every system,
 * never empty, never "..", no name of a device, and text. 0 or -ERR_NOMEM. */
int program_name_add(struct buf *to, const char *program);

/* Whether Windows makes a device of a file's name, in every folder and whatever stands behind a dot. */
bool program_name_is_device(const char *name);

#endif
