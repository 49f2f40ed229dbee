/*
 * Getting the tracer into a process that was started and has not run yet.
 */
#ifndef SNAPSHOT_INJECT_H
#define SNAPSHOT_INJECT_H

#include "core/err.h"

/* Loads the tracer DLL that lies beside hsnap into process (a HANDLE with full access). Returns 0,
 * -ERR_INJECT or -ERR_NOMEM; name is for messages. */
int tracer_inject(void *process, const char *name, struct err *err);

#endif
