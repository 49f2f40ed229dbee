/*
 * Modules that were unloaded, in that order, so that frames in them keep their names.
 */
#ifndef SNAPSHOT_TRACER_UNLOADS_H
#define SNAPSHOT_TRACER_UNLOADS_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/*
 * Adds the unload of a module from [base, end), once it is certain that no new stack goes through it.
 * module is a complete record (its header, path and pdb behind one another; record_bytes in all);
 * it is copied, equal ones are kept once. Any thread.
 *
 * False when there is no room, and then for all that come later: the unload is counted as dropped, and
 * stacks through it will be told to be through an unknown module, never through a wrong one.
 * When only the record finds no room, the unload is added with TRACER_NO_MODULE.
 */
bool unloads_add(
	struct tracer_area *area, uint64_t base, uint64_t end, const struct tracer_module *module);

/* Whether a frame lies in one of the modules that were unloaded after so many other unloads. */
bool unloads_hit(
	const struct tracer_area *area, uint64_t from, const uint64_t *frames, uint32_t depth);

#endif
