#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "snapshot/doctor/doctor_report.h"

void doctor_report_init(struct doctor_report *report)
{
	*report = (struct doctor_report){0};
}

void doctor_report_release(struct doctor_report *report)
{
	free(report->rows);
	doctor_report_init(report);
}

size_t doctor_report_count(const struct doctor_report *report, enum doctor_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += report->rows[i].verdict == verdict;
	return count;
}

size_t doctor_report_off(const struct doctor_report *report)
{
	return doctor_report_count(report, DOCTOR_OFF);
}

int doctor_report_add(struct doctor_report *report, const struct doctor_row *row)
{
	if (array_grow((void **)&report->rows, &report->cap, report->count, sizeof(*row)))
		return -ERR_NOMEM;
	report->rows[report->count++] = *row;
	return 0;
}

int doctor_report_say(struct doctor_report *report, const char *source, const char *what,
	enum doctor_verdict verdict, const char *detail)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = what,
		.part = what,
		.verdict = verdict,
		.has_no_numbers = true};

	snprintf(row.detail, sizeof(row.detail), "%s", detail);
	return doctor_report_add(report, &row);
}

bool doctor_report_has(
	const struct doctor_report *report, const char *source, enum doctor_verdict verdict)
{
	for (size_t i = 0; i < report->count; i++) {
		if (!strcmp(report->rows[i].source, source) && report->rows[i].verdict == verdict)
			return true;
	}
	return false;
}
