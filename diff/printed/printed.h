/* Printed comparisons: recognizing them and reading them back. */
#ifndef DIFF_PRINTED_PRINTED_H
#define DIFF_PRINTED_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/dump/file_kind.h"
#include "core/dump/source.h"
#include "diff/match/match.h"
#include "diff/printed/printed_parts.h"

/* Examines the start of a file. Returns a message if the file belongs to another tool, is packed,
 * or is a report in another form; hdiff cannot read such files. Otherwise returns NULL. */
const char *printed_refused(const char *bytes, size_t len);

/* Returns a message if a mail program encoded the text of a dump or a comparison, so that names and
 * lines are damaged. Otherwise returns NULL. */
const char *printed_encoded(const char *bytes, size_t len);

/*
 * A comparison printed by UMDH, by its predecessor dhcmp, or by hdiff, read back.
 *
 * Such a file contains less information than its dumps. For each stack, it contains requested bytes
 * and numbers of blocks in OLD and NEW. Only the total includes overhead, stacks are texts, and
 * unchanged rows are missing. */

/* Callbacks while a comparison is read. A negative return value ends the reading and becomes the
 * result of comparison_read(). */
struct read_words {
	void *ctx;
	/* A malformed line or row was skipped; `why` contains the place. More than DUMP_SKIPS_MAX
	 * skipped lines (core/dump/dump.h) are an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* Reports a defect in the file, or a guess that had to be made, in one sentence. */
	int (*warning)(void *ctx, const char *text);
	bool by_id; /* equal stacks with different ids form separate rows */
};

/*
 * Reads all of `source`, which must be a FILE_COMPARISON, into `*comparison`. Overwrites
 * `*comparison`, which the caller must release even after an error.
 *
 * `base` is 16, 10, or 0 to detect the base. Detection uses the first criterion that decides:
 * hdiff's own header; a digit from a to f, unless more rows are consistent only in decimal; the
 * base in which more rows and the total line are consistent; the base in which the rows add up to
 * the total; the padding of OLD. If no criterion decides, base 16 is used, with a warning and
 * `is_guess`.
 *
 * Rows with equal stacks are merged; their ids stay in the order of the file. Merged rows without
 * growth are left out. Rows are sorted as in match.h; rows of equal growth keep the order of the
 * file. A row of dhcmp lacks the number of blocks in OLD. If OLD has bytes, the number in NEW is
 * used, to avoid false growth, and a warning reports this. If OLD has no bytes, 0 is used.
 *
 * Totals come from the file, or from the rows if the file has no totals. If the totals include
 * stacks without rows, `lacks_rows` is set. `is_partial` is set if lines were skipped, if the file
 * is cut, or if one of our own reports lacks rows. All messages are also stored in `warnings`.
 *
 * Returns 0 or an error. -ERR_EMPTY: nothing to read. -ERR_NOT_DUMP: not a comparison, or one of
 * our own reports that is not purely in UMDH's form or lacks stacks. -ERR_BAD_LINE, with place
 * "name:line". -ERR_READ or -ERR_ENCODINGS. -ERR_CUT: the file ends in a row or before the first
 * row, or it has a header and rows but no total line. In this case, everything before the cut was
 * read. Without a header, a missing total line causes only a warning. If a callback fails, returns
 * its result and leaves `err` unchanged. */
int comparison_read(struct comparison *comparison, struct source *source, unsigned base,
	const struct read_words *words, struct err *err);

#endif
