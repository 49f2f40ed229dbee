/*
 * The dump: a snapshot as text. UMDH's snapshot log, with what UMDH never recorded in comment lines
 * that its readers skip ("// hsnap: ..."). man/hdump.5 is the specification.
 *
 * One streaming scanner reads it and hands records to a sink; nothing is kept that the sink does
 * not keep: hdiff's sums and hsym's filter are such sinks.
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
#define DUMP_SKIPS_MAX 100 /* malformed lines that are passed over */
#define DUMP_PAD_BYTES 128 /* zeros behind a text that is read many bytes at once */
#define DUMP_LINE_MAX 65536 /* bytes; longer comment lines are passed over, others are malformed */

/* Writes a snapshot; failures are kept in out. */
void dump_write(struct out *out, const struct snapshot *snapshot);

/* A frame that a dump gives as text ("module!function+0x12"); not NUL-terminated. */
struct dump_name {
	const char *text;
	size_t len;
};

/* One entry: one block, or what several blocks of one stack sum up to. */
struct dump_entry {
	uint64_t block_count, requested_bytes, overhead_bytes; /* of all its blocks */
	uint64_t addr; /* 0 when the entry is a sum */
	/* id is not NUL-terminated: id_len tells. frames is NULL when no stack follows the entry. */
	struct stack stack;
	size_t id_len;
	/* Instead of stack.frames, innermost first, in logs of old that name their frames. */
	const struct dump_name *names;
	uint32_t name_count;
};

/* What was read of a dump, for messages and for its end mark. */
struct dump_progress {
	uint64_t line_count;
	struct block_totals seen; /* of entries, and of blocks without a stack */
};

/* Each may be NULL. What they are given is valid during the call only. A negative return value
 * stops the scan, which then returns it. */
struct dump_sink {
	void *ctx;
	/* Every line as it stands, without its line end, before it is understood. */
	int (*line)(void *ctx, const char *text, size_t len);
	/* -ERR_BAD_LINE: its path is longer, or the modules are more, than is kept. */
	int (*module)(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len);
	/* The entries that follow belong to this heap. */
	int (*heap)(void *ctx, uint64_t addr);
	int (*entry)(void *ctx, const struct dump_entry *entry);
	/* "// hsnap: KIND key=value ..."; a pair that is not there reads as NULL. What is wrong with
	 * the values of one is reported as -ERR_BAD_LINE; the scanner fills in the place. */
	int (*note)(void *ctx, const char *kind, const struct kv *pairs);
	/* A line that breaks the rules was passed over; why has its place. Returns 0 to go on. Without
	 * this function, and after DUMP_SKIPS_MAX such lines, it is an error. */
	int (*skipped)(void *ctx, const struct err *why);
	/* Takes as many whole entries with their stacks as it likes, and empty lines, off the text
	 * at at, which is at the start of a line; returns where it stopped, which is one too, and
	 * adds to progress what it took. entry() gets the others, the first of a dump among them.
	 * Behind end are DUMP_PAD_BYTES zeros. An entry whose lines reach end it leaves: whether that one
	 * is whole the scanner knows. Not called when there is a line(). */
	const char *(*plain)(
		void *ctx, const char *at, const char *end, struct dump_progress *progress);
};

/* Where bytes come from: returns how many, 0 at the end, or a negative error code. */
struct dump_source {
	int64_t (*read)(void *ctx, void *bytes, size_t len, struct err *err);
	void *ctx;
	const char *name; /* for messages */
};

/*
 * Reads a dump to its end. Returns 0; -ERR_EMPTY, -ERR_NOT_DUMP, -ERR_VERSION, -ERR_BAD_LINE with
 * place "name:line"; -ERR_SECOND with that place where another snapshot begins; -ERR_CUT when everything that is there was handed on but the end is missing;
 * -ERR_READ; or what the sink returned.
 */
int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err);

/*
 * The same in parts, for a reader that cuts a file itself. Parts start at the start of a line that
 * does not start with a TAB and come in order. Functions return as dump_scan().
 */
struct dump_scanner;
struct dump_scanner *dump_scanner_new(
	const char *name, const struct dump_sink *sink, struct err *err);
void dump_scanner_free(struct dump_scanner *scanner);

/* Behind text[len] are DUMP_PAD_BYTES zeros. Only the last part may end inside a line. */
int dump_scanner_text(struct dump_scanner *scanner, const char *text, size_t len, bool is_last);

/* All of a source, or what is left of it; then dump_scanner_end(). */
int dump_scanner_read(
	struct dump_scanner *scanner, const struct dump_source *source, struct err *err);

/* A part of the file with nothing but entries and empty lines in it was read elsewhere. */
int dump_scanner_pass(struct dump_scanner *scanner, const struct dump_progress *passed);

/* The file was cut by what it is packed in (-ERR_CUT of its source): to be said before the last
 * part, whose last line and stack are then not trusted. */
void dump_scanner_cut(struct dump_scanner *scanner);

/* Says what is missing at the end of the file. */
int dump_scanner_end(struct dump_scanner *scanner);

#endif
