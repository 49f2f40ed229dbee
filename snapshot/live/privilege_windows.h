/* What this process may do to others. */
#ifndef SNAPSHOT_PRIVILEGE_WINDOWS_H
#define SNAPSHOT_PRIVILEGE_WINDOWS_H

#include <stdbool.h>

/*
 * Uses the right to debug any process (SeDebugPrivilege), which elevated administrators have but have
 * to enable: without it the access list of a service decides, and that lets nobody suspend or clone
 * the service. From the first call on; false, and nothing changes, when it is not to be had. Programs
 * started later would have it enabled too, so whoever starts strangers' does not call this.
 */
bool privilege_debug(void);

#endif
