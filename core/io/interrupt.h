/*
 * A thing that an interrupt has to look after before the process ends: a file to remove, a process to let go.
 *
 * Whoever works with it sets it and clears it; the handler of os_on_interrupt() takes it and is done with it,
 * on any thread or inside a signal handler. From clear on the owner may free it: a handler that has taken it
 * is waited for then, which mostly means until the end of the process. One owner, any number of handlers.
 */
#ifndef CORE_IO_INTERRUPT_H
#define CORE_IO_INTERRUPT_H

#include <stdatomic.h>

#include "core/base/os.h"

struct interrupt_cleanup {
	_Atomic(void *) thing;
	atomic_uint handlers; /* that may be looking at it */
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

/* NULL: there is none. It is the same until interrupt_cleanup_done(), which has to follow. */
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
