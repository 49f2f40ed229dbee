/*
 * The doctor's trials: one child for each way of starting it, read by all sources that it has.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_TRIALS_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_TRIALS_WINDOWS_H

#include "core/buf.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_report.h"

struct doctor {
	struct doctor_report report;
	struct doctor_truth *truth; /* of the child that is looked at */
	struct buf notes; /* lines, each once: what was used */
	char os[80]; /* empty: no child was ever there */
	bool is_wine;
	bool has_ust; /* every child is started with +ust: the registry says so */
};

/* 0 or -ERR_NOMEM; doctor_release() in both cases. What goes wrong with a child is a finding. */
int doctor_examine(struct doctor *doctor);
void doctor_release(struct doctor *doctor);

#endif
