/*
 * A thing that an interrupt must clean up before the process ends, such as a file to remove or a
 * process to resume.
 *
 * The owner calls interrupt_cleanup_set() and interrupt_cleanup_clear(). The handler of
 * os_on_interrupt() calls interrupt_cleanup_get(), uses the thing, and then calls
 * interrupt_cleanup_done(). The handler may run on any thread or inside a signal handler. While a
 * handler is using the thing, interrupt_cleanup_clear() waits, usually until the process ends.
 * After that function has returned, the owner may free the thing. There may be one owner and any
 * number of handlers.
 */
#ifndef CORE_IO_INTERRUPT_H
#define CORE_IO_INTERRUPT_H

#include <stdatomic.h>

#include "core/base/os.h"

struct interrupt_cleanup {
	_Atomic(void *) thing;
	atomic_uint handlers; /* number of handlers that may be using the thing */
};

static inline void interrupt_cleanup_set(struct interrupt_cleanup *cleanup, void *thing)
{
	atomic_store(&cleanup->thing, thing);
}

static inline void interrupt_cleanup_clear(struct interrupt_cleanup *cleanup)
{
	atomic_store(&cleanup->thing, NULL);
	while (atomic_load(&cleanup->handlers))
		os_sleep_ms(1);
}

/* Returns the thing, or NULL. In both cases the caller must then call interrupt_cleanup_done(); the
 * thing stays valid until that call. */
static inline void *interrupt_cleanup_get(struct interrupt_cleanup *cleanup)
{
	atomic_fetch_add(&cleanup->handlers, 1);
	return atomic_load(&cleanup->thing);
}

static inline void interrupt_cleanup_done(struct interrupt_cleanup *cleanup)
{
	atomic_fetch_sub(&cleanup->handlers, 1);
}

#endif
