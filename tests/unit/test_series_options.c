#include "tests/unit/t.h"

#include "snapshot/command/command.h"
#include "snapshot/series/file_pattern.h"

static const struct series_request fresh = SERIES_REQUEST_INIT;

TEST(test_each_option_has_its_effect)
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

TEST(test_what_option_cannot_be_is_refused)
{
	static const struct {
		int id;
		const char *value;
	} cases[] = {{OPT_SERIES_COUNT, "0"}, {OPT_SERIES_COUNT, "-1"}, {OPT_SERIES_COUNT, "x"},
		{OPT_SERIES_COUNT, ""}, {OPT_SERIES_COUNT, "99999999999"}, {OPT_SERIES_KEEP, "0"},
		{OPT_SERIES_KEEP, "3x"}, {OPT_SERIES_MAX_BYTES, "0"}, {OPT_SERIES_MAX_BYTES, "1Q"},
		{OPT_SERIES_ON_EXIT, "go"}, {OPT_SERIES_ON_EXIT, ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct series_request request = fresh;
		struct err err = {0};

		assert_int_equal(
			series_option(&request, cases[i].id, cases[i].value, &err), -ERR_USAGE);
		assert_true(!strncmp(err.place, "--", 2)); /* the place is the option */
	}
}

TEST(test_spans_are_second_to_year)
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

/* Options given by name or (pid) as a number. 0 means no limit. */
struct given {
	bool is_pid, takes_all, waits, is_packed;
	const char *out, *log;
	int64_t every_ms;
	uint64_t file_count, keep_count, keep_bytes;
};

static int check(const struct given *given, unsigned *words, struct err *err)
{
	struct series_request request = fresh;

	*(given->is_pid ? &request.process.pid : &request.process.name) = "1";
	request.out = given->out;
	request.log = given->log;
	request.take.is_packed = given->is_packed;
	request.every_ms = given->every_ms;
	request.file_count = given->file_count;
	request.takes_all = given->takes_all;
	request.waits = given->waits;
	if (given->keep_count)
		request.limits.keep_count = given->keep_count;
	if (given->keep_bytes)
		request.limits.keep_bytes = given->keep_bytes;
	return series_check(&request, words, err);
}

TEST(test_what_does_not_fit_together_is_refused)
{
	static const struct {
		struct given given;
		const char *words;
	} cases[] = {
		{{.every_ms = 1000}, "-f OUT"},
		{{.out = "-", .every_ms = 1000}, "-f OUT"},
		{{.out = "x-{pid}", .every_ms = 1000}, "put {time} or {n}"},
		{{.out = "x-{pid}", .keep_count = 5}, "put {time} or {n}"},
		{{.out = "x-{pid}", .keep_bytes = 5}, "put {time} or {n}"},
		{{.out = "x-{n}", .file_count = 5}, "--every"},
		{{.out = "x-{n}", .takes_all = true}, "put {pid}"},
		{{.is_pid = true, .out = "x-{pid}", .takes_all = true}, "-pn NAME"},
		{{.is_pid = true, .out = "x-{n}", .waits = true}, "-pn NAME"},
		{{.out = "x-{when}", .every_ms = 1000}, "{time}"},
		/* The log would be appended to the dump. */
		{{.out = "x.txt", .log = "x.txt"}, "log"},
		{{.out = "x{{.txt", .log = "x{.txt"}, "log"},
		{{.out = "x.txt", .log = "x.txt.gz", .is_packed = true}, "log"},
		{{.out = "x.txt.gz", .log = "x.txt.gz", .is_packed = true}, "log"},
		{{.out = "Makefile", .log = "./Makefile"}, "log"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned words = 99;
		struct err err = {0};

		assert_int_equal(check(&cases[i].given, &words, &err), -ERR_USAGE);
		if (!strstr(err.detail, cases[i].words))
			fail_msg("case %zu: %s", i, err.detail);
		assert_int_equal(words, 99);
	}
}

TEST(test_what_fits_together_is_not)
{
	static const struct {
		struct given given;
		unsigned words;
	} cases[] = {
		{{.is_pid = true,
			 .out = "x-{time}",
			 .every_ms = 1000,
			 .file_count = 5,
			 .keep_count = 5,
			 .keep_bytes = 5},
			PATTERN_TIME},
		{{.out = "{name}-{pid}-{n}", .every_ms = 1000, .takes_all = true, .waits = true},
			PATTERN_NAME | PATTERN_PID | PATTERN_NUMBER},
		{{.out = "{name}-{pid}", .takes_all = true}, PATTERN_NAME | PATTERN_PID},
		{{.out = "x-{time}", .keep_count = 5}, PATTERN_TIME},
		{{.out = "x", .log = "y"}, 0},
		{{.out = "x.txt", .log = "x.txt", .is_packed = true}, 0},
		{{.out = "x-{pid}.txt", .log = "x-{pid}.txt"}, PATTERN_PID},
		{{.out = "/dev/null", .log = "/dev/null"}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned words = 99;
		struct err err = {0};

		assert_int_equal(check(&cases[i].given, &words, &err), 0);
		assert_int_equal(words, cases[i].words);
	}
}
