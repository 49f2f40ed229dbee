/*
 * The doctor's trials: one child for each way of starting it, read by all sources that it has.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_TRIALS_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_TRIALS_WINDOWS_H

#include "snapshot/doctor/doctor_look.h"

/* 0 or -ERR_NOMEM; doctor_release() in both cases. What goes wrong with a child is a finding. */
int doctor_examine(struct doctor *doctor);

#endif
