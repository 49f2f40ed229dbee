/*
 * The doctor's two processes: the child that makes blocks, and how the parent starts and ends it.
 *
 * The child is hsnap.exe with a hidden command. It inherits four handles: the memory for its truth, two
 * events that take turns (it says it is there, waits, makes its heaps, waits, does its work, says so and
 * waits for its end), and its parent, whose end ends it.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_WINDOWS_H

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/live/spawn_windows.h"
#include "snapshot/target/target.h"

#define DOCTOR_CHILD "--child" /* hsnap doctor --child HANDLE ... */

enum {
	DOCTOR_MEMORY, /* struct doctor_truth */
	DOCTOR_SAID, /* set by the child */
	DOCTOR_GO, /* set by the parent */
	DOCTOR_PARENT,
	DOCTOR_HANDLES,
};

/* The child's main(): arguments as the parent gives them. Returns its exit status. */
int doctor_child_main(int argc, char **argv);

/* The code of a function of this program; empty: it cannot be told. */
struct doctor_range doctor_code_of(const void *function);

struct doctor_child {
	struct spawn spawn;
	HANDLE handles[DOCTOR_HANDLES];
	struct doctor_truth *shared; /* as the child writes it; not to be trusted */
	struct traced traced;
	struct target target; /* the child, open */
};

/* How the child is started. */
enum doctor_start {
	DOCTOR_WITH_UST, /* with the flag that makes Windows keep stacks */
	DOCTOR_WITH_TRACER,
	DOCTOR_PLAIN,
};

/* Starts the child and waits until it is there and waits. 0, -ERR_START, -ERR_INJECT or another
 * error; doctor_child_end() in all cases. */
int doctor_child_start(struct doctor_child *child, enum doctor_start how, struct err *err);

/* Lets it make its heaps, so that what the system puts into a heap can be seen: 0 or -ERR_GONE or
 * another error. */
int doctor_child_make_heaps(struct doctor_child *child, struct err *err);

/* Lets it make its blocks and copies its truth. 0, -ERR_GONE, -ERR_SYSTEM (it could not, or what it
 * says makes no sense). */
int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err);

/* Ends the child, whatever it does, and closes everything. */
void doctor_child_end(struct doctor_child *child);

/* A segment heap of one's own, where Windows makes one. */

/* The heap, or NULL: this system makes none on demand. */
HANDLE doctor_segment_heap(void);

/*
 * A minidump of the child with all its memory, for a moment: the system's own dbghelp.dll writes it
 * into the folder for temporary files, and it is gone when its handle is, however hsnap ends.
 */

struct doctor_file {
	HANDLE handle;
	char *path; /* UTF-8, owned */
};

/* 0; -ERR_SYSTEM (there is no dbghelp.dll that can), -ERR_CREATE, -ERR_WRITE, -ERR_NOMEM.
 * doctor_file_remove() in all cases. */
int doctor_file_write(struct doctor_file *file, HANDLE process, DWORD pid, struct err *err);
void doctor_file_remove(struct doctor_file *file);

/*
 * The doctor's trials: one child for each way of starting it, read by all sources that it has.
 */

/* 0 or -ERR_NOMEM; doctor_release() in both cases. What goes wrong with a child is a finding. */
int doctor_examine(struct doctor *doctor);

#endif
