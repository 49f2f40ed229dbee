/* Windows only: the parent's view of the child, from its start to its end. */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H

#include <windows.h>

#include "snapshot/control/inject_windows.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/live/spawn_windows.h"

#define DOCTOR_NAME "the doctor's child"

struct doctor_child {
	bool is_other; /* a 32-bit child of a 64-bit hsnap */
	struct spawn spawn;
	HANDLE handles[DOCTOR_HANDLES];
	struct doctor_truth *shared; /* written by the child, untrusted */
	struct traced traced;
	struct target target; /* the child as an open target */
	wchar_t *copy; /* owned; path of the program's copy next to a manifest, or NULL */
};

/* Ways to start a child. Each child is read from all sources that are available for it. */
enum doctor_trial {
	TRIAL_PLAIN,
	TRIAL_UST, /* with the flag that makes Windows record stacks */
	TRIAL_TRACER,
	TRIAL_SEGMENT, /* with the flag of TRIAL_UST and segment heaps; only with --keep */
	TRIALS,
};

/* Starts the child and waits until it is ready. The caller must always call doctor_child_end(). */
int doctor_child_start(struct doctor_child *child, enum doctor_trial trial, struct err *err);

/* Copies the child's program into a folder, next to a manifest that requests segment heaps. Must be
 * called before the child is started. */
int doctor_child_copy(struct doctor_child *child, const char *folder, struct err *err);

/* Lets the child allocate its blocks and copies its truth. */
int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err);

/* Ends the child, whatever its state, and closes all handles. */
void doctor_child_end(struct doctor_child *child);

/* Returns PEB.NtGlobalFlag, or 0 if it is unreadable. */
uint32_t doctor_child_flag(struct doctor_child *child);

/* Sets err from the system's last error. Returns the negative code. */
int doctor_fail(enum err_code code, const char *what, struct err *err);

#endif
