/*
 * Raw bytes of a target, taken while it is held, to be made sense of when it runs again: that takes
 * longer than copying does.
 *
 * The copy is a target itself, so whoever reads targets reads it: read() and view() give what was
 * copied, is_alive() asks the original, and there are no other operations. While the copy is open,
 * read() takes from the original what it lacks; from target_copy_seal() on that is not there.
 *
 *	target_copy_reserve()     before the target is held: memory that is there when it is needed
 *	target_copy_open()        it is held from now on; what was copied before is forgotten
 *	target_copy_take() ...    much at once
 *	read(&copy.target) ...    little by little, to find out what else to take
 *	target_copy_seal()        before it runs again
 */
#ifndef SNAPSHOT_TARGET_COPY_H
#define SNAPSHOT_TARGET_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/bulk_read.h"
#include "snapshot/target/target_ranges.h"

/* So often what was not taken before is read by itself: each time costs the target as much as a
 * hundred kilobytes at once. */
#define COPY_MISSES_MAX 1024

struct copy_room {
	unsigned char *bytes;
	size_t cap, used;
};

struct target_copy {
	struct target target;
	struct target *from; /* the caller's */
	uint64_t limit_bytes; /* of what is copied */
	uint64_t bytes; /* copied */
	struct target_piece *pieces; /* by address; none has a byte of another's */
	size_t count, cap;
	struct copy_room *rooms;
	size_t room_count, room_cap, room; /* room: where there is some */
	unsigned misses;
	bool is_short; /* what was read is not here for want of room, or it was asked for too often */
	bool is_sealed;
};

/* Nothing is copied yet: sealed and empty. */
void target_copy_init(struct target_copy *copy, struct target *from, uint64_t limit_bytes);
void target_copy_release(struct target_copy *copy);

/* Makes room for that many bytes in all, and has the system put memory behind it. 0 or -ERR_NOMEM. */
int target_copy_reserve(struct target_copy *copy, uint64_t bytes);

void target_copy_open(struct target_copy *copy);

/* Copies what is not yet copied of ranges, which get settled; what cannot be read is left out. More
 * room is made where it lacks. 0, or -ERR_NOMEM: no memory, or more than the limit. */
int target_copy_take(struct target_copy *copy, struct target_ranges *ranges);

void target_copy_seal(struct target_copy *copy);

#endif
