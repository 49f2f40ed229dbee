/* What a task runs, read back from its XML: what is written is read, what was tampered with is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/schedule/task.h"

#define EXEC(inside) "<Task><Actions><Exec>" inside "</Exec></Actions></Task>"
#define COMMAND "<Command>\"C:\\hsnap.exe\"</Command>"

static int read_text(struct task_read *task, const char *text, struct err *err)
{
	return task_read(task, text, strlen(text), "app.exe", err);
}

static void assert_read(
	const char *text, const char *program, const char *arguments, const char *folder)
{
	struct task_read task;
	struct err err = {0};

	task_read_init(&task);
	if (read_text(&task, text, &err))
		fail_msg("%s: %s", text, err.detail);
	assert_string_equal(task.program.data, program);
	assert_string_equal(task.arguments.data ? task.arguments.data : "", arguments);
	assert_string_equal(task.folder.data ? task.folder.data : "", folder);
	task_read_release(&task);
}

/* detail may be NULL: any reason will do. */
static void assert_refused_for(const char *text, const char *detail)
{
	struct task_read task;
	struct err err = {0};
	int rc;

	task_read_init(&task);
	rc = read_text(&task, text, &err);
	if (rc != -ERR_TASK)
		fail_msg("%s: %d", text, rc);
	assert_string_equal(err.place, "app.exe");
	if (detail)
		assert_string_equal(err.detail, detail);
	assert_null(task.program.data);
	task_read_release(&task);
}

static void assert_refused(const char *text)
{
	assert_refused_for(text, NULL);
}

static void test_what_is_written_is_read(void **state)
{
	struct scheduled_task task = {
		.description = "a & b",
		.program = "C:\\P & Q\\hs'n\xc3\xa4p.exe",
		.arguments = "-pn \"\xf0\x9f\x98\x80 <&>.exe\" ]]> &amp;",
		.folder = "\\\\server\\sh\xc3\xa4re\\\xe2\x82\xac",
		.user = "S-1-5-21-1-2-3-1001",
		.start = "2026-11-20T10:00:00Z",
		.every_ms = 5400000,
		.limit_ms = 3600000,
		.at_boot = true,
	};
	struct task_read from_utf8, from_utf16;
	struct buf xml, bytes;
	struct err err;

	(void)state;
	buf_init(&xml);
	buf_init(&bytes);
	task_read_init(&from_utf8);
	task_read_init(&from_utf16);
	assert_int_equal(task_xml_add(&xml, &task, &err), 0);
	assert_int_equal(task_xml_utf16(&bytes, xml.data), 0);
	assert_int_equal(read_text(&from_utf8, xml.data, &err), 0);
	assert_int_equal(task_read(&from_utf16, bytes.data, bytes.len, "", &err), 0);
	assert_string_equal(from_utf8.program.data, task.program);
	assert_string_equal(from_utf8.arguments.data, task.arguments);
	assert_string_equal(from_utf8.folder.data, task.folder);
	assert_int_equal(from_utf8.every_ms, 5400000);
	assert_string_equal(from_utf16.program.data, task.program);
	assert_string_equal(from_utf16.arguments.data, task.arguments);
	assert_string_equal(from_utf16.folder.data, task.folder);
	assert_int_equal(from_utf16.every_ms, 5400000);

	/* cut anywhere it is no document, or the same one: all that may be missing is the last line's end */
	for (size_t len = 0; len < bytes.len; len++) {
		struct task_read cut;
		int rc;

		task_read_init(&cut);
		rc = task_read(&cut, bytes.data, len, "", &err);
		assert_int_equal(rc, len < bytes.len - 4 ? -ERR_TASK : len % 2 ? -ERR_TASK : 0);
		task_read_release(&cut);
	}
	task_read_release(&from_utf8);
	task_read_release(&from_utf16);
	buf_release(&xml);
	buf_release(&bytes);
}

