/* Groups: rows with something in common, each counted once in a group. */
#ifndef DIFF_QUERY_GROUP_H
#define DIFF_QUERY_GROUP_H

#include "core/base/memory.h"
#include "diff/query/view.h"

/*
 * Fills groups and group_count of a view that has its rows and knows what to group them by. Frames
 * without a name are "module!?"; a module is one whatever the case of its letters, see pattern.h;
 * rows without a stack, and those that may be of several, are groups of their own, with words in
 * brackets; by heap, or sort of memory, all rows are of theirs.
 */
void groups_make(struct view *view);

/* What a frame of a view that is grouped, or a heap, is counted to; replaces what name held. */
void group_name(const struct view *view, const struct frame *frame, struct buf *name);
void group_heap_name(const struct view *view, uint64_t heap, struct buf *name);

/* Whether it is heaps, and no frames, that rows are counted to. */
bool group_is_by_heap(enum view_group group);

#endif
