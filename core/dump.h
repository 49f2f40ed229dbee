/*
 * The dump: a snapshot as text. UMDH's snapshot log, with what UMDH never recorded in comment lines
 * that its readers skip ("// hsnap: ..."). man/hdump.5 is the specification.
 *
 * One streaming scanner reads it and hands records to a sink; nothing is kept that the sink does
 * not keep. The model is one sink (dump_load), hdiff's sums and hsym's filter are others.
 */
#ifndef CORE_DUMP_H
#define CORE_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/kv.h"
#include "core/model.h"
#include "core/out.h"

#define DUMP_FORMAT 1
#define DUMP_FRAMES_MAX 1024 /* per entry, all candidates together */
#define DUMP_LINE_MAX 65536 /* bytes; longer comment lines are passed over, others are an error */

/* Writes a snapshot; failures are kept in out. */
void dump_write(struct out *out, const struct snapshot *snapshot);

/* One entry: one block, or what several blocks of one stack sum up to. */
struct dump_entry {
	uint64_t block_count, requested_bytes, overhead_bytes;
	uint64_t addr; /* 0 when the entry is a sum */
	/* id is not NUL-terminated: id_len tells. frames is NULL when no stack follows the entry. */
	struct stack stack;
	size_t id_len;
};

/* Each may be NULL. What they are given is valid during the call only. A negative return value
 * stops the scan, which then returns it. */
struct dump_sink {
	void *ctx;
	/* Every line as it stands, without its line end, before it is understood. */
	int (*line)(void *ctx, const char *text, size_t len);
	int (*module)(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len);
	/* The entries that follow belong to this heap. */
	int (*heap)(void *ctx, uint64_t addr);
	int (*entry)(void *ctx, const struct dump_entry *entry);
	/* "// hsnap: KIND key=value ..."; a pair that is not there reads as NULL. What is wrong with
	 * the values of one is reported as -ERR_BAD_LINE; the scanner fills in the place. */
	int (*note)(void *ctx, const char *kind, const struct kv *pairs);
};

/* Where bytes come from: returns how many, 0 at the end, or a negative error code. */
struct dump_source {
	int64_t (*read)(void *ctx, void *bytes, size_t len, struct err *err);
	void *ctx;
	const char *name; /* for messages */
};

/*
 * Reads a dump to its end. Returns 0; -ERR_EMPTY, -ERR_NOT_DUMP, -ERR_VERSION, -ERR_BAD_LINE with
 * place "name:line"; -ERR_CUT when everything that is there was handed on but the end is missing;
 * -ERR_READ, -ERR_NOMEM; or what the sink returned.
 */
int dump_scan(const struct dump_source *source, const struct dump_sink *sink, struct err *err);

/* The same for a file by name; "-" is standard input. */
int dump_scan_file(const char *path, const struct dump_sink *sink, struct err *err);

/*
 * Fills a snapshot (initialised by the caller, who also releases it) from modules, entries and
 * notes. Entries that are sums become one block each per entry. Errors as dump_scan().
 */
int dump_load(struct snapshot *snapshot, const struct dump_source *source, struct err *err);
int dump_load_file(struct snapshot *snapshot, const char *path, struct err *err);

#endif