/* One byte that means something, anywhere in a task: it is read or refused, and sanitizers watch. */
static void test_any_byte_may_be_wrong(void **state)
{
	static const char wrong[] = {'<', '>', '&', '"', '/', '\xff'};
	static const char text[] =
		"<?xml version=\"1.0\"?><!-- a --><Task a='1'><Triggers><TimeTrigger><Repetition>"
		"<Interval>PT30M</Interval></Repetition></TimeTrigger></"
		"Triggers><Actions><Exec>" COMMAND
		"<Arguments>&amp;&#65;&#x42;</Arguments><WorkingDirectory>C:\\d</WorkingDirectory>"
		"</Exec></Actions></Task>\n";
	size_t refused = 0, read = 0;

	(void)state;
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		for (size_t i = 0; i < sizeof(wrong); i++) {
			char *copy = strdup(text);
			struct task_read task;
			struct err err;
			int rc;

			assert_non_null(copy);
			copy[at] = wrong[i];
			task_read_init(&task);
			rc = read_text(&task, copy, &err);
			assert_true(!rc || rc == -ERR_TASK);
			refused += rc != 0;
			read += !rc;
			task_read_release(&task);
			free(copy);
		}
	}
	assert_true(refused > 500 && read > 50);
}

static void test_forms_that_mean_the_same(void **state)
{
	(void)state;
	assert_read(EXEC(COMMAND), "C:\\hsnap.exe", "", "");
	assert_read(EXEC("<Command>C:\\hsnap.exe</Command>"), "C:\\hsnap.exe", "", "");
	assert_read("\xef\xbb\xbf<?xml version='1.0'?><!-- made by <others> --> \n" EXEC(
			    COMMAND "<Arguments/>") "<!-- end -->\n",
		"C:\\hsnap.exe", "", "");
	assert_read("<Task a='1' b = \"&amp;>\" ><Actions Context=\"x\"><Exec id='1'>" COMMAND
		    "<WorkingDirectory>C:\\d</WorkingDirectory >"
		    "<Arguments>a<!-- not here -->b&#65;&#x42;&quot;&apos;</Arguments>"
		    "</Exec></Actions></Task>",
		"C:\\hsnap.exe", "abAB\"'", "C:\\d");
	/* words of the same name elsewhere are other words */
	assert_read("<Task><RegistrationInfo><Command>D:\\x.exe</Command></RegistrationInfo>"
		    "<Actions><Exec>" COMMAND "</Exec></Actions>"
		    "<Data><Exec><Command>E:\\</Command></Exec></Data></Task>",
		"C:\\hsnap.exe", "", "");
}

static void test_more_than_one_program_is_refused(void **state)
{
	(void)state;
	assert_refused(EXEC(COMMAND COMMAND));
	assert_refused(EXEC(COMMAND "<Arguments>a</Arguments><Arguments>b</Arguments>"));
	assert_refused(
		"<Task><Actions><Exec>" COMMAND "</Exec><Exec>" COMMAND "</Exec></Actions></Task>");
	assert_refused("<Task><Actions><Exec>" COMMAND "</Exec></Actions><Actions><Exec>"
		       "</Exec></Actions></Task>");
	assert_refused("<Task><Actions><Exec>" COMMAND "</Exec><ComHandler/></Actions></Task>");
	assert_refused("<Task><Actions><SendEmail/></Actions></Task>");
}

static void test_a_command_that_names_no_file_is_refused(void **state)
{
	(void)state;
	assert_refused("<Task/>");
	assert_refused("<Task><Actions/></Task>");
	assert_refused(EXEC(""));
	assert_refused(EXEC("<Command/>"));
	assert_refused(EXEC("<Command>\"\"</Command>"));
	assert_refused(EXEC("<Command>\"</Command>"));
	assert_refused(EXEC("<Command>hsnap.exe</Command>"));
	assert_refused(EXEC("<Command>..\\hsnap.exe</Command>"));
	assert_refused(EXEC("<Command>%TEMP%\\hsnap.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\%X%\\hsnap.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\$(Arg0)\\hsnap.exe</Command>"));
	assert_refused(EXEC("<Command>\"C:\\a\" \"b.exe\"</Command>"));
	assert_refused(EXEC("<Command>C:\\a&#10;b.exe</Command>"));
	assert_refused(EXEC("<Command>\\\\?\\C:\\a.exe</Command>"));
	assert_refused(EXEC("<Command>\\\\.\\pipe\\a.exe</Command>"));
	assert_refused(EXEC(COMMAND "<WorkingDirectory>here</WorkingDirectory>"));
	assert_refused(EXEC(COMMAND "<WorkingDirectory>\"C:\\d\"</WorkingDirectory>"));
}

