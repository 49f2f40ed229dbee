/* A task as XML: every text escaped, every span by the rules of ISO 8601, UTF-16 by those of Unicode. */
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

#define DAY INT64_C(86400000)

static struct scheduled_task plain_task(void)
{
	return (struct scheduled_task){
		.description = "words",
		.program = "C:\\hsnap.exe",
		.arguments = "-pn app.exe",
		.folder = "C:\\dumps",
		.start = "2026-11-20T10:00:00Z",
		.every_ms = 30 * 60000,
		.limit_ms = 3600000,
	};
}

/* The text between the only <name> and its end; the caller's to free. */
static char *element(const struct buf *xml, const char *name)
{
	char open[80], close[80];
	const char *from, *to;

	snprintf(open, sizeof(open), "<%s>", name);
	snprintf(close, sizeof(close), "</%s>", name);
	from = strstr(xml->data, open);
	assert_non_null(from);
	from += strlen(open);
	assert_null(strstr(from, open));
	to = strstr(from, close);
	assert_non_null(to);
	return strndup(from, (size_t)(to - from));
}

static void assert_element(const struct buf *xml, const char *name, const char *text)
{
	char *found = element(xml, name);

	assert_string_equal(found, text);
	free(found);
}

static void test_texts_are_escaped(void **state)
{
	struct scheduled_task task = plain_task();
	struct buf xml;
	struct err err;

	(void)state;
	buf_init(&xml);
	task.description = "a & b < c > d \" e ' f ]]> \xc3\xa4 \xf0\x9f\x98\x80";
	task.program = "C:\\P & Q\\hsnap.exe";
	task.arguments = "-f \"<&>\"";
	task.folder = "C:\\</Task>";
	task.user = "D&D\\<me>";
	task.start = "<now>";
	assert_int_equal(task_xml_add(&xml, &task, &err), 0);
	assert_element(&xml, "Description",
		"a &amp; b &lt; c &gt; d &quot; e &apos; f ]]&gt; \xc3\xa4 \xf0\x9f\x98\x80");
	assert_element(&xml, "Command", "&quot;C:\\P &amp; Q\\hsnap.exe&quot;");
	assert_element(&xml, "Arguments", "-f &quot;&lt;&amp;&gt;&quot;");
	assert_element(&xml, "WorkingDirectory", "C:\\&lt;/Task&gt;");
	assert_element(&xml, "UserId", "D&amp;D\\&lt;me&gt;");
	assert_element(&xml, "StartBoundary", "&lt;now&gt;");
	buf_release(&xml);
}

static void test_what_xml_cannot_hold_is_refused(void **state)
{
	static const char *const bad[] = {"\x01", "a\nb", "\x7f", "\xc2\x85", "\xff", "\xc3",
		"\xed\xa0\x80", "\xef\xbf\xbe", "\xef\xbf\xbf"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct scheduled_task tasks[5];
		struct buf xml;

		for (size_t k = 0; k < 5; k++)
			tasks[k] = plain_task();
		tasks[0].description = tasks[1].program = tasks[2].arguments = tasks[3].folder =
			tasks[4].user = bad[i];
		for (size_t k = 0; k < 5; k++) {
			buf_init(&xml);
			assert_int_equal(task_xml_add(&xml, &tasks[k], &err), -ERR_USAGE);
			buf_release(&xml);
		}
	}
}

static void test_who_runs_it_and_when(void **state)
{
	struct scheduled_task task = plain_task();
	struct buf xml;
	struct err err;

	(void)state;
	buf_init(&xml);
	assert_int_equal(task_xml_add(&xml, &task, &err), 0);
	assert_element(&xml, "UserId", "S-1-5-18");
	assert_null(strstr(xml.data, "LogonType"));
	assert_null(strstr(xml.data, "BootTrigger"));
	assert_element(&xml, "Interval", "PT30M");
	assert_element(&xml, "ExecutionTimeLimit", "PT1H");
	buf_clear(&xml);
	task.user = "S-1-5-21-1-2-3-1001";
	task.at_boot = true;
	assert_int_equal(task_xml_add(&xml, &task, &err), 0);
	assert_element(&xml, "UserId", "S-1-5-21-1-2-3-1001");
	assert_element(&xml, "LogonType", "S4U");
	assert_non_null(strstr(xml.data, "<BootTrigger>"));
	assert_null(strstr(xml.data, "InteractiveToken"));
	buf_release(&xml);
}

/* What a task of a service's needs, by the meanings on "settingsType Complex Type": no battery, network, idle
 * time or second run may keep it from running, and nothing asks anybody. Nothing else stands there. */
