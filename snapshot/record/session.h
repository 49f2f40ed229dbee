/* A recording in progress: the rings, the file, and the thread that moves events from the rings to
 * the file. */
#ifndef SNAPSHOT_RECORD_SESSION_H
#define SNAPSHOT_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"

struct record_session_plan {
	/* Returns the path of the recording of this process, which remains valid as long as the
	 * plan. Called once, when the recording begins. `image` may be NULL. */
	const char *(*path_of)(
		const struct record_session_plan *plan, const char *image, uint32_t pid);
	uint64_t ring_bytes; /* total size of all rings */
	int64_t for_ms; /* length of the recording in ms; 0: until the process exits */
	uint64_t max_bytes; /* maximum file size; the recording ends there; 0: no limit */
	/* bytes per recorded heap allocation; 0: all allocations are recorded, or the tracer's
	 * setting applies */
	uint64_t sample_bytes;
	/* the process is already running, so its existing blocks are recorded first */
	bool is_attached;
	bool keeps_addresses;
	bool drops; /* a thread whose ring is full does not wait */
};

struct record_session_result {
	uint64_t event_count, file_bytes, lost_count, length_ms;
	/* number of blocks that were freed without an event; found at a mark or at the end */
	uint64_t unseen_count;
	/* number and total duration of the waits of threads for room in their rings */
	uint64_t wait_count, waited_ms;
	unsigned damaged_count; /* number of rings with invalid contents */
	bool is_full; /* ended because the file reached its maximum size */
	/* the heaps could not be walked, so blocks that were freed without an event may count as
	 * live */
	bool is_uncompared;
};

struct record_session;

#define RECORD_UNCOMPARED                                                                          \
	"a heap was locked or damaged, so the events could not be compared with the heaps: "       \
	"blocks freed without the tracer noticing may count as live"
#define RECORD_UNSEEN_BYTES 160

/* Writes a message about blocks that were freed without an event. Returns `text`. */
const char *record_unseen_text(uint64_t count, char text[RECORD_UNSEEN_BYTES]);

/* Creates a session with its rings. Returns 0 or -ERR_SYSTEM. `plan` must outlive the session. */
int record_session_new(
	struct record_session **made, const struct record_session_plan *plan, struct err *err);

/* Returns the link that control needs to begin the recording. */
const struct recording_link *record_session_link(struct record_session *session);

/*
 * Returns a handle for os_wait(). The handle is set when recording stops although the process
 * continues. This happens if the time is over, if the file is full or cannot be written, or if
 * another hsnap has requested the end.
 */
intptr_t record_session_over_handle(const struct record_session *session);
bool record_session_is_over(const struct record_session *session);

/* Compares the live blocks with the heaps. Call this before the process or the recording ends,
 * while the process is still being recorded. */
void record_session_look(struct record_session *session);

/* Writes everything that is in the rings, completes the file, and frees the session. Returns 0 or
 * the first error. If the session never began, leaves no file. */
int record_session_end(
	struct record_session *session, struct record_session_result *result, struct err *err);

/* Requests from other hsnap processes to the hsnap that records a process: marks, and the end of
 * the recording. */

/* maximum size of a mark's label, including its terminator; longer labels are refused */
#define MAILBOX_LABEL_BYTES 200

struct mailbox;

/* Creates the recorder's mailbox. Returns 0, -ERR_BUSY (the process is already being recorded) or
 * -ERR_SYSTEM. */
int mailbox_new(struct mailbox **made, uint32_t pid, struct err *err);
/* Opens the mailbox of the process's recorder. Returns 0, -ERR_NOT_RECORDED, -ERR_ADMIN (another
 * user is recording the process) or -ERR_SYSTEM. */
int mailbox_find(struct mailbox **found, uint32_t pid, struct err *err);
void mailbox_free(struct mailbox *mailbox); /* accepts NULL */

/* Sends a mark and waits until it is in the recording. Returns 0, -ERR_BUSY (no answer),
 * -ERR_NOT_RECORDED (the recording has ended) or -ERR_USAGE (the label is empty or too long). */
int mailbox_mark(struct mailbox *mailbox, const char *label, struct err *err);
/* Requests the end of the recording. Returns 0 or -ERR_SYSTEM. */
int mailbox_stop(struct mailbox *mailbox, struct err *err);

/* Copies the next mark, for the recorder. Returns false if no mark is waiting. The recorder calls
 * mailbox_acknowledge() after it has written or refused the mark. */
bool mailbox_next(struct mailbox *mailbox, char label[MAILBOX_LABEL_BYTES]);
void mailbox_acknowledge(struct mailbox *mailbox, bool is_refused);
/* Returns true if the end of the recording was requested. */
bool mailbox_is_stopped(const struct mailbox *mailbox);

#endif