static void test_what_is_no_xml_of_a_task_is_refused(void **state)
{
	(void)state;
	assert_refused("");
	assert_refused("words");
	assert_refused("<Job><Actions><Exec>" COMMAND "</Exec></Actions></Job>");
	assert_refused(EXEC(COMMAND) EXEC(COMMAND));
	assert_refused(EXEC(COMMAND) "words");
	assert_refused("words" EXEC(COMMAND));
	assert_refused("<!DOCTYPE Task [<!ENTITY a \"b\">]>" EXEC(COMMAND));
	assert_refused("<!X a='1'>" EXEC(COMMAND) "</!X>");
	assert_refused("<Task><!X></!X><Actions><Exec>" COMMAND "</Exec></Actions></Task>");
	assert_refused(EXEC("<Command><![CDATA[C:\\hsnap.exe]]></Command>"));
	assert_refused(EXEC("<Command>C:\\<b>h</b>.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\&unknown;.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\a & b.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\&#0;.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\&#xd800;.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\&#x110000;.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\&#99999999999;.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\\xff.exe</Command>"));
	assert_refused(EXEC("<Command>C:\\a.exe</command>"));
	assert_refused(EXEC(COMMAND "<Arguments>"));
	assert_refused(EXEC(COMMAND "</Arguments>"));
	assert_refused(EXEC(COMMAND "<Arguments"));
	assert_refused(EXEC(COMMAND "< Arguments/>"));
	assert_refused("<Task a=1>" COMMAND "</Task>");
	assert_refused("<Task a='1>" COMMAND "</Task>");
	assert_refused("<Task a='1'b='2'></Task>");
	assert_refused("<Task><!-- " COMMAND "</Task>");
}

/* What a task is run for needs no interval. */
static void test_intervals(void **state)
{
#define TRIGGER(interval)                                                                          \
	"<TimeTrigger><Repetition><Interval>" interval "</Interval></Repetition></TimeTrigger>"
#define TRIGGERS(triggers)                                                                         \
	"<Task><Triggers>" triggers "</Triggers><Actions><Exec>" COMMAND "</Exec></Actions></"     \
	"Task>"
	static const struct {
		const char *text;
		int64_t every_ms;
	} cases[] = {
		{TRIGGERS(TRIGGER("PT30M")), 1800000},
		{TRIGGERS(TRIGGER("PT30M") "<TimeTrigger></TimeTrigger>"), 1800000},
		{TRIGGERS(TRIGGER("PT30M") TRIGGER("PT1H")), 0},
		{TRIGGERS(TRIGGER("PT30M") TRIGGER("PT30M")), 0},
		{TRIGGERS(TRIGGER("soon")), 0},
		{TRIGGERS(TRIGGER("")), 0},
		{TRIGGERS(""), 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_read task;
		struct err err = {0};

		task_read_init(&task);
		if (read_text(&task, cases[i].text, &err))
			fail_msg("%s: %s", cases[i].text, err.detail);
		assert_int_equal(task.every_ms, cases[i].every_ms);
		task_read_release(&task);
	}
}

/* A task with all that it needs, and elements in it down to that depth: what reading it returns. */
static int read_deep(size_t depth)
{
	struct task_read task;
	struct buf text;
	struct err err = {0};
	int rc;

	buf_init(&text);
	task_read_init(&task);
	assert_int_equal(
		buf_add_text(&text, "<Task><Actions><Exec>" COMMAND "</Exec></Actions>"), 0);
	for (size_t i = 1; i < depth; i++)
		assert_int_equal(buf_add_text(&text, "<d>"), 0);
	for (size_t i = 1; i < depth; i++)
		assert_int_equal(buf_add_text(&text, "</d>"), 0);
	assert_int_equal(buf_add_text(&text, "</Task>"), 0);
	assert_true(text.len < TASK_XML_MAX_BYTES);
	rc = read_text(&task, text.data, &err);
	if (rc)
		assert_string_equal(err.detail, "elements that are too deep");
	task_read_release(&task);
	buf_release(&text);
	return rc;
}

/* Sanitizers see what is written behind the last name. */
static void test_depth_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(read_deep(15), 0);
	assert_int_equal(read_deep(16), 0);
	assert_int_equal(read_deep(17), -ERR_TASK);
	assert_int_equal(read_deep(1000), -ERR_TASK);
	assert_int_equal(read_deep(30000), -ERR_TASK);
}

