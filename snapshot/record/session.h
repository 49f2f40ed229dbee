/* One recording while it is made: the rings, the file, and the thread between them. */
#ifndef SNAPSHOT_RECORD_SESSION_H
#define SNAPSHOT_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"

struct record_session_plan {
	const char *path;
	uint64_t ring_bytes; /* of all rings together */
	int64_t for_ms; /* so long; 0: to the end of the process */
	uint64_t max_bytes; /* until the file has this size; 0: it may have any */
	uint64_t
		sample_bytes; /* of heaps one allocation in so many bytes is recorded; 0: all, or as the tracer does */
	bool is_attached; /* the process runs already: the blocks that it has come first */
	bool keeps_addresses;
	bool drops; /* who finds its ring full does not wait */
};

struct record_session_result {
	uint64_t event_count, file_bytes, lost_count, length_ms;
	uint64_t
		unseen_count; /* blocks that were freed without an event, and noticed at a mark or the end */
	uint64_t wait_count, waited_ms; /* of threads for room in their rings */
	unsigned damaged_count; /* rings that made no sense */
	bool is_full; /* it ended because the file had its size */
	bool is_uncompared; /* heaps could not be walked: blocks that were freed without an event may count as live */
};

struct record_session;

/* Makes the rings: 0; -ERR_SYSTEM. plan must outlive it. */
int record_session_new(
	struct record_session **made, const struct record_session_plan *plan, struct err *err);

/* What control is given: it begins the recording. */
const struct recording_link *record_session_link(struct record_session *session);

/* A handle for os_wait(): the time is over, the file has its size or cannot be written, or another hsnap wanted it
 * to end, and nothing is recorded any more; the process goes on. */
intptr_t record_session_over_handle(const struct record_session *session);
bool record_session_is_over(const struct record_session *session);

/* Compares what is live with the heaps, before the process or the recording ends. The process still records. */
void record_session_look(struct record_session *session);

/* Has all that is in the rings written, ends the file, and frees session: 0, or the first error. A session that
 * never began leaves no file. */
int record_session_end(
	struct record_session *session, struct record_session_result *result, struct err *err);

/* What other programs of hsnap tell the one that records a process: marks, and that it is to end. */

#define MAILBOX_LABEL_BYTES 200 /* of a mark, with its end; a longer one is refused */

struct mailbox;

/* The recorder's: 0; -ERR_BUSY (the process is being recorded), -ERR_SYSTEM. */
int mailbox_new(struct mailbox **made, uint32_t pid, struct err *err);
/* That of the process's recorder: 0; -ERR_NOT_RECORDED, -ERR_SYSTEM. */
int mailbox_find(struct mailbox **found, uint32_t pid, struct err *err);
void mailbox_free(struct mailbox *mailbox); /* NULL is nothing */

/* Sends a mark, and waits until it is in the recording: 0; -ERR_BUSY (it was not taken), -ERR_NOT_RECORDED (the
 * recording is over), -ERR_USAGE (too long). */
int mailbox_mark(struct mailbox *mailbox, const char *label, struct err *err);
/* Has the recording end: 0. */
int mailbox_stop(struct mailbox *mailbox, struct err *err);

/* For the recorder: the next mark, to be followed by mailbox_taken() when it is in the recording, or refused. */
bool mailbox_next(struct mailbox *mailbox, char label[MAILBOX_LABEL_BYTES]);
void mailbox_taken(struct mailbox *mailbox, bool is_refused);
/* Whether the recording is to end. */
bool mailbox_is_stopped(const struct mailbox *mailbox);

#endif
