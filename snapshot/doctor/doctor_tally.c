#include "snapshot/doctor/doctor_tally.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void doctor_tally_wrong(struct doctor_tally *tally, const char *format, ...)
{
	va_list args;

	if (tally->first[0])
		return;
	va_start(args, format);
	vsnprintf(tally->first, sizeof(tally->first), format, args);
	va_end(args);
}

void doctor_tally_more(struct doctor_tally *tally, const char *format, ...)
{
	size_t len = strlen(tally->first);
	va_list args;

	if (!len)
		return;
	va_start(args, format);
	vsnprintf(tally->first + len, sizeof(tally->first) - len, format, args);
	va_end(args);
}

int doctor_tally_add(struct doctor_report *report, const struct doctor_subject *subject,
	const struct doctor_tally *tally)
{
	struct doctor_row row = {.source = subject->source,
		.heap = doctor_heap_name(subject->heap),
		.what = subject->what,
		.part = subject->part,
		.expected = tally->expected,
		.found = tally->found,
		.verdict = DOCTOR_OK};

	if (tally->expected != tally->found || tally->first[0])
		row.verdict = tally->is_note ? DOCTOR_NOTE : DOCTOR_OFF;
	snprintf(row.detail, sizeof(row.detail), "%s", tally->first);
	return doctor_report_add(report, &row);
}