/* The same document is read with as many blanks as there is room for, and refused with one more. */
static void test_length_is_bounded(void **state)
{
	static const char tail[] = EXEC(COMMAND);
	struct task_read task;
	struct buf text, wide;
	struct err err = {0};

	(void)state;
	buf_init(&text);
	buf_init(&wide);
	task_read_init(&task);
	while (text.len < TASK_XML_MAX_BYTES - strlen(tail))
		assert_int_equal(buf_add_text(&text, " "), 0);
	assert_int_equal(buf_add_text(&text, tail), 0);
	assert_int_equal(read_text(&task, text.data, &err), 0);
	assert_int_equal(buf_add_text(&text, " "), 0);
	assert_int_equal(read_text(&task, text.data, &err), -ERR_TASK);
	assert_string_equal(err.detail, "it is too long");

	/* in UTF-16 the mark does not count */
	text.data[--text.len] = '\0';
	assert_int_equal(task_xml_utf16(&wide, text.data), 0);
	assert_int_equal(task_read(&task, wide.data, wide.len, "", &err), 0);
	assert_int_equal(buf_add(&wide, " ", 2), 0);
	assert_int_equal(task_read(&task, wide.data, wide.len, "", &err), -ERR_TASK);
	assert_string_equal(err.detail, "it is too long");
	task_read_release(&task);
	buf_release(&wide);
	buf_release(&text);
}

/* Each for its own reason: with another one the check that is meant could be missing. */
static void test_reasons(void **state)
{
	static const char two[] = "more than one document";

	(void)state;
	assert_refused_for("<Job/>", "it is no task");
	assert_refused_for(EXEC(COMMAND) "<Task/>", two);
	assert_refused_for(EXEC(COMMAND) "<!-- a -->\n<Task></Task>", two);
	assert_refused_for("<Task/>" EXEC(COMMAND), two);
}

/* Arguments are taken as they are, so that nothing else looks at their characters. Blanks and the lines' ends
 * are the only ones below U+0020 that XML 1.0 has ("Char"). */
static void test_characters_of_texts(void **state)
{
#define ARGUMENTS(text) EXEC(COMMAND "<Arguments>" text "</Arguments>")
	static const char *const bad[] = {ARGUMENTS("a\x1b[2J"), ARGUMENTS("a&#27;[2J"),
		ARGUMENTS("a&#x1B;[2J"), ARGUMENTS("\x01"), ARGUMENTS("a\x7f"),
		ARGUMENTS("\xc2\x9b"), ARGUMENTS("a\xff"), ARGUMENTS("&#x9b;2J")};
	static const char *const no_entity[] = {ARGUMENTS("&#6A;"), ARGUMENTS("&#x4G;"),
		ARGUMENTS("&#;"), ARGUMENTS("&#x;"), ARGUMENTS("&#-65;"),
		ARGUMENTS("&#4294967361;"), ARGUMENTS("&#x100000041;"), ARGUMENTS("&nbsp;")};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_refused_for(bad[i], "a character that a task cannot have");
	for (size_t i = 0; i < sizeof(no_entity) / sizeof(*no_entity); i++)
		assert_refused_for(no_entity[i], "an entity that tasks do not have");
	assert_read(ARGUMENTS("a\tb\nc\r\nd&#9;e&#10;f"), "C:\\hsnap.exe", "a\tb\nc\nd\te\nf", "");
#undef ARGUMENTS
}

static void test_nothing_hides_behind_a_nul(void **state)
{
	static const char text[] = EXEC(COMMAND) "\0<more/>";
	struct buf wide;
	struct task_read task;
	struct err err;

	(void)state;
	buf_init(&wide);
	task_read_init(&task);
	assert_int_equal(task_read(&task, text, sizeof(text) - 1, "", &err), -ERR_TASK);
	assert_int_equal(task_xml_utf16(&wide, text), 0);
	assert_int_equal(buf_add(&wide, "\0\0<\0", 4), 0);
	assert_int_equal(task_read(&task, wide.data, wide.len - 4, "", &err), 0);
	assert_int_equal(task_read(&task, wide.data, wide.len, "", &err), -ERR_TASK);
	task_read_release(&task);
	buf_release(&wide);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_any_byte_may_be_wrong),
		cmocka_unit_test(test_forms_that_mean_the_same),
		cmocka_unit_test(test_more_than_one_program_is_refused),
		cmocka_unit_test(test_a_command_that_names_no_file_is_refused),
		cmocka_unit_test(test_what_is_no_xml_of_a_task_is_refused),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_characters_of_texts),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_length_is_bounded),
		cmocka_unit_test(test_nothing_hides_behind_a_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