static void test_every_setting(void **state)
{
	static const struct {
		const char *name, *text;
	} settings[] = {
		{"AllowStartOnDemand", "true"},
		{"MultipleInstancesPolicy", "IgnoreNew"},
		{"DisallowStartIfOnBatteries", "false"},
		{"StopIfGoingOnBatteries", "false"},
		{"AllowHardTerminate", "true"},
		{"StartWhenAvailable", "true"},
		{"RunOnlyIfNetworkAvailable", "false"},
		{"WakeToRun", "false"},
		{"Enabled", "true"},
		{"Hidden", "false"},
		{"ExecutionTimeLimit", "PT1H"},
		{"Priority", "5"},
		{"RunOnlyIfIdle", "false"},
	};
	const size_t count = sizeof(settings) / sizeof(*settings);
	struct scheduled_task task = plain_task();
	struct buf xml, inside;
	struct err err;
	char *found;
	size_t ends = 0;

	(void)state;
	buf_init(&xml);
	buf_init(&inside);
	assert_int_equal(task_xml_add(&xml, &task, &err), 0);
	found = element(&xml, "Settings");
	assert_int_equal(buf_add_text(&inside, found), 0);
	for (size_t i = 0; i < count; i++)
		assert_element(&inside, settings[i].name, settings[i].text);
	for (const char *at = found; (at = strstr(at, "</")); at++)
		ends++;
	assert_int_equal(ends, count);
	free(found);
	found = element(&xml, "Triggers");
	assert_null(strstr(found, "Enabled"));
	free(found);
	assert_element(&xml, "RunLevel", "HighestAvailable");
	buf_release(&inside);
	buf_release(&xml);
}

static const struct {
	const char *text;
	int64_t ms;
} spans[] = {
	{"PT1M", 60000},
	{"PT1H", 3600000},
	{"PT1H30M", 5400000},
	{"P1D", DAY},
	{"P31D", 31 * DAY},
	{"P1DT2H3M4S", DAY + 2 * 3600000 + 3 * 60000 + 4000},
	{"P2DT1S", 2 * DAY + 1000},
	{"PT59S", 59000},
	{"PT0S", 0},
};

static void test_spans_are_written_and_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
		struct buf text;
		int64_t ms = -1;

		buf_init(&text);
		assert_int_equal(iso_duration_add(&text, spans[i].ms), 0);
		assert_string_equal(text.data, spans[i].text);
		assert_int_equal(iso_duration_parse(spans[i].text, &ms), 0);
		assert_int_equal(ms, spans[i].ms);
		buf_release(&text);
	}
}

static void test_spans_of_other_forms_are_read_or_refused(void **state)
{
	static const char *const bad[] = {"", "P", "PT", "P1", "P1DT", "PT1", "1D", "P1H", "PT1D",
		"PT1M1H", "P1M", "P1Y", "PT1.5M", "PT-1M", "-PT1M", "P1D1D", "PT1H1H", "P1W",
		"PT99999999999999999999M", "pt1m", " PT1M", "PT1M ", "P1DTT1M", "PT1MT1M", "PTT1M"};
	int64_t ms;

	(void)state;
	assert_int_equal(iso_duration_parse("PT90M", &ms), 0);
	assert_int_equal(ms, 5400000);
	assert_int_equal(iso_duration_parse("P0DT0H5M", &ms), 0);
	assert_int_equal(ms, 300000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ms = 77;
		assert_int_equal(iso_duration_parse(bad[i], &ms), -ERR_USAGE);
		assert_int_equal(ms, 77);
	}
}

static void test_utf16(void **state)
{
	/* U+00E4, U+20AC, U+1F600 by the tables of Unicode; a line's end is CRLF */
	static const unsigned char expected[] = {
		0xff, 0xfe, 'a', 0, 0xe4, 0, 0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde, '\r', 0, '\n', 0};
	struct buf bytes;

	(void)state;
	buf_init(&bytes);
	assert_int_equal(task_xml_utf16(&bytes, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n"), 0);
	assert_int_equal(bytes.len, sizeof(expected));
	assert_memory_equal(bytes.data, expected, sizeof(expected));
	buf_clear(&bytes);
	assert_int_equal(task_xml_utf16(&bytes, "a\xff"), -ERR_USAGE);
	buf_release(&bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts_are_escaped),
		cmocka_unit_test(test_what_xml_cannot_hold_is_refused),
		cmocka_unit_test(test_who_runs_it_and_when),
		cmocka_unit_test(test_every_setting),
		cmocka_unit_test(test_spans_are_written_and_read),
		cmocka_unit_test(test_spans_of_other_forms_are_read_or_refused),
		cmocka_unit_test(test_utf16),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
