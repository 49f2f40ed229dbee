/* What is asked of a series of snapshots: what each option means, and what does not fit together. */
#include "tests/unit/t.h"

#include "snapshot/command/command.h"
#include "snapshot/series/file_pattern.h"

static const struct series_request fresh = SERIES_REQUEST_INIT;

TEST(test_each_option_is_what_it_says)
{
	struct series_request request = fresh;
	struct err err;

	assert_int_equal(series_option(&request, OPT_SERIES_COUNT, "48", &err), 0);
	assert_int_equal(series_option(&request, OPT_SERIES_KEEP, "7", &err), 0);
	assert_int_equal(series_option(&request, OPT_SERIES_MAX_BYTES, "1.5M", &err), 0);
	assert_int_equal(series_option(&request, OPT_SERIES_ON_EXIT, "wait", &err), 0);
	assert_int_equal(series_option(&request, OPT_SERIES_ALL, NULL, &err), 0);
	assert_int_equal(series_option(&request, OPT_SERIES_LOG, "log", &err), 0);
	assert_int_equal(request.file_count, 48);
	assert_int_equal(request.limits.keep_count, 7);
	assert_int_equal(request.limits.keep_bytes, 3 << 19);
	assert_true(request.waits);
	assert_true(request.takes_all);
	assert_string_equal(request.log, "log");
	assert_int_equal(series_option(&request, OPT_SERIES_ON_EXIT, "stop", &err), 0);
	assert_false(request.waits);
}

TEST(test_what_an_option_cannot_be_is_refused)
{
	static const struct {
		int id;
		const char *value;
	} cases[] = {
		{OPT_SERIES_COUNT, "0"},
		{OPT_SERIES_COUNT, "-1"},
		{OPT_SERIES_COUNT, "x"},
		{OPT_SERIES_COUNT, ""},
		{OPT_SERIES_COUNT, "99999999999"},
		{OPT_SERIES_KEEP, "0"},
		{OPT_SERIES_KEEP, "3x"},
		{OPT_SERIES_MAX_BYTES, "0"},
		{OPT_SERIES_MAX_BYTES, "1Q"},
		{OPT_SERIES_ON_EXIT, "go"},
		{OPT_SERIES_ON_EXIT, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct series_request request = fresh;
		struct err err = {0};

		assert_int_equal(
			series_option(&request, cases[i].id, cases[i].value, &err), -ERR_USAGE);
		assert_true(!strncmp(err.place, "--", 2)); /* which one */
	}
}

TEST(test_spans_are_a_second_to_a_year)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {{"1s", 1000}, {"365d", INT64_C(365) * 86400000}, {"0s", -1}, {"365d1s", -1},
		{"soon", -1}};
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t ms = -1;

		assert_int_equal(series_span_parse("--every", cases[i].text, &ms, &err),
			cases[i].ms < 0 ? -ERR_USAGE : 0);
		assert_int_equal(ms, cases[i].ms);
	}
}

TEST(test_what_does_not_fit_together_is_refused)
{
	static const struct {
		struct series_request request;
		const char *words;
	} cases[] = {
		{{.process.name = "a", .every_ms = 1000, .limits = {UINT64_MAX, UINT64_MAX}},
			"-f OUT"},
		{{.process.name = "a",
			 .out = "-",
			 .every_ms = 1000,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"-f OUT"},
		{{.process.name = "a",
			 .out = "x-{pid}",
			 .every_ms = 1000,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"put {time} or {n}"},
		{{.process.name = "a", .out = "x-{pid}", .limits = {5, UINT64_MAX}},
			"put {time} or {n}"},
		{{.process.name = "a", .out = "x-{pid}", .limits = {UINT64_MAX, 5}},
			"put {time} or {n}"},
		{{.process.name = "a",
			 .out = "x-{n}",
			 .file_count = 5,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"--every"},
		{{.process.name = "a",
			 .out = "x-{n}",
			 .takes_all = true,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"put {pid}"},
		{{.process.pid = "1",
			 .out = "x-{pid}",
			 .takes_all = true,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"-pn NAME"},
		{{.process.pid = "1",
			 .out = "x-{n}",
			 .waits = true,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"-pn NAME"},
		{{.process.name = "a",
			 .out = "x-{when}",
			 .every_ms = 1000,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			"{time}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned words = 99;
		struct err err = {0};

		assert_int_equal(series_check(&cases[i].request, &words, &err), -ERR_USAGE);
		if (!strstr(err.detail, cases[i].words))
			fail_msg("case %zu: %s", i, err.detail);
		assert_int_equal(words, 99);
	}
}

TEST(test_what_fits_together_is_not)
{
	static const struct {
		struct series_request request;
		unsigned words;
	} cases[] = {
		{{.process.pid = "1",
			 .out = "x-{time}",
			 .every_ms = 1000,
			 .file_count = 5,
			 .limits = {5, 5}},
			PATTERN_TIME},
		{{.process.name = "a",
			 .out = "{name}-{pid}-{n}",
			 .every_ms = 1000,
			 .takes_all = true,
			 .waits = true,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			PATTERN_NAME | PATTERN_PID | PATTERN_NUMBER},
		{{.process.name = "a",
			 .out = "{name}-{pid}",
			 .takes_all = true,
			 .limits = {UINT64_MAX, UINT64_MAX}},
			PATTERN_NAME | PATTERN_PID},
		{{.process.name = "a", .out = "x-{time}", .limits = {5, UINT64_MAX}}, PATTERN_TIME},
		{{.process.name = "a", .out = "x", .log = "y", .limits = {UINT64_MAX, UINT64_MAX}},
			0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned words = 99;
		struct err err = {0};

		assert_int_equal(series_check(&cases[i].request, &words, &err), 0);
		assert_int_equal(words, cases[i].words);
	}
}

static int check_log(const char *out, const char *log, bool is_packed)
{
	struct series_request request = fresh;
	struct err err = {0};
	unsigned words;
	int rc;

	request.process.pid = "1";
	request.out = out;
	request.log = log;
	request.take.is_packed = is_packed;
	rc = series_check(&request, &words, &err);
	if (rc)
		assert_non_null(strstr(err.detail, "log"));
	return rc;
}

/* It would be written behind the dump's end. */
TEST(test_the_log_is_another_file)
{
	assert_int_equal(check_log("x.txt", "x.txt", false), -ERR_USAGE);
	assert_int_equal(check_log("x{{.txt", "x{.txt", false), -ERR_USAGE);
	assert_int_equal(check_log("x.txt", "x.txt.gz", true), -ERR_USAGE);
	assert_int_equal(check_log("x.txt.gz", "x.txt.gz", true), -ERR_USAGE);
	assert_int_equal(check_log("Makefile", "./Makefile", false), -ERR_USAGE);
	assert_int_equal(check_log("x.txt", "x.txt", true), 0);
	assert_int_equal(check_log("x.txt", "y.txt", false), 0);
	assert_int_equal(check_log("x-{pid}.txt", "x-{pid}.txt", false), 0);
	assert_int_equal(check_log("/dev/null", "/dev/null", false), 0);
	assert_int_equal(check_log("x.txt", NULL, false), 0);
}
