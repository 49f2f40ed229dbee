/*
 * The system's part of snapshot/live/hold.h: process snapshots of Windows 8.1 and later, suspension
 * elsewhere.
 */
#ifndef SNAPSHOT_CLONE_WINDOWS_H
#define SNAPSHOT_CLONE_WINDOWS_H

#include "snapshot/live/nt_windows.h"

#include "snapshot/live/hold.h"

/* Process handles should have it besides, for clones. */
#define CLONE_RIGHTS PROCESS_CREATE_PROCESS

/* capture() to resume(), for process handles; capture and clone are NULL where there are none.
 * arm() and disarm() are the caller's to add. */
struct hold_calls clone_calls(void);

#endif
