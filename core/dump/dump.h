/*
 * The dump: a snapshot as text. It is UMDH's snapshot log, plus comment lines ("// hsnap: ...")
 * with facts that UMDH does not record and that its readers skip. man/hdump.5 is the specification.
 *
 * A streaming scanner reads a dump and passes records to a sink. The scanner keeps nothing: hdiff's
 * sums and hsym's filter are sinks.
 */
#ifndef CORE_DUMP_DUMP_H
#define CORE_DUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/kv.h"
#include "core/dump/model.h"
#include "core/io/out.h"

#define DUMP_FORMAT 1
#define DUMP_FRAMES_MAX 1024 /* per entry, all candidates together */
#define DUMP_SKIPS_MAX 100 /* malformed lines that are skipped */
#define DUMP_PAD_BYTES 128 /* zeros after a text that is read many bytes at once */
/* Bytes; a longer comment line is skipped, another longer line is malformed. */
#define DUMP_LINE_MAX 65536

/* Writes a snapshot. Errors are kept in out. */
void dump_write(struct out *out, const struct snapshot *snapshot);

/* A frame that a dump contains as text ("module!function+0x12"); not NUL-terminated. */
struct dump_name {
	const char *text;
	size_t len;
};

/* One entry: a block, or the sum of several blocks with one stack. */
struct dump_entry {
	uint64_t block_count, requested_bytes, overhead_bytes;
	uint64_t addr; /* 0 if the entry is a sum */
	/* id is not NUL-terminated: see id_len. frames is NULL if no stack follows the entry. */
	struct stack stack;
	size_t id_len;
	/* Used instead of stack.frames in old logs with named frames; innermost first. */
	const struct dump_name *names;
	uint32_t name_count;
};

/* The part of a dump that has been read, for messages and for its end mark. */
struct dump_progress {
	uint64_t line_count;
	struct block_totals seen; /* totals of entries, and of blocks without a stack */
};

/* Callbacks, each of which may be NULL. Their arguments are valid only during the call. A negative
 * return value stops the scan, which returns that value. */
struct dump_sink {
	void *ctx;
	/* Each line unchanged, without its line end, before it is parsed. */
	int (*line)(void *ctx, const char *text, size_t len);
	/* Returns -ERR_BAD_LINE if the path is too long or there are too many modules. */
	int (*module)(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len);
	/* The following entries belong to this heap. */
	int (*heap)(void *ctx, uint64_t addr);
	int (*entry)(void *ctx, const struct dump_entry *entry);
	/* "// hsnap: KIND key=value ..."; a missing pair reads as NULL. Returns -ERR_BAD_LINE for
	 * invalid values; the scanner adds the place. */
	int (*note)(void *ctx, const char *kind, const struct kv *pairs);
	/* A malformed line was skipped; why contains its place. Returns 0 to continue. Without this
	 * function, and after DUMP_SKIPS_MAX such lines, a malformed line is an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* Fast path: reads any number of whole entries with their stacks, and empty lines, from at,
	 * which is the start of a line. Returns where it stopped, which is also the start of a
	 * line, and adds what it read to progress. entry() gets the other entries, including the
	 * first of a dump. DUMP_PAD_BYTES zeros follow end. An entry whose lines reach end is left
	 * to the scanner, which knows if the entry is complete. Not called if line() is set. */
	const char *(*plain)(
		void *ctx, const char *at, const char *end, struct dump_progress *progress);
};

/* A source of bytes. read returns their number, 0 at the end, or a negative error code. */
struct dump_source {
	int64_t (*read)(void *ctx, void *bytes, size_t len, struct err *err);
	void *ctx;
	const char *name; /* for messages */
};

/* Reads a dump to its end. Returns 0; -ERR_EMPTY; -ERR_NOT_DUMP; -ERR_VERSION; -ERR_BAD_LINE with
 * place "name:line"; -ERR_SECOND with that place if another snapshot begins there; -ERR_CUT if the
 * end is missing, after everything else was passed on; -ERR_READ; or the result of the sink. */
int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err);

/* Writes a message about lines that look like data. Returns text. */
const char *dump_unread_text(uint64_t count, const char *first, char *text, size_t size);

/* Reads a dump in parts, for a reader that splits a file itself. Parts come in order, and each
 * begins at the start of a line that does not start with a TAB. The functions return as dump_scan()
 * does. */
struct dump_scanner;
struct dump_scanner *dump_scanner_new(
	const char *name, const struct dump_sink *sink, struct err *err);
void dump_scanner_free(struct dump_scanner *scanner);

/* Scans one part. DUMP_PAD_BYTES zeros follow text[len]. Only the last part may end inside a
 * line. */
int dump_scanner_text(struct dump_scanner *scanner, const char *text, size_t len, bool is_last);

/* Reads a source to its end; then calls dump_scanner_end(). */
int dump_scanner_read(
	struct dump_scanner *scanner, const struct dump_source *source, struct err *err);

/* Accounts for a part of the file that was read elsewhere and contains only entries and empty
 * lines. */
int dump_scanner_pass(struct dump_scanner *scanner, const struct dump_progress *passed);

/* Reports that the compressed file is truncated (-ERR_CUT of its source). Call it before the last
 * part, whose last line and stack are then not trusted. */
void dump_scanner_cut(struct dump_scanner *scanner);

/* Reports what is missing at the end of the file. */
int dump_scanner_end(struct dump_scanner *scanner);

#endif
