#include "tests/unit/t.h"

#include "core/base/err.h"
#include "core/base/parse.h"

TEST(test_spans_agree_with_their_units)
{
	static const struct {
		const char *text;
		int64_t seconds;
	} cases[] = {
		{"30s", 30},
		{"30m", 30 * 60},
		{"1h30m", 60 * 60 + 30 * 60},
		{"2d", 2 * 24 * 60 * 60},
		{"1d2h3m4s", ((1 * 24 + 2) * 60 + 3) * 60 + 4},
		{"90m", 90 * 60},
		{"0s", 0},
		{"007s", 7},
		{"1H30M", 90 * 60},
		{"1D1s", 86401},
		{"5000ms", 5},
		{"1m1000MS", 61},
		{"1s2000mS", 3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t ms = -1;

		assert_int_equal(duration_parse(cases[i].text, &ms), 0);
		assert_int_equal(ms, cases[i].seconds * 1000);
	}
}

TEST(test_last_number_may_have_fraction)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {{"6.859s", 6859}, {"0.200 s", 200}, {"1.9S", 1900}, {"0.5h", 1800000},
		{"1.25d", 108000000}, {"1h1.5m", 3690000}, {"0.0009s", 0}, {"30 s", 30000},
		{"0.99999999999999999999999999999s", 999}, {"9223372036854775.807s", INT64_MAX}};
	int64_t ms = 42;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(duration_parse(cases[i].text, &ms), 0);
		assert_int_equal(ms, cases[i].ms);
	}
	assert_int_equal(duration_parse("9223372036854775.808s", &ms), -ERR_USAGE);
}

TEST(test_milliseconds_are_smallest_unit)
{
	int64_t ms = -1;

	assert_int_equal(duration_parse("1h2m3s4ms", &ms), 0);
	assert_int_equal(ms, ((1 * 60 + 2) * 60 + 3) * 1000 + 4);
	assert_int_equal(duration_parse("9223372036854775807ms", &ms), 0);
	assert_int_equal(ms, INT64_MAX);
	assert_int_equal(duration_parse("9223372036854775808ms", &ms), -ERR_USAGE);
}

TEST(test_what_is_no_span_is_refused_and_changes_nothing)
{
	static const char *const cases[] = {"", "s", "30", "1h30", "30  s", " 30s", "30s ", "-1s",
		"+1s", ".5h", "1.h", "1.5", "1.5ms", "1.5h30m", "1,5s", "1..5s", "1.5 ", "30m1h",
		"1m1m", "1s1s", "1x", "1ms1s", "1ms1ms", "1sm", "1mss", "1w", "h1", "1hm", "30min",
		"\xff", "1s\n", "9223372036854775808s", "99999999999999999999999s"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t ms = 42;

		assert_int_equal(duration_parse(cases[i], &ms), -ERR_USAGE);
		assert_int_equal(ms, 42);
	}
}

/* The largest whole number of seconds fits and the next one does not, also in sums of several
 * units. */
TEST(test_bounds_of_64_bits_are_kept)
{
	int64_t most = INT64_MAX / 1000, ms = 0, days = INT64_MAX / 86400000;
	int64_t rest = (INT64_MAX - days * 86400000) / 1000;
	char text[80];

	snprintf(text, sizeof(text), "%llds", (long long)most);
	assert_int_equal(duration_parse(text, &ms), 0);
	assert_int_equal(ms, most * 1000);
	snprintf(text, sizeof(text), "%llds", (long long)most + 1);
	assert_int_equal(duration_parse(text, &ms), -ERR_USAGE);
	snprintf(text, sizeof(text), "%lldd%llds", (long long)days, (long long)rest);
	assert_int_equal(duration_parse(text, &ms), 0);
	assert_int_equal(ms, days * 86400000 + rest * 1000);
	snprintf(text, sizeof(text), "%lldd%llds", (long long)days, (long long)rest + 1);
	assert_int_equal(duration_parse(text, &ms), -ERR_USAGE);
	snprintf(text, sizeof(text), "%lldd", (long long)days + 1);
	assert_int_equal(duration_parse(text, &ms), -ERR_USAGE);
}

TEST(test_text_is_read_back_as_same_span)
{
	int64_t ms = 0;
	char text[DURATION_TEXT_BYTES];

	assert_string_equal(duration_text(90 * 60 * 1000, text), "1h30m");
	assert_string_equal(duration_text(0, text), "0s");
	assert_string_equal(duration_text(999, text), "0s");
	assert_string_equal(duration_text(86400000, text), "1d");
	for (int64_t seconds = 1; seconds < INT64_MAX / 1000 / 7; seconds = seconds * 7 + 3) {
		assert_int_equal(duration_parse(duration_text(seconds * 1000, text), &ms), 0);
		assert_int_equal(ms, seconds * 1000);
	}
	assert_int_equal(duration_parse(duration_text(INT64_MAX, text), &ms), 0);
	assert_int_equal(ms, INT64_MAX / 1000 * 1000);
}
