/* Foreign text made safe for a report. */
#ifndef DIFF_REPORT_CLEAN_H
#define DIFF_REPORT_CLEAN_H

#include <stdbool.h>

#include "core/base/memory.h"
#include "core/io/out.h"
#include "diff/read/frame.h"

/* Appends text as UTF-8. Invalid bytes become U+FFFD, and control characters become '?'. TAB, CR
 * and LF are unchanged unless `one_line`. */
void clean_text(struct buf *buf, const char *text, bool one_line);

/* Appends "module!function", "module+OFFSET" or "ADDRESS", sanitized. */
void clean_frame(struct buf *buf, const struct frame *frame, bool one_line);

/* Shortens the name at the end of `words`, if `words` needs more than `columns` columns. The name
 * is a sanitized "module!function" and begins at index `from`. The result may still be too long. */
void report_shorten(struct buf *words, size_t from, unsigned columns);

/* Writes as much of a sanitized text as fits in `columns`. Returns the number of columns used. */
unsigned report_write_cut(struct out *out, const char *text, unsigned columns);

/* Write foreign text for XML and HTML, also inside attributes: xml_text() on one line, xml_lines()
 * on several lines. Both escape markup, and replace control characters and characters that XML
 * forbids. */
void xml_text(struct out *out, const char *text);
void xml_lines(struct out *out, const char *text);

#endif
