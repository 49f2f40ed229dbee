/*
 * Where the tracer's tables lie: parts of one reservation in the target, so that no table ever has to
 * look for address space, and what is the tracer's own is known.
 */
#ifndef SNAPSHOT_CONTROL_PARTS_H
#define SNAPSHOT_CONTROL_PARTS_H

#include "snapshot/tracer/shared.h"

/* How many bytes to reserve for tables of which limit_bytes, 1 MiB to 64 GiB, may be committed; about
 * 2.8 times as many. */
uint64_t parts_reserve_bytes(uint64_t limit_bytes);

/*
 * Sets all that says where the tables are, empty, in a reservation of parts_reserve_bytes(limit_bytes)
 * at base, which is aligned to 64 KiB; and all that the tables count, to 0. Nothing is committed.
 */
void parts_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes);

#endif
