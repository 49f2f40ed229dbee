/* What Windows' page protections let a process do, for live targets and files alike. */
#ifndef SNAPSHOT_PROTECTION_H
#define SNAPSHOT_PROTECTION_H

#include <stdint.h>

/* PAGE_* as in MEMORY_BASIC_INFORMATION.Protect to enum target_access; a guard page has none. */
unsigned protection_access(uint32_t protect);

#endif
