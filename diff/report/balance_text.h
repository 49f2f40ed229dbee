/* The balance of a process as lines of text. */
#ifndef DIFF_REPORT_BALANCE_TEXT_H
#define DIFF_REPORT_BALANCE_TEXT_H

#include "core/base/memory.h"
#include "diff/query/view.h"

/* Appends at most six lines, each with a newline. Appends nothing if the balance is unknown or has
 * not changed. The lines contain no control characters. */
void balance_text(struct buf *words, const struct view *view);

#endif
