/*
 * What the first lines of a dump tell: of which process it is and when it was taken, without reading
 * the rest.
 */
#ifndef CORE_DUMP_DUMP_HEAD_H
#define CORE_DUMP_DUMP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

#define DUMP_HEAD_BYTES                                                                            \
	((size_t)64 << 10) /* of the unpacked text; what stands behind is not looked at */

struct dump_head {
	bool is_ours; /* written by hsnap, whose notes tell the rest */
	uint32_t pid, parent_pid; /* 0: not told */
	int64_t time_ms, start_ms; /* since 1970-01-01 UTC, 0: not told */
	int64_t clock_ms; /* of the machine's clock that is never set, at the snapshot; 0: unknown */
	const char *image, *host; /* NULL: not told. Until the next note. */
	/* What UMDH's banner tells. The time is whole minutes of a clock in a zone that it does not tell: they
	 * are taken as if it were UTC. */
	uint32_t banner_pid;
	int64_t banner_time_ms;
};

/* Takes what a note tells: those of the kinds "dump", "process" and "umdh"; others say nothing here. 0, or
 * -ERR_BAD_LINE with head as it was. */
int dump_head_note(struct dump_head *head, const char *kind, const struct kv *kv);

/* Reads the head of a dump in a regular file, packed or not. 0; -ERR_OPEN, -ERR_READ; or what
 * dump_scan() says of a text that has no sound head: -ERR_EMPTY, -ERR_NOT_DUMP, -ERR_VERSION,
 * -ERR_BAD_LINE, -ERR_CUT. Nothing is said about the rest of the dump, which may be damaged. */
int dump_head_read(const char *path, struct dump_head *head, struct err *err);

/* Compares the file at path with what a dump of hsnap's records: pid, start_ms and time_ms. Returns true if it is a
 * dump by hsnap of this process at this moment. */
bool dump_head_is_of(const char *path, const struct dump_head *of);

#define DUMP_HEAD_ENOUGH (-1000) /* what a sink's function returns that has seen all it wants */

/* Has a sink see what a text begins with, in whole lines, up to DUMP_HEAD_BYTES. 0: the sink has had
 * enough, or that was the whole text and it is a sound one; 1: it goes on; or an error as above, which is
 * the sink's own, too. */
int dump_head_scan(struct source *source, const struct dump_sink *sink, struct err *err);

#endif
