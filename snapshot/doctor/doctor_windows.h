/*
 * Windows only: the child as its parent sees it, from its start to its end.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H

#include <windows.h>

#include "snapshot/control/control_windows.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/live/spawn_windows.h"

#define DOCTOR_NAME "the doctor's child"

struct doctor_child {
	bool is_other; /* 32-bit, and this hsnap is not */
	struct spawn spawn;
	HANDLE handles[DOCTOR_HANDLES];
	struct doctor_truth *shared; /* as the child writes it; not to be trusted */
	struct traced traced;
	struct target target; /* the child, open */
	wchar_t *copy; /* owned: path of its program, a copy with a manifest beside it; or NULL */
};

/* One child for each way of starting it, read from all sources that it has. */
enum doctor_trial {
	TRIAL_PLAIN,
	TRIAL_UST, /* started with the flag that makes Windows keep stacks */
	TRIAL_TRACER,
	TRIAL_SEGMENT, /* the same flag, and segment heaps; with --keep alone */
	TRIALS,
};

/* Starts the child and waits until it is ready for its work; doctor_child_end() in any case. */
int doctor_child_start(struct doctor_child *child, enum doctor_trial trial, struct err *err);

/* Copies the child's program into a folder, before its start, with a manifest that requests segment heaps. */
int doctor_child_copy(struct doctor_child *child, const char *folder, struct err *err);

/* Lets the child allocate its blocks and copies its truth. */
int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err);

/* Ends the child, whatever it does, and closes everything. */
void doctor_child_end(struct doctor_child *child);

/* Returns PEB.NtGlobalFlag; 0 if it cannot be read. */
uint32_t doctor_child_flag(struct doctor_child *child);

/* Sets err for the system's last error. Returns its negative code. */
int doctor_fail(enum err_code code, const char *what, struct err *err);

#endif
