/*
 * One row in the making: how many were expected, how many found, and the first thing that is wrong.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_TALLY_H
#define SNAPSHOT_DOCTOR_DOCTOR_TALLY_H

#include "core/err.h"
#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_report.h"

struct doctor_tally {
	uint64_t expected, found;
	bool is_note; /* that the two differ is told, and not called a mistake */
	char first[400]; /* wrong thing; empty: none */
};

/* What a row is about: its line of the full table, and the word for it in the short one. */
struct doctor_subject {
	const char *source;
	enum doctor_heap heap;
	const char *what, *part;
};

/* Keeps the text when it is the first one. */
void doctor_tally_wrong(struct doctor_tally *tally, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds to the text when there is one. */
void doctor_tally_more(struct doctor_tally *tally, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds the row; it is ok when nothing is wrong and the numbers are equal. 0 or -ERR_NOMEM. */
int doctor_tally_add(struct doctor_report *report, const struct doctor_subject *subject,
	const struct doctor_tally *tally);

#endif
