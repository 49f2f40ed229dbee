/*
 * Which process a minidump holds: what struct target says of itself.
 */
#ifndef SNAPSHOT_MINIDUMP_PROCESS_H
#define SNAPSHOT_MINIDUMP_PROCESS_H

#include "snapshot/minidump/minidump.h"

/* Fills target's bits, peb, host_peb, pid, times, image and os, as far as the file tells. */
void minidump_describe(struct minidump *dump, struct target *target);

/* Adds a warning for everything that is missing from the file, or odd in it. */
void minidump_warn(
	const struct minidump *dump, const struct target *target, struct snapshot *snapshot);

#endif
