/* Trends in the text report, in numbers and words, and limits per hour. The judgements are set by
 * hand. */
#include "tests/unit/t.h"

#include <math.h>

#include "diff/options.h"
#include "diff/report/umdh.h"
#include "tests/unit/test_report.h"

/* ---------------------------------------------------------------- rates */

TEST(rate_has_significant_digits_only)
{
	static const struct {
		double rate;
		bool has_sign;
		unsigned width;
		const char *wanted;
	} cases[] = {
		{12345.678, true, 0, "+12346"},
		{-12345.4, true, 0, "-12345"},
		{100, true, 0, "+100"},
		{99.94, true, 0, "+99.9"},
		{99.96, false, 0, "100"},
		{3.25, true, 0, "+3.3"},
		{-0.06, true, 0, "-0.1"},
		{3, false, 0, "3"},
		{1e15, false, 0, "1000000000000000"},
		/* Values that round to 0 are printed as 0. */
		{-0.04, true, 0, "+0"},
		{-0.04, false, 0, "0"},
		{0, true, 0, "+0"},
		/* Infinities and NaN do not look like numbers. */
		{INFINITY, true, 0, "inf"},
		{-INFINITY, true, 0, "-inf"},
		{NAN, true, 0, "?"},
		{1e300, true, 0, "+1e+300"},
		{-12345e18, false, 13, "   -1.234e+22"},
		{1234, true, 8, "   +1234"},
		{12.5, true, 8, "   +12.5"},
		{NAN, true, 8, "       ?"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct out out;
		char *text;

		assert_int_equal(out_open(&out, "out.txt", NULL), 0);
		umdh_rate(&out, cases[i].rate, cases[i].has_sign, cases[i].width);
		assert_int_equal(out_commit(&out, NULL), 0);
		text = read_text("out.txt");
		assert_string_equal(text, cases[i].wanted);
		free(text);
	}
}

/* ---------------------------------------------------------------- options */

static void parsed(struct options *options, const char *option, const char *value, int wanted)
{
	char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t)option,
		(char *)(uintptr_t)value, (char *)(uintptr_t) "a.txt"};
	struct err err = {0};

	assert_int_equal(options_parse(options, 4, argv, &err), wanted);
}

TEST(limit_per_hour_is_size_and_unit)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		unsigned hours;
	} good[] = {{"1M/h", 1 << 20, 1}, {"0/h", 0, 1}, {"1.5KiB/d", 1536, 24}, {"7/d", 7, 24}};
	static const char *const bad[] = {
		"1M/", "/h", "1M/H", "1M/hour", "1M/h,5", "1M,5/h", "-1/h", "1X/h"};
	struct options options;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		parsed(&options, "--max-growth", good[i].text, 0);
		assert_int_equal(options.rate_max_bytes, good[i].bytes);
		assert_int_equal(options.rate_max_hours, good[i].hours);
		assert_true(options.grown_max.bytes == UINT64_MAX);
		assert_string_equal(options_of_trend(&options), "--max-growth SIZE/h");
		options_release(&options);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		parsed(&options, "--max-growth", bad[i], -ERR_USAGE);
		options_release(&options);
	}
}

TEST(verdicts_are_list)
{
	static const char *const bad[] = {
		"", ",", "grows,", ",grows", "grow", "growsx", "grew once"};
	struct options options;

	parsed(&options, "--verdict", "grows", 0);
	assert_int_equal(options.trend_verdicts, 1u << TREND_GROWS);
	options_release(&options);
	parsed(&options, "--verdict", "shrinks,grew-once,shrinks", 0);
	assert_int_equal(options.trend_verdicts, 1u << TREND_SHRINKS | 1u << TREND_GREW_ONCE);
	options_release(&options);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		parsed(&options, "--verdict", bad[i], -ERR_USAGE);
		options_release(&options);
	}
}
