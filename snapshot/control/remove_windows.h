/* What is left of a tracer that is off. */
#ifndef SNAPSHOT_CONTROL_REMOVE_WINDOWS_H
#define SNAPSHOT_CONTROL_REMOVE_WINDOWS_H

#include "snapshot/control/tracee_windows.h"

/* Gives back the memory of its tables when no thread is in the tracer any more, which is waited for some
 * seconds. No hook is in. Returns 0, also when there is none; -ERR_BUSY; errors of threads_hold(). */
int remove_rest(struct tracee *tracee, struct err *err);

#endif
