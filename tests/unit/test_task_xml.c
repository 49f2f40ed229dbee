/* A task as XML: every text escaped, every span by the rules of ISO 8601, UTF-16 by those of Unicode. */
#include "tests/unit/t.h"

#include "snapshot/schedule/task.h"

static struct task_request plain_request(void)
{
	return (struct task_request){
		.name = "app.exe",
		.every = "30m",
		.folder = "C:\\dumps",
		.program = "C:\\hsnap.exe",
		.start = "2026-11-20T10:00Z",
	};
}

/* What becomes of the XML of what is asked for, in the empty xml. */
static int make_xml(struct buf *xml, const struct task_request *request)
{
	struct task_plan plan = {0};
	struct err err;
	int rc;

	assert_int_equal(task_plan_make(&plan, request, &err), 0);
	rc = task_xml_add(xml, &plan, &err);
	task_plan_release(&plan);
	return rc;
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

TEST(test_texts_are_escaped)
{
	struct task_request request = plain_request();
	struct buf xml;

	buf_init(&xml);
	request.name = "a & b's \xf0\x9f\x98\x80.exe";
	request.folder = "C:\\d & 'd' ]] \xc3\xa4";
	request.program = "C:\\P & Q\\hsnap.exe";
	request.user = "D&D\\<me> \"'";
	assert_int_equal(make_xml(&xml, &request), 0);
	assert_element(&xml, "Description",
		"Writes the live heap blocks of a &amp; b&apos;s \xf0\x9f\x98\x80.exe into C:\\d "
		"&amp; &apos;d&apos; ]] \xc3\xa4 every 30m and keeps the newest 100 files of each "
		"process. Made by hsnap schedule add.");
	assert_element(&xml, "Command", "&quot;C:\\P &amp; Q\\hsnap.exe&quot;");
	assert_element(&xml, "Arguments",
		"-pn &quot;a &amp; b&apos;s \xf0\x9f\x98\x80.exe&quot; -f &quot;C:\\d &amp; "
		"&apos;d&apos; ]] \xc3\xa4\\{name}-{pid}-{time}.txt&quot; --by-stack --keep 100 "
		"--all --log &quot;C:\\d &amp; &apos;d&apos; ]] \xc3\xa4\\a &amp; b&apos;s "
		"\xf0\x9f\x98\x80.exe.log&quot;");
	assert_element(&xml, "WorkingDirectory", "C:\\P &amp; Q");
	assert_element(&xml, "UserId", "D&amp;D\\&lt;me&gt; &quot;&apos;");
	assert_element(&xml, "StartBoundary", "2026-11-20T10:00:00Z");
	buf_release(&xml);
}

TEST(test_what_xml_cannot_hold_is_refused)
{
	static const char *const bad[] = {"\x01", "a\nb", "\x7f", "\xc2\x85", "\xff", "\xc3",
		"\xed\xa0\x80", "\xef\xbf\xbe", "\xef\xbf\xbf"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct task_request request = plain_request();
		struct buf xml;

		buf_init(&xml);
		request.user = bad[i];
		assert_int_equal(make_xml(&xml, &request), -ERR_USAGE);
		buf_release(&xml);
	}
}

TEST(test_who_runs_it_and_when)
{
	struct task_request request = plain_request();
	struct buf xml;

	buf_init(&xml);
	assert_int_equal(make_xml(&xml, &request), 0);
	assert_element(&xml, "UserId", "S-1-5-18");
	assert_null(strstr(xml.data, "LogonType"));
	assert_null(strstr(xml.data, "BootTrigger"));
	buf_clear(&xml);
	request.user = "S-1-5-21-1-2-3-1001";
	request.at_boot = true;
	assert_int_equal(make_xml(&xml, &request), 0);
	assert_element(&xml, "UserId", "S-1-5-21-1-2-3-1001");
	assert_element(&xml, "LogonType", "S4U");
	assert_non_null(strstr(xml.data, "<BootTrigger>"));
	assert_null(strstr(xml.data, "InteractiveToken"));
	buf_release(&xml);
}

/* What a task of a service's needs, by the meanings on "settingsType Complex Type": no battery, network, idle
 * time or second run may keep it from running, and nothing asks anybody. Nothing else stands there. */
TEST(test_every_setting)
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
	struct task_request request = plain_request();
	struct buf xml, inside;
	char *found;
	size_t ends = 0;

	buf_init(&xml);
	buf_init(&inside);
	assert_int_equal(make_xml(&xml, &request), 0);
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

/* Days, hours and minutes, by ISO 8601: XML has the same ("duration", W3C XML Schema). */
TEST(test_spans)
{
	static const struct {
		const char *asked, *span;
	} cases[] = {{"1m", "PT1M"}, {"1h", "PT1H"}, {"1h30m", "PT1H30M"}, {"90m", "PT1H30M"},
		{"1d", "P1D"}, {"31d", "P31D"}, {"1d2h3m", "P1DT2H3M"}, {"2d1m", "P2DT1M"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_request request = plain_request();
		struct buf xml;

		buf_init(&xml);
		request.every = request.limit = cases[i].asked;
		assert_int_equal(make_xml(&xml, &request), 0);
		assert_element(&xml, "Interval", cases[i].span);
		assert_element(&xml, "ExecutionTimeLimit", cases[i].span);
		buf_release(&xml);
	}
}

TEST(test_utf16)
{
	/* U+00E4, U+20AC, U+1F600 by the tables of Unicode; a line's end is CRLF */
	static const unsigned char expected[] = {
		0xff, 0xfe, 'a', 0, 0xe4, 0, 0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde, '\r', 0, '\n', 0};
	struct buf bytes;

	buf_init(&bytes);
	task_xml_utf16(&bytes, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n");
	assert_int_equal(bytes.len, sizeof(expected));
	assert_memory_equal(bytes.data, expected, sizeof(expected));
	buf_clear(&bytes);
	buf_release(&bytes);
}
