/*
 * What a loop of snapshots says, for those who look later: a file with one line for each thing said, and
 * when (UTC). It is never in the way of the snapshots: what cannot be written is said once, and is lost;
 * how many lines that were the log says when it goes on.
 */
#ifndef SNAPSHOT_SERIES_LOG_H
#define SNAPSHOT_SERIES_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"

/* A file that would be longer becomes FILE.1, in the place of an older one, and a new one is begun; where it
 * cannot, it grows. */
#define SERIES_LOG_BYTES ((uint64_t)1 << 20)

struct series_log {
	const char *path; /* the caller's; NULL: no file */
	uint64_t lost; /* lines up to now; the first of them was said elsewhere */
};

/* Whether lines can be written there, said before anything is begun: 0, -ERR_CREATE, -ERR_WRITE or
 * -ERR_NOMEM. Leaves an empty file where there was none. */
int series_log_start(struct series_log *log, const char *path, struct err *err);

/*
 * Adds "2026-11-20T10:25:48.123Z LINE", made harmless, at time_ms. The first of several that fail is an
 * error, -ERR_CREATE, -ERR_WRITE or -ERR_NOMEM, for the caller to say elsewhere; of the others 0 is returned.
 */
int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err);

#endif
