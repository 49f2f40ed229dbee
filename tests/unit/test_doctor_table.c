/*
 * What the doctor prints: every row, or a line for each source and heap that hides nothing that is off,
 * and the reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/doctor/doctor.h"

static void print_off(const struct doctor_report *report, FILE *to)
{
	doctor_report_print_details(report, DOCTOR_OFF, to);
}

static void print_notes(const struct doctor_report *report, FILE *to)
{
	doctor_report_print_details(report, DOCTOR_NOTE, to);
}

static void print_not_there(const struct doctor_report *report, FILE *to)
{
	doctor_report_print_details(report, DOCTOR_NOT_THERE, to);
}

/* What is printed of a report, in memory that the next call takes. */
static const char *printed(const struct doctor_report *report,
	void (*print)(const struct doctor_report *report, FILE *to))
{
	static char text[4000];
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	print(report, file);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = 0;
	(void)fclose(file);
	return text;
}

static void add(struct doctor_report *report, const char *heap, const char *part, uint64_t expected,
	uint64_t found, enum doctor_verdict verdict)
{
	const struct doctor_row row = {.source = "walk",
		.heap = heap,
		.what = "a kind",
		.part = part,
		.expected = expected,
		.found = found,
		.verdict = verdict,
		.detail = "a reason"};

	assert_int_equal(doctor_report_add(report, &row), 0);
}

static int set_up(void **state)
{
	static struct doctor_report report;

	doctor_report_init(&report);
	*state = &report;
	return 0;
}

static int tear_down(void **state)
{
	doctor_report_release(*state);
	return 0;
}

/* The line of text that starts with start, in memory that the next call takes. */
static const char *line(const char *text, const char *start)
{
	static char found[400];
	const char *at = text;

	while (at && strncmp(at, start, strlen(start)) != 0)
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	if (!at || !*at) {
		fail_msg("no line starts with %s in\n%s", start, text);
		return "";
	}
	snprintf(found, sizeof(found), "%.*s", (int)strcspn(at, "\n"), at);
	return found;
}

static void test_every_row_is_in_the_full_table(void **state)
{
	struct doctor_report *report = *state;
	const char *text;

	add(report, "here", "blocks", 7, 7, DOCTOR_OK);
	add(report, "there", "other", 0, UINT64_MAX, DOCTOR_OFF);
	add(report, "there", "freed", 5, 4, DOCTOR_NOTE);
	assert_int_equal(doctor_report_say(report, "os", "stacks", DOCTOR_NOT_THERE, "no such"), 0);
	text = printed(report, doctor_report_print_rows);
	assert_non_null(strstr(text, "7         7  ok\n"));
	assert_non_null(strstr(text, "0 18446744073709551615  OFF\n"));
	assert_non_null(strstr(text, "5         4  note\n"));
	assert_non_null(strstr(text, "-         -  not there\n"));
}

static void test_one_short_line_has_the_sums_of_each_part_of_a_heap(void **state)
{
	struct doctor_report *report = *state;
	const char *text;

	add(report, "here", "blocks", 7, 7, DOCTOR_OK);
	add(report, "here", "blocks", 30, 30, DOCTOR_OK);
	add(report, "here", "freed", 9, 9, DOCTOR_OK);
	add(report, "here", "other", 0, 0, DOCTOR_OK);
	add(report, "there", "blocks", 1, 1, DOCTOR_OK);
	add(report, "", "places", 0, 0, DOCTOR_OK);
	add(report, "", "more", 2, 2, DOCTOR_OK);
	text = printed(report, doctor_report_print_short);
	assert_string_equal(line(text, "walk      here "),
		"walk      here           37/37 blocks, 9/9 freed"
		"                               ok");
	assert_non_null(strstr(line(text, "walk      there"), " 1/1 blocks  "));
	assert_non_null(strstr(text, " 0/0 places "));
	assert_non_null(strstr(text, " 2/2 more "));
}

static void test_a_short_line_hides_nothing_that_is_off(void **state)
{
	struct doctor_report *report = *state;
	const char *text;

	add(report, "a", "blocks", 7, 7, DOCTOR_OK);
	add(report, "a", "blocks", 7, 6, DOCTOR_OFF);
	add(report, "a", "other", 0, 3, DOCTOR_NOTE);
	add(report, "b", "blocks", 7, 7, DOCTOR_OK);
	add(report, "b", "other", 0, 3, DOCTOR_NOTE);
	/* The numbers are one, and still it is off: the wrong one was found. */
	add(report, "c", "other", 0, 0, DOCTOR_OFF);
	add(report, "c", "blocks", 1, 1, DOCTOR_OK);
	text = printed(report, doctor_report_print_short);
	assert_non_null(strstr(line(text, "walk      a "), "14/13 blocks, 0/3 other"));
	assert_non_null(strstr(line(text, "walk      a "), "  OFF"));
	assert_non_null(strstr(line(text, "walk      b "), "7/7 blocks, 0/3 other"));
	assert_non_null(strstr(line(text, "walk      b "), "  note"));
	assert_non_null(strstr(line(text, "walk      c "), "  OFF"));
}

static void test_what_has_no_numbers_is_in_the_short_table_with_its_heap_only(void **state)
{
	struct doctor_report *report = *state;
	const struct doctor_row unwalked = {.source = "walk",
		.heap = "there",
		.what = "walking it",
		.part = "walking it",
		.verdict = DOCTOR_OFF,
		.has_no_numbers = true};
	const char *text;

	assert_int_equal(doctor_report_say(report, "os", "stacks", DOCTOR_NOT_THERE, "no such"), 0);
	assert_int_equal(doctor_report_add(report, &unwalked), 0);
	text = printed(report, doctor_report_print_short);
	assert_null(strstr(text, "stacks"));
	assert_non_null(strstr(line(text, "walk      there          walking it "), "  OFF"));
	assert_non_null(strstr(printed(report, print_off), "walk, there, walking it"));
}

static void test_reasons_are_printed_by_verdict_with_the_numbers(void **state)
{
	struct doctor_report *report = *state;

	add(report, "here", "blocks", 7, 7, DOCTOR_OK);
	add(report, "here", "other", 0, 3, DOCTOR_NOTE);
	add(report, "here", "blocks", 7, 6, DOCTOR_OFF);
	assert_int_equal(doctor_report_say(report, "os", "stacks", DOCTOR_NOT_THERE, "no such"), 0);
	assert_int_equal(doctor_report_off(report), 1);
	assert_string_equal(printed(report, print_off),
		"OFF: walk, here, a kind: expected 7, found 6: a reason\n");
	assert_string_equal(printed(report, print_notes),
		"note: walk, here, a kind: expected 0, found 3: a reason\n");
	assert_string_equal(printed(report, print_not_there), "not there: os, stacks: no such\n");
	assert_true(doctor_report_has(report, "os", DOCTOR_NOT_THERE));
	assert_false(doctor_report_has(report, "os", DOCTOR_OFF));
	assert_false(doctor_report_has(report, "ust", DOCTOR_NOT_THERE));
}

#define REPORT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPORT(test_every_row_is_in_the_full_table),
		REPORT(test_one_short_line_has_the_sums_of_each_part_of_a_heap),
		REPORT(test_a_short_line_hides_nothing_that_is_off),
		REPORT(test_what_has_no_numbers_is_in_the_short_table_with_its_heap_only),
		REPORT(test_reasons_are_printed_by_verdict_with_the_numbers),
	};

	return cmocka_run_group_tests_name("doctor table", tests, NULL, NULL);
}
