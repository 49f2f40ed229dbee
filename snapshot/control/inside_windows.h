/*
 * Whether a held thread is in the tracer: in a hook, or in what a hook has called.
 */
#ifndef SNAPSHOT_CONTROL_INSIDE_WINDOWS_H
#define SNAPSHOT_CONTROL_INSIDE_WINDOWS_H

#include "snapshot/control/threads_windows.h"
#include "snapshot/control/tracee_windows.h"

/*
 * True when the thread stands in the tracer's DLL or in a trampoline, or when its stack holds an
 * address in them that may be one it returns to. What an earlier call has left on the stack can look
 * like that: it is told apart by going through the stack frame by frame, as far as that leads.
 * True also when it cannot be found out.
 */
bool inside_tracer(const struct tracee *tracee, const struct held_thread *thread);

#endif
