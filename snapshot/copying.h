/*
 * Taking what a snapshot reads of a running process as raw bytes, so that it is held for as long as
 * copying them takes, and walked when it runs again.
 *
 * Where lists tell what there will be to read, that is looked up before the process is held, and room
 * is made for it. While it is held that much is copied at once, the lists are followed once more in the
 * copy, and what has changed meanwhile is copied too. Other processes are walked while they are held.
 */
#ifndef SNAPSHOT_COPYING_H
#define SNAPSHOT_COPYING_H

#include <stdbool.h>

#include "snapshot/captured.h"
#include "snapshot/target/target_copy.h"

struct copying {
	struct target_copy copy;
	struct memory memory; /* of the copy */
	struct target_ranges wanted; /* what was read last, or will be */
	bool is_on;
	const char *why_not; /* a literal; NULL: it cannot be done for such a process, or is on */
};

/* At most limit_bytes are copied. 0 or -ERR_NOMEM. */
int copying_init(struct copying *copying, struct target *target, uint64_t limit_bytes);
void copying_release(struct copying *copying);

/* Looks at the process, which runs, and makes room: is_on when it can be copied. captured says what
 * is to be read. */
void copying_look(struct copying *copying, const struct captured *captured);

/* Copies, the process being held. False: it has to be walked now, and is_on is so no more. */
bool copying_take(struct copying *copying, const struct captured *captured);

/* No sense could be made of the copy: the process has to be held again and walked. Returns true. */
bool copying_failed(struct copying *copying);

/* How much may be copied on this machine: some, but not so much that it gets slow by that. */
uint64_t copying_limit(void);

#endif
