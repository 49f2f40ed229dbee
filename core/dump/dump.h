/*
 * The dump: a snapshot as text. A dump is UMDH's snapshot log, plus comment lines ("// hsnap: ...")
 * with facts that UMDH does not record. Readers of UMDH's logs skip these lines. man/hdump.5 is the
 * specification.
 *
 * A streaming scanner reads a dump and passes records to a sink. The scanner does not store
 * records. Sinks include hdiff, which computes sums, and hsym, which collects addresses.
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
#define DUMP_FRAMES_MAX 1024 /* frames per entry, including those of all candidates */
#define DUMP_SKIPS_MAX 100 /* maximum number of malformed lines that are skipped */
/* Number of zero bytes required after the text, because the scanner reads many bytes at a time. */
#define DUMP_PAD_BYTES 128
/* Maximum length of a line, in bytes. A longer comment line is skipped; any other longer line is
 * malformed. */
#define DUMP_LINE_MAX 65536

/* Writes a snapshot. Write errors are stored in `out`. */
void dump_write(struct out *out, const struct snapshot *snapshot);

/* A frame recorded in the dump as text ("module!function+0x12"); not NUL-terminated. */
struct dump_name {
	const char *text;
	size_t len;
};

/* One entry: a block, or the sum of several blocks with the same stack. */
struct dump_entry {
	uint64_t block_count, requested_bytes, overhead_bytes;
	uint64_t addr; /* 0 if the entry is a sum */
	/* `stack.id` is not NUL-terminated: its length is `id_len`. `stack.frames` is NULL if no
	 * stack follows the entry. */
	struct stack stack;
	size_t id_len;
	/* Named frames of an old log, innermost first. They replace `stack.frames`. */
	const struct dump_name *names;
	uint32_t name_count;
};

/* Progress through a dump: used in messages, and compared with the end mark. */
struct dump_progress {
	uint64_t line_count;
	struct block_totals seen; /* totals of entries and of blocks without a stack */
};

/* Callbacks; any of them may be NULL. Their arguments are valid only during the call. A negative
 * return value stops the scan, which then returns that value. */
struct dump_sink {
	void *ctx;
	/* Called for each line, without its line end, before the line is parsed. */
	int (*line)(void *ctx, const char *text, size_t len);
	/* Returns -ERR_BAD_LINE if the path is too long or there are too many modules. */
	int (*module)(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len);
	/* Called before the entries of a heap. */
	int (*heap)(void *ctx, uint64_t addr);
	int (*entry)(void *ctx, const struct dump_entry *entry);
	/* A note "// hsnap: KIND key=value ..."; a missing key has the value NULL. Returns
	 * -ERR_BAD_LINE for invalid values; the scanner then adds the place to the error. */
	int (*note)(void *ctx, const char *kind, const struct kv *pairs);
	/* Called after a malformed line was skipped. `why` describes the error and its location.
	 * Returns 0 to continue. If this callback is NULL, a malformed line is an error. Every
	 * malformed line after the first DUMP_SKIPS_MAX is an error in any case. */
	int (*skipped)(void *ctx, const struct err *why);
	/* Optional fast path; not called if line() is set. Starts at `at`, which is the start of a
	 * line. Reads entries with complete stacks, and empty lines, and adds them to `progress`.
	 * Returns the start of the first line that it did not read. The scanner parses the
	 * following entry and passes it to entry(); the first entry of a dump always goes to
	 * entry().
	 *
	 * DUMP_PAD_BYTES zeros follow `end`. If the lines of an entry reach `end`, this function
	 * must not read the entry, because only the scanner knows whether the entry is complete. */
	const char *(*plain)(
		void *ctx, const char *at, const char *end, struct dump_progress *progress);
};

/* A source of bytes. `read` returns the number of bytes read, 0 at the end, or a negative error
 * code. */
struct dump_source {
	int64_t (*read)(void *ctx, void *bytes, size_t len, struct err *err);
	void *ctx;
	const char *name; /* name for messages */
};

/* Reads a dump to its end. Returns 0, the sink's result, an error of the source, or one of these:
 * -ERR_EMPTY; -ERR_NOT_DUMP; -ERR_VERSION; -ERR_BAD_LINE at "name:line"; -ERR_SECOND at the
 * "name:line" where another snapshot begins; -ERR_CUT if the end is missing. Before -ERR_CUT,
 * everything that was read has been passed to the sink. */
int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err);

/* Writes a message about skipped lines that look like data into `text`, and returns `text`. */
const char *dump_unread_text(uint64_t count, const char *first, char *text, size_t size);

/* Scans a dump in parts, for a reader that splits a file itself. The caller passes the parts in
 * order. Each part begins at the start of a line that does not start with a TAB. The functions
 * return the same values as dump_scan(). */
struct dump_scanner;
struct dump_scanner *dump_scanner_new(
	const char *name, const struct dump_sink *sink, struct err *err);
void dump_scanner_free(struct dump_scanner *scanner);

/* Scans one part. DUMP_PAD_BYTES zeros must follow text[len]. Only the last part may end inside a
 * line. */
int dump_scanner_text(struct dump_scanner *scanner, const char *text, size_t len, bool is_last);

/* Reads a source to its end, then calls dump_scanner_end(). */
int dump_scanner_read(
	struct dump_scanner *scanner, const struct dump_source *source, struct err *err);

/* Adds the progress of a part that the caller read without the scanner. The part must contain only
 * entries and empty lines. */
int dump_scanner_pass(struct dump_scanner *scanner, const struct dump_progress *passed);

/* Records that the compressed file is truncated (its source returned -ERR_CUT). Call this before
 * scanning the last part, so that the last line and the last stack are treated as incomplete. */
void dump_scanner_cut(struct dump_scanner *scanner);

/* Reports an error if the end of the file is missing. */
int dump_scanner_end(struct dump_scanner *scanner);

#endif
