/* What a file is called when it is packed. */
#ifndef SNAPSHOT_PACKED_NAME_H
#define SNAPSHOT_PACKED_NAME_H

#include "core/buf.h"

/* Adds path to name, with ".gz" behind it unless it ends so, in letters of either case. A device and
 * standard output ("-") keep their names. 0 or -ERR_NOMEM. */
int packed_name_add(struct buf *name, const char *path);

#endif
