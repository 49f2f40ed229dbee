/* A comparison that was printed, known and read back. */
#ifndef DIFF_PRINTED_PRINTED_H
#define DIFF_PRINTED_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/dump/source.h"
#include "diff/match/match.h"
#include "diff/printed/printed_parts.h"

/*
 * What a file is: a printed comparison, a dump, or a report of hdiff's that cannot be read back.
 */

enum file_kind {
	FILE_UNKNOWN, /* nothing but what may stand before either */
	FILE_COMPARISON, /* its own header, a row or a total line comes before any sign of a dump */
	FILE_DUMP,
	FILE_RECORDING, /* by its first bytes; no text */
};

/* What a text is that starts like this. */
enum file_kind file_kind_of(const char *bytes, size_t len);

/* The same for the first 16 MiB of a source, which is read up to the first sign. Fills kind and
 * returns 0 or -ERR_READ; what is packed and ends in the middle is judged by what is
 * there. */
int file_kind_find(enum file_kind *kind, struct source *source, struct err *err);

/* A sentence when a file that starts like this is of another tool, is packed, or is a report of hdiff's in a form that
 * is not read; else NULL. */
const char *printed_refused(const char *bytes, size_t len);

/*
 * A comparison that was printed, by UMDH (or dhcmp before it) or by hdiff, read back.
 *
 * Such a file has less to tell than the dumps it was made from: requested bytes and numbers of
 * blocks by stack, OLD and NEW, and overhead only for the whole; stacks as text. What did not
 * change is not in it.
 */

/* What is to be said while a comparison is read. A negative return value ends the
 * reading, which then returns it. */
struct read_words {
	void *ctx;
	/* A line or a row that breaks the rules is left out; why has its place. After DUMP_SKIPS_MAX
	 * (core/dump/dump.h) such it is an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* A sentence on what the file lacks or what had to be guessed. */
	int (*warning)(void *ctx, const char *text);
	bool by_id; /* equal stacks with different ids are different rows */
};

/*
 * Reads all of source, which is of the kind FILE_COMPARISON, into *comparison, which is overwritten;
 * the caller releases it in any case. base is 16, 10, or 0: find out. What then decides, the first
 * that does: hdiff's own header; a digit from a to f, unless more rows agree with themselves in
 * decimal only; in which base more rows and the total line agree with themselves; in which the rows
 * add up to the total; how OLD is padded. Else it is a warning, is_guess, and 16.
 *
 * Rows with equal stacks are one row, with the ids in the order of the file. Rows that cancel are
 * left out. The order is that of match.h, and the file's where growth is the same. A row that does
 * not say OLD's number of blocks (dhcmp) is taken to have as many as in NEW, so that no growth of
 * blocks is made up, or none when OLD has no bytes; that is a warning too.
 *
 * The totals are those of the file, and those of the rows where it has none. When they count stacks
 * that have no rows, lacks_rows says so, and is_partial of a report of ours. is_partial also when
 * lines were left out or the file is cut. All that is said is kept in warnings, too.
 *
 * Returns 0; -ERR_EMPTY; -ERR_NOT_DUMP, also for a report of ours that is not in UMDH's form alone
 * or shows a part of the stacks; -ERR_BAD_LINE with place "name:line"; -ERR_CUT when the
 * file ends in the middle of a row or before the first, or without a total line behind rows that
 * have a header, after everything that is there was taken (rows alone without a total line are but
 * a warning); -ERR_READ; or what words returned,
 * then with err as it was.
 */
int comparison_read(struct comparison *comparison, struct source *source, unsigned base,
	const struct read_words *words, struct err *err);

#endif
