/*
 * What reports of every form say alike: growth, what is known, words for what has no stack, and
 * names fit for files of lines.
 */
#ifndef DIFF_REPORT_PARTS_H
#define DIFF_REPORT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/date.h"
#include "diff/frame.h"
#include "diff/ask/view.h"

/* A difference of two sums of 64 bits. */
struct growth {
	char sign; /* '+' also for 0, or '-' */
	uint64_t amount;
};

struct growth growth_of(uint64_t new, uint64_t old);

/* Of all blocks what is neither selected nor suppressed. The total of a comparison that was read may
 * tell no more than growth: then so does this. */
struct change view_left_out(const struct view *view);

/* Of the rows that are not shown, and how many; in a grouped view, of nothing: groups overlap. */
struct change view_not_shown(const struct view *view, size_t *count);

/* Whether the overhead of single rows, and of what is selected, is known. */
bool rows_have_overhead(const struct comparison *comparison);
bool selected_has_overhead(const struct view *view);

/* Whether growth per hour can be told: times are known, and of one process there are two snapshots. */
bool has_rates(const struct comparison *comparison);

/* When a dump was taken: as date_text() has it, or "2026-11-20T10:25" by some clock on a wall, which is
 * all that UMDH's tell; "" when it is not known. Returns text. */
const char *dump_time(const struct sums *dump, char text[DATE_TEXT_BYTES]);

/* The place of dump number index: "old", "between" or "new". */
const char *dump_role(const struct comparison *comparison, size_t index);

const char *row_kind_name(enum row_kind kind);

#define ROW_WORDS_BYTES 80

/* What to say in the place of a row's frames, when it has none. space may be used for it. */
const char *row_words(const struct row *row, char space[ROW_WORDS_BYTES]);

const char *group_kind_name(enum view_group group);

/* Appends text as UTF-8: a byte that is none becomes U+FFFD, and what a terminal would obey '?', but
 * for TAB, CR and LF unless one_line. 0 or -ERR_NOMEM. */
int clean_text(struct buf *buf, const char *text, bool one_line);

/* Appends "module!function", "module+OFFSET" or "ADDRESS", made clean. 0 or -ERR_NOMEM. */
int clean_frame(struct buf *buf, const struct frame *frame, bool one_line);

/* Appends upper-case hexadecimal. 0 or -ERR_NOMEM. */
int clean_hex(struct buf *buf, uint64_t value);

#endif
