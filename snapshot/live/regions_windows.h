/* The committed memory of a live process. */
#ifndef SNAPSHOT_REGIONS_WINDOWS_H
#define SNAPSHOT_REGIONS_WINDOWS_H

#include <windows.h>

#include "snapshot/target/target.h"

/* As target_ops.region; of a large region it may give the part from near addr on. */
int region_query(HANDLE process, uint64_t addr, struct target_region *region);

#endif
