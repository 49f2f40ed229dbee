/*
 * Looking at the doctor's child in one way after the other, and noting what was found. The child may
 * be alive or a file.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_LOOK_H
#define SNAPSHOT_DOCTOR_DOCTOR_LOOK_H

#include "core/buf.h"
#include "snapshot/capture.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_found.h"
#include "snapshot/doctor/doctor_report.h"

struct doctor {
	struct doctor_report report;
	struct doctor_truth *truth; /* of the child that is looked at */
	/* What a walk of that child found in its heaps before it used them, and after; without heaps
	 * and frames. */
	struct doctor_found before, walked;
	struct buf notes; /* lines, each once: what was used */
	char os[80]; /* empty: no child was ever there */
	bool is_wine;
	bool has_ust; /* every child is started with +ust: the registry says so */
};

/* A way of taking a snapshot, and how it is judged. */
struct doctor_dump {
	const char *source;
	enum capture_stacks stacks;
	bool must_be; /* that it is not to be had is a mistake */
	bool is_sums; /* judged by numbers alone */
};

/* All of these return 0 or -ERR_NOMEM; what goes wrong with the child is a finding. */

/* Room for a truth, and no findings; doctor_release() in both cases. */
int doctor_init(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

/* Forgets what the last child had in its heaps. */
void doctor_forget(struct doctor *doctor);

/* Notes a line of what was used, once. */
int doctor_note(struct doctor *doctor, const char *line);

/* Adds a row that has the error's reason; its remedy too when it is off. */
int doctor_say(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why);

/* Keeps what is in the heaps before the child uses them. */
int doctor_look_before(struct doctor *doctor, struct target *target);

/* Compares every block that the walkers list, with a stack or without. */
int doctor_look_walk(struct doctor *doctor, struct target *target, const char *source);

/* Compares what a dump would have, of the stacks that are wanted. */
int doctor_look_dump(struct doctor *doctor, struct target *target, const struct doctor_dump *dump);

#endif
