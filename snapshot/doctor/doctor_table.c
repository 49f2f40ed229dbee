#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "snapshot/doctor/doctor_report.h"

#define ROW "%-9s %-14s %-26s %9s %9s  %s\n"

static const char *word(enum doctor_verdict verdict)
{
	static const char *const words[] = {
		[DOCTOR_OK] = "ok", [DOCTOR_OFF] = "OFF", [DOCTOR_NOT_THERE] = "not there"};

	return words[verdict];
}

static void print_row(const struct doctor_row *row, FILE *to)
{
	char expected[24] = "-", found[24] = "-";

	if (!row->has_no_numbers) {
		snprintf(expected, sizeof(expected), "%" PRIu64, row->expected);
		snprintf(found, sizeof(found), "%" PRIu64, row->found);
	}
	fprintf(to, ROW, row->source, row->heap, row->what, expected, found, word(row->verdict));
}

static void print_detail(const struct doctor_row *row, FILE *to)
{
	fprintf(to, "%s: %s%s%s, %s: %s\n", word(row->verdict), row->source, *row->heap ? ", " : "",
		row->heap, row->what, row->detail);
}

void doctor_report_print(const struct doctor_report *report, FILE *to)
{
	const struct doctor_row *row = report->rows, *end = row + report->count;
	const char *source = "";
	bool first = true;

	fprintf(to, ROW, "source", "heap", "what", "expected", "found", "ok");
	for (; row < end; row++) {
		if (strcmp(source, row->source) != 0)
			fputc('\n', to);
		source = row->source;
		print_row(row, to);
	}
	for (row = report->rows; row < end; row++) {
		if (row->verdict == DOCTOR_OK || !row->detail[0])
			continue;
		if (first)
			fputc('\n', to);
		first = false;
		print_detail(row, to);
	}
}
