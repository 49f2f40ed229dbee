#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/doctor/doctor.h"

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

#define ROW "%-9s %-14s %-26s %9s %9s  %s\n"
#define SHORT_ROW "%-9s %-14s %-52s  %s\n"
#define NUMBER_BYTES 24 /* of any number as text */

static const char *word(enum doctor_verdict verdict)
{
	static const char *const words[] = {[DOCTOR_OK] = "ok",
		[DOCTOR_NOTE] = "note",
		[DOCTOR_OFF] = "OFF",
		[DOCTOR_NOT_THERE] = "not there"};

	return words[verdict];
}

static void print_row(const struct doctor_row *row, FILE *to)
{
	char expected[NUMBER_BYTES] = "-", found[NUMBER_BYTES] = "-";

	if (!row->has_no_numbers) {
		snprintf(expected, sizeof(expected), "%" PRIu64, row->expected);
		snprintf(found, sizeof(found), "%" PRIu64, row->found);
	}
	fprintf(to, ROW, row->source, row->heap, row->what, expected, found, word(row->verdict));
}

void doctor_report_print_rows(const struct doctor_report *report, FILE *to)
{
	const char *source = "";

	fprintf(to, ROW, "source", "heap", "what", "expected", "found", "ok");
	for (size_t i = 0; i < report->count; i++) {
		if (strcmp(source, report->rows[i].source) != 0)
			fputc('\n', to);
		source = report->rows[i].source;
		print_row(&report->rows[i], to);
	}
}

/* True when the two are one line of the short table. */
static bool are_one_line(const struct doctor_row *a, const struct doctor_row *b)
{
	return *a->heap && !strcmp(a->source, b->source) && !strcmp(a->heap, b->heap);
}

/* The worst of a line's verdicts; what is not there says less than what is. */
static enum doctor_verdict worst(const struct doctor_row *rows, size_t count)
{
	enum doctor_verdict verdict = rows[0].verdict;

	for (size_t i = 1; i < count; i++) {
		if (rows[i].verdict != DOCTOR_NOT_THERE && rows[i].verdict > verdict)
			verdict = rows[i].verdict;
	}
	return verdict;
}

/* Adds "2503/2503 blocks": the sums of the rows of one part, the first of which rows[0] is. Parts that
 * are nothing, as they should be, are left out, but for the first. */
static void add_part(char *text, size_t size, const struct doctor_row *rows, size_t count)
{
	uint64_t expected = 0, found = 0;
	size_t len = strlen(text);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[i].part, rows[0].part) != 0)
			continue;
		expected += rows[i].expected;
		found += rows[i].found;
	}
	if (rows[0].has_no_numbers)
		snprintf(text + len, size - len, "%s%s", len ? ", " : "", rows[0].part);
	else if (expected || found || !len)
		snprintf(text + len, size - len, "%s%" PRIu64 "/%" PRIu64 " %s", len ? ", " : "",
			expected, found, rows[0].part);
}

static bool is_first_of_part(const struct doctor_row *rows, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (!strcmp(rows[k].part, rows[i].part))
			return false;
	}
	return true;
}

static void print_line(const struct doctor_row *rows, size_t count, FILE *to)
{
	char text[400] = "";

	for (size_t i = 0; i < count; i++) {
		if (is_first_of_part(rows, i))
			add_part(text, sizeof(text), rows + i, count - i);
	}
	fprintf(to, SHORT_ROW, rows->source, rows->heap, text, word(worst(rows, count)));
}

void doctor_report_print_short(const struct doctor_report *report, FILE *to)
{
	size_t count;

	fprintf(to, SHORT_ROW, "source", "heap", "expected/found", "ok");
	for (size_t i = 0; i < report->count; i += count) {
		const struct doctor_row *rows = &report->rows[i];

		for (count = 1; i + count < report->count; count++) {
			if (!are_one_line(rows, rows + count))
				break;
		}
		if (*rows->heap || !rows->has_no_numbers)
			print_line(rows, count, to);
	}
}

void doctor_report_print_details(
	const struct doctor_report *report, enum doctor_verdict verdict, FILE *to)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct doctor_row *row = &report->rows[i];

		if (row->verdict != verdict)
			continue;
		fprintf(to, "%s: %s%s%s, %s", word(verdict), row->source, *row->heap ? ", " : "",
			row->heap, row->what);
		if (!row->has_no_numbers)
			fprintf(to, ": expected %" PRIu64 ", found %" PRIu64, row->expected,
				row->found);
		fprintf(to, "%s%s\n", *row->detail ? ": " : "", row->detail);
	}
}
