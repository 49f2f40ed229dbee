/* A recording in progress: the rings, the file, and the thread between them. */
#ifndef SNAPSHOT_RECORD_SESSION_H
#define SNAPSHOT_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"

struct record_session_plan {
	const char *path;
	uint64_t ring_bytes; /* of all rings together */
	int64_t for_ms; /* length of the recording, ms; 0: until the process exits */
	uint64_t max_bytes; /* file size that ends the recording; 0: no limit */
	/* one heap allocation per this many bytes is recorded; 0: all, or as the tracer is set */
	uint64_t sample_bytes;
	bool is_attached; /* the process runs already: its existing blocks come first */
	bool keeps_addresses;
	bool drops; /* threads whose ring is full do not wait */
};

struct record_session_result {
	uint64_t event_count, file_bytes, lost_count, length_ms;
	uint64_t unseen_count; /* blocks freed without an event, noticed at a mark or the end */
	uint64_t wait_count, waited_ms; /* waits of threads for room in their rings */
	unsigned damaged_count; /* rings with invalid contents */
	bool is_full; /* ended because the file had reached its size */
	/* heaps could not be walked: blocks freed without an event may count as live */
	bool is_uncompared;
};

struct record_session;

/* Makes a session with its rings. Returns 0 or -ERR_SYSTEM. plan must outlive it. */
int record_session_new(
	struct record_session **made, const struct record_session_plan *plan, struct err *err);

/* Returns the link that control uses to begin the recording. */
const struct recording_link *record_session_link(struct record_session *session);

/* Returns a handle for os_wait(). It is set when nothing is recorded any more although the process
 * goes on: the time is over, the file has reached its size or cannot be written, or another hsnap
 * requested the end. */
intptr_t record_session_over_handle(const struct record_session *session);
bool record_session_is_over(const struct record_session *session);

/* Compares the live blocks with the heaps. To be called before the process or the recording ends,
 * while the process still records. */
void record_session_look(struct record_session *session);

/* Writes everything that is in the rings, ends the file, and frees the session. Returns 0 or the
 * first error. A session that never began leaves no file. */
int record_session_end(
	struct record_session *session, struct record_session_result *result, struct err *err);

/* Requests of other hsnap processes to the one that records a process: marks, and the end of the
 * recording. */

#define MAILBOX_LABEL_BYTES 200 /* of a mark, with its terminator; longer labels are refused */

struct mailbox;

/* Creates the recorder's mailbox. Returns 0, -ERR_BUSY (the process is being recorded) or
 * -ERR_SYSTEM. */
int mailbox_new(struct mailbox **made, uint32_t pid, struct err *err);
/* Opens the mailbox of the process's recorder. Returns 0, -ERR_NOT_RECORDED, -ERR_ADMIN (another
 * user records it) or -ERR_SYSTEM. */
int mailbox_find(struct mailbox **found, uint32_t pid, struct err *err);
void mailbox_free(struct mailbox *mailbox); /* accepts NULL */

/* Sends a mark and waits until it is in the recording. Returns 0, -ERR_BUSY (no answer),
 * -ERR_NOT_RECORDED (the recording has ended) or -ERR_USAGE (too long or empty). */
int mailbox_mark(struct mailbox *mailbox, const char *label, struct err *err);
/* Requests the end of the recording. Returns 0 or -ERR_SYSTEM. */
int mailbox_stop(struct mailbox *mailbox, struct err *err);

/* Copies the next mark, for the recorder. The recorder calls mailbox_taken() when the mark is in
 * the recording, or refused. Returns false if no mark is waiting. */
bool mailbox_next(struct mailbox *mailbox, char label[MAILBOX_LABEL_BYTES]);
void mailbox_taken(struct mailbox *mailbox, bool is_refused);
/* Returns true if the end of the recording was requested. */
bool mailbox_is_stopped(const struct mailbox *mailbox);

#endif
