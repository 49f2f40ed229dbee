/* Rows of the doctor's report. They are printed as a short table, grouped by source and heap, or in
 * full. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor.h"

void doctor_init(struct doctor *doctor)
{
	*doctor = (struct doctor){.truth = xcalloc(1, sizeof(*doctor->truth))};
}

void doctor_release(struct doctor *doctor)
{
	buf_release(&doctor->notes);
	free(doctor->rows);
	free(doctor->truth);
}

void doctor_add(struct doctor *doctor, const struct doctor_row *row)
{
	struct doctor_row *added;

	array_grow((void **)&doctor->rows, &doctor->row_cap, doctor->row_count, sizeof(*row));
	added = &doctor->rows[doctor->row_count++];
	*added = *row;
	if (added->verdict == DOCTOR_OK && (row->expected != row->found || *row->detail))
		added->verdict = DOCTOR_OFF;
}

void doctor_add_reason(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const char *why)
{
	struct doctor_row row = {.source = source,
		.heap = "",
		.what = what,
		.part = what,
		.verdict = verdict,
		.has_no_numbers = true};

	snprintf(row.detail, sizeof(row.detail), "%s", why);
	doctor_add(doctor, &row);
}

void doctor_add_error(struct doctor *doctor, const char *source, const char *what,
	enum doctor_verdict verdict, const struct err *why)
{
	char text[700];

	(verdict == DOCTOR_OFF ? err_text : err_reason)(why, text, sizeof(text));
	doctor_add_reason(doctor, source, what, verdict, text);
}

void doctor_note(struct doctor *doctor, const char *name, const char *format, ...)
{
	char line[700];
	va_list args;
	int len = snprintf(line, sizeof(line), "%-14s  ", name);

	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - (size_t)len - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	if (!doctor->notes.data || !strstr(doctor->notes.data, line))
		buf_add_text(&doctor->notes, line);
}

size_t doctor_count(const struct doctor *doctor, const char *source, enum doctor_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < doctor->row_count; i++)
		count += doctor->rows[i].verdict == verdict &&
			 (!source || !strcmp(doctor->rows[i].source, source));
	return count;
}

#define ROW "%-9s %-14s %-26s %9s %9s  %s\n"
#define SHORT_ROW "%-9s %-14s %-52s  %s\n"
#define NUMBER_BYTES 24 /* room for any number as text */

static const char *const verdict_names[] = {[DOCTOR_OK] = "ok",
	[DOCTOR_NOTE] = "note",
	[DOCTOR_OFF] = "OFF",
	[DOCTOR_NOT_THERE] = "not there"};

static void print_rows(const struct doctor *doctor, FILE *to)
{
	const char *source = "";

	fprintf(to, ROW, "source", "heap", "what", "expected", "found", "ok");
	for (size_t i = 0; i < doctor->row_count; i++) {
		const struct doctor_row *row = &doctor->rows[i];
		char expected[NUMBER_BYTES] = "-", found[NUMBER_BYTES] = "-";

		if (strcmp(source, row->source) != 0)
			fputc('\n', to);
		source = row->source;
		if (!row->has_no_numbers) {
			snprintf(expected, sizeof(expected), "%" PRIu64, row->expected);
			snprintf(found, sizeof(found), "%" PRIu64, row->found);
		}
		fprintf(to, ROW, row->source, row->heap, row->what, expected, found,
			verdict_names[row->verdict]);
	}
}

/* Adds the sums of consecutive rows of one part, such as "2503/2503 blocks". Returns the number of
 * these rows. A part in which nothing was expected or found is omitted, unless it is the first
 * part. */
static size_t add_part(char *text, size_t size, const struct doctor_row *rows, size_t count)
{
	uint64_t expected = 0, found = 0;
	size_t len = strlen(text), i;

	for (i = 0; i < count && !strcmp(rows[i].part, rows[0].part); i++) {
		expected += rows[i].expected;
		found += rows[i].found;
	}
	if (rows[0].has_no_numbers)
		snprintf(text + len, size - len, "%s%s", len ? ", " : "", rows[0].part);
	else if (expected || found || !len)
		snprintf(text + len, size - len, "%s%" PRIu64 "/%" PRIu64 " %s", len ? ", " : "",
			expected, found, rows[0].part);
	return i;
}

