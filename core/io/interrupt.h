/*
 * Something that an interrupt has to clean up before the process ends: a file to remove, a process
 * to resume.
 *
 * The owner sets and clears it. The handler of os_on_interrupt() takes it and then calls done, on
 * any thread or inside a signal handler. Clearing waits for a handler that has taken it, which
 * mostly means until the process ends; after that the owner may free the thing. One owner, any
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

/* Returns the thing, or NULL. It stays valid until interrupt_cleanup_done(), which must follow. */
static inline void *interrupt_cleanup_take(struct interrupt_cleanup *cleanup)
{
	atomic_fetch_add(&cleanup->handlers, 1);
	return atomic_load(&cleanup->thing);
}

static inline void interrupt_cleanup_done(struct interrupt_cleanup *cleanup)
{
	atomic_fetch_sub(&cleanup->handlers, 1);
}

#endif
