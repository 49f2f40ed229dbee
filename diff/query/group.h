/* Groups: rows with a common function, file, module or heap. A row counts once in each of its
 * groups. */
#ifndef DIFF_QUERY_GROUP_H
#define DIFF_QUERY_GROUP_H

#include "core/base/memory.h"
#include "diff/query/view.h"

/*
 * Computes `groups` and `group_count` of a view from its `rows` and `group`. Frames without a name
 * belong to "module!?". The case of module names is ignored, see pattern.h. Rows without a stack
 * and rows with several candidates form their own groups, with names in brackets. In a view grouped
 * by heap or memory, every row belongs to the group of its heap. */
void groups_make(struct view *view);

/* Store the name of a group in `name`, replacing its content. group_name() finds the group of a
 * frame, group_row_name() the group of a row by its heap or thread. */
void group_name(const struct view *view, const struct frame *frame, struct buf *name);
void group_row_name(const struct view *view, const struct row *row, struct buf *name);

/* Stores how a thread is called: "NAME (ID)", or "thread ID". */
void group_thread_name(const struct view *view, uint64_t id, struct buf *name);

bool group_is_by_heap(enum view_group group);
/* Returns true if the frames of a row do not matter: rows are grouped by heap or thread. */
bool group_is_of_row(enum view_group group);

#endif