/* Prints one line for the rows of one source and heap. Any other verdict takes precedence over
 * DOCTOR_NOT_THERE. */
static void print_findings(const struct doctor_row *rows, size_t count, FILE *to)
{
	enum doctor_verdict worst = rows[0].verdict;
	char text[400] = "";

	for (size_t i = 0; i < count; i++) {
		if (rows[i].verdict != DOCTOR_NOT_THERE && rows[i].verdict > worst)
			worst = rows[i].verdict;
	}
	for (size_t i = 0; i < count;)
		i += add_part(text, sizeof(text), rows + i, count - i);
	fprintf(to, SHORT_ROW, rows->source, rows->heap, text, verdict_names[worst]);
}

/* Prints the short table. Omits rows without a heap and numbers; they appear only among the
 * reasons. */
static void print_short(const struct doctor *doctor, FILE *to)
{
	size_t count;

	fprintf(to, SHORT_ROW, "source", "heap", "expected/found", "ok");
	for (size_t i = 0; i < doctor->row_count; i += count) {
		const struct doctor_row *rows = &doctor->rows[i];

		count = 1;
		while (*rows->heap && i + count < doctor->row_count &&
			!strcmp(rows->source, rows[count].source) &&
			!strcmp(rows->heap, rows[count].heap))
			count++;
		if (*rows->heap || !rows->has_no_numbers)
			print_findings(rows, count, to);
	}
}

static void print_reasons(const struct doctor *doctor, enum doctor_verdict verdict, FILE *to)
{
	for (size_t i = 0; i < doctor->row_count; i++) {
		const struct doctor_row *row = &doctor->rows[i];

		if (row->verdict != verdict)
			continue;
		fprintf(to, "%s: %s%s%s, %s", verdict_names[verdict], row->source,
			*row->heap ? ", " : "", row->heap, row->what);
		if (!row->has_no_numbers)
			fprintf(to, ": expected %" PRIu64 ", found %" PRIu64, row->expected,
				row->found);
		fprintf(to, "%s%s\n", *row->detail ? ": " : "", row->detail);
	}
}

/* Prints the most important parts, the mistakes and the verdict, last, so that a terminal shows
 * them. */
void doctor_print(const struct doctor *doctor, bool is_verbose, FILE *to)
{
	size_t off = doctor_count(doctor, NULL, DOCTOR_OFF);

	fprintf(to, "hsnap %s on %s\n\n", HSNAP_VERSION,
		*doctor->os ? doctor->os : "an unknown system");
	(is_verbose ? print_rows : print_short)(doctor, to);
	fprintf(to, "\nused:\n%s\n", doctor->notes.len ? doctor->notes.data : "nothing\n");
	if (doctor_count(doctor, "ust", DOCTOR_NOT_THERE) && !doctor->is_wine)
		fputs("To test +ust as an administrator sets it, run 'hsnap ust on hsnap.exe', "
		      "then hsnap doctor again,\n"
		      "then 'hsnap ust off hsnap.exe'.\n"
		      "\n",
			to);
	print_reasons(doctor, DOCTOR_NOT_THERE, to);
	print_reasons(doctor, DOCTOR_NOTE, to);
	print_reasons(doctor, DOCTOR_OFF, to);
	if (off)
		fprintf(to, "\n%zu row%s OFF: do not trust hsnap's results on this system.\n", off,
			off == 1 ? " is" : "s are");
	else if (doctor_count(doctor, NULL, DOCTOR_NOTE))
		fputs("\nNothing is off; the notes above are probably harmless.\n", to);
	else
		fputs("\nEverything was read correctly.\n", to);
}
