/*
 * One hsnap at a time changes a process: attach, detach, and run while the program starts. Two of them would
 * each lay tables and hooks over those of the other, and what the process had recorded would be lost.
 */
#ifndef SNAPSHOT_LIVE_TURN_WINDOWS_H
#define SNAPSHOT_LIVE_TURN_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

/* {0}: none is taken. */
struct turn {
	void *mutex;
};

/*
 * Waits for the turn to change the process, patience_ms at most. It is the calling thread's, which gives it
 * back; when that ends it goes on to the next one. False: somebody else has it still. Also true, and without
 * a turn, where the system makes no such object.
 */
bool turn_take(struct turn *turn, uint32_t pid, uint32_t patience_ms);

/* Also of a turn that is not taken. */
void turn_give_back(struct turn *turn);

#endif
