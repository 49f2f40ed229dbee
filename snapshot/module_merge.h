/*
 * The modules of a live process, listed before it was held and again after: what was loaded in
 * between may have frames in the snapshot.
 */
#ifndef SNAPSHOT_MODULE_MERGE_H
#define SNAPSHOT_MODULE_MERGE_H

#include "core/model.h"

/*
 * Adds to snapshot, whose modules are sorted, those of the later list that are not in it. Where another
 * module was before, that one stays: frames of it were recorded all the time, of its successor for a
 * moment at most. Sorts, and copies what it adds. Returns how many modules gave way to another, or
 * -ERR_NOMEM.
 */
int module_merge(struct snapshot *snapshot, const struct module *later, size_t count);

#endif
