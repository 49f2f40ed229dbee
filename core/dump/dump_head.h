/*
 * The head of a dump, which names the process and the time. It consists of the first lines of the
 * file; the rest of the file is not read.
 */
#ifndef CORE_DUMP_DUMP_HEAD_H
#define CORE_DUMP_DUMP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

#define DUMP_HEAD_BYTES ((size_t)64 << 10) /* maximum length, in bytes of unpacked text */

struct dump_head {
	bool is_ours; /* written by hsnap; the remaining members come from its notes */
	uint32_t pid, parent_pid; /* 0: not recorded */
	int64_t time_ms, start_ms; /* ms since 1970-01-01 UTC; 0: not recorded */
	int64_t clock_ms; /* value of os_clock_ms() at the snapshot; 0: not recorded */
	const char *image, *host; /* NULL: not recorded; valid until the next note */
	/* Members from UMDH's banner. The banner's time has whole minutes and no time zone; it is
	 * treated as UTC. */
	uint32_t banner_pid;
	const char *banner_host; /* or NULL */
	int64_t banner_time_ms;
};

/* Reads a note of kind "dump", "process" or "umdh", and ignores other kinds. Returns 0, or
 * -ERR_BAD_LINE with `head` unchanged. */
int dump_head_note(struct dump_head *head, const char *kind, const struct kv *kv);

/* Reads the head of a dump in a regular file, packed or not. Returns 0; -ERR_OPEN; -ERR_READ; or,
 * if the text has no valid head, the result of dump_scan(): -ERR_EMPTY, -ERR_NOT_DUMP,
 * -ERR_VERSION, -ERR_BAD_LINE or -ERR_CUT. Damage after the head is not detected. */
int dump_head_read(const char *path, struct dump_head *head, struct err *err);

/* Returns true if the file at `path` is a dump written by hsnap with the same pid, start_ms and
 * time_ms. */
bool dump_head_is_of(const char *path, const struct dump_head *of);

#define DUMP_HEAD_ENOUGH (-1000) /* a sink returns this when it needs no more data */

/* Scans whole lines at the start of a text. Stops after DUMP_HEAD_BYTES, or at the first heap or
 * entry, which the sink does not receive. Returns 0 if the sink returned DUMP_HEAD_ENOUGH, a heap
 * or an entry was found, or a valid text ended. Returns 1 if the text continues. Otherwise returns
 * an error of dump_head_read() or of the sink. */
int dump_head_scan(struct source *source, const struct dump_sink *sink, struct err *err);

#endif
