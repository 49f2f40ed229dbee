/*
 * The doctor's findings: rows of "expected, found", and printing them.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_REPORT_H
#define SNAPSHOT_DOCTOR_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE, /* not as expected, and no mistake for sure */
	DOCTOR_OFF,
	DOCTOR_NOT_THERE, /* not to be had in this place: nothing is wrong, nothing is proven */
};

struct doctor_row {
	const char *source, *heap, *what; /* literals; heap may be empty */
	const char
		*part; /* a literal: the word for it in the short table, where such rows are one */
	uint64_t expected, found;
	enum doctor_verdict verdict;
	bool has_no_numbers;
	char detail[700]; /* the first thing that is wrong, or why it is not there; may be empty */
};

struct doctor_report {
	struct doctor_row *rows;
	size_t count, cap;
};

void doctor_report_init(struct doctor_report *report);
void doctor_report_release(struct doctor_report *report);

/* How many rows have this verdict, and how many are off. */
size_t doctor_report_count(const struct doctor_report *report, enum doctor_verdict verdict);
size_t doctor_report_off(const struct doctor_report *report);

/* Adds a copy of row. 0 or -ERR_NOMEM. */
int doctor_report_add(struct doctor_report *report, const struct doctor_row *row);

/* Adds a row that has no numbers. 0 or -ERR_NOMEM. */
int doctor_report_say(struct doctor_report *report, const char *source, const char *what,
	enum doctor_verdict verdict, const char *detail);

/* True when there is a row of this source with this verdict. */
bool doctor_report_has(
	const struct doctor_report *report, const char *source, enum doctor_verdict verdict);

/* Prints every row. */
void doctor_report_print_rows(const struct doctor_report *report, FILE *to);

/* Prints one line for each source and heap, with its rows' numbers in it; rows that have neither are left
 * to doctor_report_print_details(). */
void doctor_report_print_short(const struct doctor_report *report, FILE *to);

/* Prints a line for each row of this verdict, with the reason. */
void doctor_report_print_details(
	const struct doctor_report *report, enum doctor_verdict verdict, FILE *to);

#endif
