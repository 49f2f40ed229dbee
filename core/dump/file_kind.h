/* Kinds of files with text: recognizing dumps and printed comparisons. */
#ifndef CORE_DUMP_FILE_KIND_H
#define CORE_DUMP_FILE_KIND_H

#include <stddef.h>

#include "core/base/err.h"
#include "core/dump/source.h"

/* Kinds of input files. Other forms of hdiff's reports are refused. */

enum file_kind {
	FILE_UNKNOWN, /* nothing identifies the file yet */
	/* a header, row or total line of a comparison comes before anything that identifies a
	 * dump */
	FILE_COMPARISON,
	FILE_DUMP,
	FILE_RECORDING, /* recognized by its first bytes; not text */
	FILE_FOLDED,
	FILE_PPROF, /* recognized by diff/read/foreign.h */
};

/* Returns the kind of a file from the text at its start. */
enum file_kind file_kind_of(const char *bytes, size_t len);

/* Finds the kind of a source. Reads at most its first 16 MiB and stops when the kind is known.
 * Returns 0, -ERR_READ or -ERR_ENCODINGS. A packed file that is cut short is judged by the part
 * before the cut. */
int file_kind_find(enum file_kind *kind, struct source *source, struct err *err);

/* Returns the name of the kind of text at `path` that outputs must not replace, or NULL. Recognizes
 * every form that readers repair. For out_protect(). */
const char *file_kind_kept(const char *path);

#endif
