/* The committed memory of a live process. */
#ifndef SNAPSHOT_REGIONS_WINDOWS_H
#define SNAPSHOT_REGIONS_WINDOWS_H

#include <windows.h>

#include "snapshot/target/target.h"

/* As target_ops.region; of a large region it may give the part from near addr on. */
int region_query(HANDLE process, uint64_t addr, struct target_region *region);

/*
 * The same, and exactly len bytes at addr, of a process that is read by its clone: what it shares with
 * others (mapped memory) may not be in the clone; that is looked at in the process, and may change
 * meanwhile. Of a process without a clone the two are one.
 */
int region_query_either(HANDLE clone, HANDLE process, uint64_t addr, struct target_region *region);
int memory_read_either(HANDLE clone, HANDLE process, uint64_t addr, void *bytes, size_t len);

#endif
