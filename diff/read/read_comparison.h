/*
 * A comparison that was printed, by UMDH (or dhcmp before it) or by hdiff, read back.
 *
 * Such a file has less to tell than the dumps it was made from: requested bytes and numbers of
 * blocks by stack, OLD and NEW, and overhead only for the whole; stacks as text. What did not
 * change is not in it.
 */
#ifndef DIFF_READ_COMPARISON_H
#define DIFF_READ_COMPARISON_H

#include "core/err.h"
#include "core/source.h"
#include "diff/read/comparison_line.h"
#include "diff/match/match.h"

/* What is to be said while a comparison is read. Each may be NULL; a negative return value ends the
 * reading, which then returns it. */
struct read_words {
	void *ctx;
	/* A line or a row that breaks the rules is left out; why has its place. Without this function,
	 * and after DUMP_SKIPS_MAX (core/dump.h) such, it is an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* A sentence on what the file lacks or what had to be guessed. */
	int (*warning)(void *ctx, const char *text);
};

/*
 * Reads all of source, which is of the kind FILE_COMPARISON, into *comparison, which is overwritten;
 * the caller releases it in any case. base is 16, 10, or 0: find out. What then decides, the first
 * that does: hdiff's own header; a digit from a to f, unless more rows agree with themselves in
 * decimal only; in which base more rows and the total line agree with themselves; in which the rows
 * add up to the total; how OLD is padded. Else it is a warning, is_guess, and 16.
 *
 * Rows with equal stacks are one row, with the ids in the order of the file; rows of which
 * several stacks are possible and not given stay apart. Rows that cancel are left out. The order
 * is that of match.h, and the file's where growth is the same. A row that does not say OLD's
 * number of blocks (dhcmp) is taken to have as many as in NEW, so that no growth of blocks is
 * made up, or none when OLD has no bytes; that is a warning too. The stacks of a report whose header
 * says that it is inverted are turned back.
 *
 * The totals are those of the file (comparison_whole.h), and those of the rows where it has none.
 * When they count stacks that have no rows, lacks_rows says so; is_partial, unless the file itself
 * tells that it shows but a part, as our own do. is_partial also when lines were left out or the
 * file is cut. All that is said is kept in warnings, too.
 *
 * Returns 0; -ERR_EMPTY, -ERR_NOT_DUMP (also of a grouped report), -ERR_BAD_LINE with place "name:line"; -ERR_CUT when the
 * file ends in the middle of a row or before the first, or without a total line behind rows that
 * have a header, after everything that is there was taken (rows alone without a total line are but
 * a warning); -ERR_READ, -ERR_NOMEM; or what words returned,
 * then with err as it was.
 */
int comparison_read(struct comparison *comparison, struct source *source, unsigned base,
	const struct read_words *words, struct err *err);

#endif
