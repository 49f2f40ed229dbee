/* Printed comparisons, recognized and read back. */
#ifndef DIFF_PRINTED_PRINTED_H
#define DIFF_PRINTED_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/dump/source.h"
#include "diff/match/match.h"
#include "diff/printed/printed_parts.h"

/* Kinds of input files: printed comparisons, dumps, recordings. Reports of hdiff in other forms are
 * refused. */

enum file_kind {
	FILE_UNKNOWN, /* no sign of either kind yet */
	FILE_COMPARISON, /* its own header, a row or a total line precedes any sign of a dump */
	FILE_DUMP,
	FILE_RECORDING, /* recognized by its first bytes; not text */
};

/* Returns the kind of a text with this start. */
enum file_kind file_kind_of(const char *bytes, size_t len);

/* Finds the kind of a source from its first 16 MiB, read up to the first sign. Returns 0 or
 * -ERR_READ. A packed file that is cut short is judged by the part that is there. */
int file_kind_find(enum file_kind *kind, struct source *source, struct err *err);

/* Returns a sentence for the start of a file that hdiff cannot read: another tool's, packed, or a
 * report in another form. Otherwise returns NULL. */
const char *printed_refused(const char *bytes, size_t len);

/*
 * A printed comparison, by UMDH (or dhcmp before it) or by hdiff, read back.
 *
 * Such a file has less information than its dumps: requested bytes and numbers of blocks by stack,
 * OLD and NEW; overhead only for the whole; stacks as text; no unchanged rows.
 */

/* Callbacks while a comparison is read. A negative return value ends the reading and is returned by
 * it. */
struct read_words {
	void *ctx;
	/* A malformed line or row was skipped; why has its place. More than DUMP_SKIPS_MAX
	 * (core/dump/dump.h) are an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* A sentence about a defect of the file or a guess. */
	int (*warning)(void *ctx, const char *text);
	bool by_id; /* equal stacks with different ids are different rows */
};

/*
 * Reads all of source, which must be a FILE_COMPARISON, into *comparison, which is overwritten; the
 * caller releases it in any case. base is 16, 10, or 0 to detect it. The first of these that
 * decides is used: hdiff's own header; a digit from a to f, unless more rows are consistent in
 * decimal only; the base in which more rows and the total line are consistent; the base in which
 * the rows add up to the total; the padding of OLD. Otherwise base 16 is used, with a warning and
 * is_guess.
 *
 * Rows with equal stacks are merged, with the ids in the order of the file. Rows whose growth
 * cancels are left out. The order is that of match.h; rows of equal growth keep the file's order. A
 * row without OLD's number of blocks (dhcmp) gets NEW's number, so that no growth is invented, or 0
 * if OLD has no bytes. This also is a warning.
 *
 * Totals are those of the file, or of the rows if it has none. If they include stacks without rows,
 * lacks_rows is set, and is_partial for one of our reports. is_partial is also set if lines were
 * skipped or the file is cut. All messages are also kept in warnings.
 *
 * Returns 0; -ERR_EMPTY; -ERR_NOT_DUMP, also for a report of ours that is not purely in UMDH's form
 * or shows only some of the stacks; -ERR_BAD_LINE with place "name:line"; -ERR_CUT if the file ends
 * in a row or before the first row, or if it has a header and rows but no total line: everything
 * before the cut was read (without a header a missing total line is only a warning); -ERR_READ; or
 * the result of a callback, with err unchanged.
 */
int comparison_read(struct comparison *comparison, struct source *source, unsigned base,
	const struct read_words *words, struct err *err);

#endif
