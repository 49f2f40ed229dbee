#include "tests/unit/t.h"

#include "snapshot/doctor/doctor.h"

static struct doctor doctor;

/* Returns the printed report, valid until the next call. */
static const char *printed(bool is_verbose)
{
	static char text[8000];
	FILE *file = tmpfile();
	size_t len;

	assert_non_null(file);
	doctor_print(&doctor, is_verbose, file);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = 0;
	(void)fclose(file);
	return text;
}

static void messages(const char *source, enum doctor_verdict verdict)
{
	struct err err;

	err_set(&err, ERR_NO_STACKS, "", "no such");
	doctor_add_error(&doctor, source, "stacks", verdict, &err);
}

static void add(const char *heap, const char *part, uint64_t expected, uint64_t found,
	enum doctor_verdict verdict)
{
	struct doctor_row row = {.source = "walk",
		.heap = heap,
		.what = "a kind",
		.part = part,
		.expected = expected,
		.found = found,
		.verdict = verdict,
		.detail = ""};

	if (verdict != DOCTOR_OK)
		snprintf(row.detail, sizeof(row.detail), "a reason");

	doctor_add(&doctor, &row);
}

static int set_up(void **state)
{
	(void)state;
	doctor_init(&doctor);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	doctor_release(&doctor);
	return 0;
}

/* Returns the line that begins with start, valid until the next call. */
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

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(test_every_row_is_in_full_table)
{
	const char *text;

	add("here", "blocks", 7, 7, DOCTOR_OK);
	add("there", "other", 0, UINT64_MAX, DOCTOR_OFF);
	add("there", "freed", 5, 4, DOCTOR_NOTE);
	messages("os", DOCTOR_NOT_THERE);
	text = printed(true);
	assert_non_null(strstr(text, "7         7  ok\n"));
	assert_non_null(strstr(text, "0 18446744073709551615  OFF\n"));
	assert_non_null(strstr(text, "5         4  note\n"));
	assert_non_null(strstr(text, "-         -  not there\n"));
}

TEST(test_one_short_line_has_sums_of_each_part_of_heap)
{
	const char *text;

	add("here", "blocks", 7, 7, DOCTOR_OK);
	add("here", "blocks", 30, 30, DOCTOR_OK);
	add("here", "freed", 9, 9, DOCTOR_OK);
	add("here", "other", 0, 0, DOCTOR_OK);
	add("there", "blocks", 1, 1, DOCTOR_OK);
	add("", "places", 0, 0, DOCTOR_OK);
	add("", "more", 2, 2, DOCTOR_OK);
	text = printed(false);
	assert_string_equal(line(text, "walk      here "),
		"walk      here           37/37 blocks, 9/9 freed"
		"                               ok");
	assert_non_null(strstr(line(text, "walk      there"), " 1/1 blocks  "));
	assert_non_null(strstr(text, " 0/0 places "));
	assert_non_null(strstr(text, " 2/2 more "));
}

TEST(test_short_line_hides_nothing_that_is_off)
{
	const char *text;

	add("a", "blocks", 7, 7, DOCTOR_OK);
	add("a", "blocks", 7, 6, DOCTOR_OFF);
	add("a", "other", 0, 3, DOCTOR_NOTE);
	add("b", "blocks", 7, 7, DOCTOR_OK);
	add("b", "other", 0, 3, DOCTOR_NOTE);
	/* The numbers are equal, but the row is off because the wrong block was found. */
	add("c", "other", 0, 0, DOCTOR_OFF);
	add("c", "blocks", 1, 1, DOCTOR_OK);
	text = printed(false);
	assert_non_null(strstr(line(text, "walk      a "), "14/13 blocks, 0/3 other"));
	assert_non_null(strstr(line(text, "walk      a "), "  OFF"));
	assert_non_null(strstr(line(text, "walk      b "), "7/7 blocks, 0/3 other"));
	assert_non_null(strstr(line(text, "walk      b "), "  note"));
	assert_non_null(strstr(line(text, "walk      c "), "  OFF"));
}

TEST(test_what_has_no_numbers_is_in_short_table_with_its_heap_only)
{
	const struct doctor_row unwalked = {.source = "walk",
		.heap = "there",
		.what = "walking it",
		.part = "walking it",
		.verdict = DOCTOR_OFF,
		.has_no_numbers = true};
	const char *text;

	messages("os", DOCTOR_NOT_THERE);
	doctor_add(&doctor, &unwalked);
	text = printed(false);
	assert_non_null(strstr(line(text, "walk      there          walking it "), "  OFF"));
	assert_non_null(strstr(text, "\nOFF: walk, there, walking it\n"));
	assert_null(strstr(text, "\nos "));
}

TEST(test_reasons_and_verdict_are_last_what_is_off_at_end)
{
	const char *text;

	add("here", "blocks", 7, 7, DOCTOR_OK);
	text = printed(false);
	assert_non_null(strstr(text, "\n\nused:\nnothing\n\n\nEverything was read correctly.\n"));
	add("here", "other", 0, 3, DOCTOR_NOTE);
	messages("os", DOCTOR_NOT_THERE);
	doctor_note(&doctor, "held", "by %s", "hand");
	doctor_note(&doctor, "held", "by %s", "hand");
	text = printed(false);
	assert_non_null(
		strstr(text, "\n\nused:\nheld            by hand\n\n"
			     "not there: os, stacks: the process has no such stacks (no such)\n"
			     "note: walk, here, a kind: expected 0, found 3: a reason\n\n"
			     "Nothing is off; the notes above are probably harmless.\n"));
	add("here", "blocks", 7, 6, DOCTOR_OFF);
	text = printed(true);
	assert_non_null(
		strstr(text, "\nnote: walk, here, a kind: expected 0, found 3: a reason\n"
			     "OFF: walk, here, a kind: expected 7, found 6: a reason\n\n"
			     "1 row is OFF: do not trust hsnap's results on this system.\n"));
	add("here", "blocks", 0, 6, DOCTOR_OFF);
	assert_non_null(strstr(printed(true), "\n2 rows are OFF: "));
}

TEST(test_administrator_is_asked_for_ust_where_that_may_help)
{
	messages("os", DOCTOR_NOT_THERE);
	assert_null(strstr(printed(false), "hsnap ust on hsnap.exe"));
	messages("ust", DOCTOR_NOT_THERE);
	assert_non_null(strstr(printed(false), "hsnap ust on hsnap.exe"));
	doctor.is_wine = true;
	assert_null(strstr(printed(false), "hsnap ust on hsnap.exe"));
}
