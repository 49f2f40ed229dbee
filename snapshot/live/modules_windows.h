/* The loaded modules of a live process. */
#ifndef SNAPSHOT_MODULES_WINDOWS_H
#define SNAPSHOT_MODULES_WINDOWS_H

#include <windows.h>

#include "snapshot/target/target.h"

/* As target_ops.modules: of a 32-bit process those of both kinds, each once. */
int modules_list(struct target *target, HANDLE process, struct snapshot *snapshot, struct err *err);

#endif
