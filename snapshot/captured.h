/*
 * What was read of a target while it was held, before it becomes a snapshot: join.h gives each block
 * its stack, describe.h says whose it is and what is missing.
 */
#ifndef SNAPSHOT_CAPTURED_H
#define SNAPSHOT_CAPTURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "snapshot/heap/heap.h"
#include "snapshot/stacks/os_stacks.h"
#include "snapshot/stacks/tracer_table.h"
#include "snapshot/stacks/ust.h"

struct captured {
	struct walk walk;
	struct err heaps_err; /* of a file: why its heaps could not be walked; else its code is 0 */
	bool has_tracer;
	bool is_detached; /* a tracer is loaded, and off */
	uint64_t area_addr; /* of the tracer */
	struct err tracer_err; /* of a file: why its tracer could not be read */
	struct tracer_copy tracer;
	bool wants_ust, is_flagged; /* the process was started with +ust */
	struct ust *ust;
	struct os_stacks *os; /* NULL unless they were asked for */
};

/* True when stacks come from the system's database, or were to. */
static inline bool captured_has_ust(const struct captured *captured)
{
	return captured->wants_ust && (captured->is_flagged || ust_record_count(captured->ust));
}

#endif
