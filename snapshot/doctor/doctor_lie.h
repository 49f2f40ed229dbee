/*
 * Lies about one block, so that tests can see the doctor notice: the child tells one when the
 * environment variable names it.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_LIE_H
#define SNAPSHOT_DOCTOR_DOCTOR_LIE_H

#include "snapshot/doctor/doctor.h"

#define DOCTOR_LIE_VARIABLE "HSNAP_DOCTOR_LIE"

/*
 * Changes what a settled truth says about one live block of the growable heap. how is "size",
 * "place" (8 bytes further), "heap", "site", "silent" (the block is left out), "freed" (it is said to
 * be freed). False when there is no such lie or no such block.
 */
bool doctor_lie(struct doctor_truth *truth, const char *how);

#endif
