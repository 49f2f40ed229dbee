#include "tests/unit/t.h"

#include "core/base/err.h"
#include "core/base/parse.h"
#include "core/base/text.h"

#define UNTOUCHED UINT64_C(0xABCDEF)

static uint64_t size_of(const char *text)
{
	uint64_t bytes = UNTOUCHED;

	if (size_parse(text, strlen(text), &bytes))
		fail_msg("no size: %s", text);
	return bytes;
}

TEST(units_are_powers_of_1024)
{
	static const char units[] = "kmgt";
	static const char *const tails[] = {"", "b", "B", "ib", "iB", "IB"};
	uint64_t unit = 1;

	assert_int_equal(size_of("0"), 0);
	assert_int_equal(size_of("65536"), 65536);
	for (size_t i = 0; i < 4; i++) {
		unit *= 1024;
		for (size_t k = 0; k < 6; k++) {
			char text[20];

			snprintf(text, sizeof(text), "7%c%s", units[i], tails[k]);
			assert_int_equal(size_of(text), 7 * unit);
			text[1] = (char)(units[i] - 'a' + 'A');
			assert_int_equal(size_of(text), 7 * unit);
		}
	}
}

TEST(fraction_is_exact_and_rounded_down)
{
	assert_int_equal(size_of("1.5M"), 1024 * 1024 * 3 / 2);
	assert_int_equal(size_of("0.3K"), 307); /* 0.3K is 307.2 */
	assert_int_equal(size_of("0.999999999999999999999999999999T"), (UINT64_C(1) << 40) - 1);
	assert_int_equal(size_of("0.0009765625K"), 1); /* 0.0009765625 is 1 / 1024 */
	assert_int_equal(size_of("0.0009765624999999999999999999K"), 0);
}

TEST(largest_size_is_largest_number)
{
	static const char *const more[] = {"18446744073709551616", "99999999999999999999",
		"16777216T", "16777215.9999999999999999999999T1", "18014398509481984K"};
	uint64_t bytes = UNTOUCHED;

	assert_int_equal(size_of("18446744073709551615"), UINT64_MAX);
	assert_int_equal(size_of("16777215T"), UINT64_MAX - (UINT64_C(1) << 40) + 1);
	assert_int_equal(size_of("18014398509481983.9990234375K"), UINT64_MAX);
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		assert_int_equal(size_parse(more[i], strlen(more[i]), &bytes), -ERR_USAGE);
	assert_int_equal(bytes, UNTOUCHED);
}

TEST(what_is_no_size_is_refused)
{
	static const char *const bad[] = {"", " 1", "1 ", "-1", "+1", "K", ".5K", "1.K", "1.5",
		"1.5.5K", "0x10", "1KK", "1Ki", "1KiBB", "1B", "1P", "1e3", "1K,", "1iB"};
	uint64_t bytes = UNTOUCHED;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (size_parse(bad[i], strlen(bad[i]), &bytes) != -ERR_USAGE)
			fail_msg("taken for a size: '%s'", bad[i]);
	}
	assert_int_equal(bytes, UNTOUCHED);
	assert_int_equal(size_parse("12K,7", 3, &bytes), 0);
	assert_int_equal(bytes, 12 * 1024);
}

/* The recursive definition, which takes exponential time on long texts. */
static bool by_definition(const char *pattern, const char *text)
{
	if (!*pattern)
		return !*text;
	if (*pattern == '*')
		return by_definition(pattern + 1, text) ||
		       (*text && by_definition(pattern, text + 1));
	return *text == *pattern && by_definition(pattern + 1, text + 1);
}

TEST(glob_matches_as_defined)
{
	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		char pattern[8] = {0}, text[10] = {0};
		size_t pattern_len = (size_t)rand() % 7, text_len = (size_t)rand() % 9;

		for (size_t k = 0; k < pattern_len; k++)
			pattern[k] = "ab*"[rand() % 3];
		for (size_t k = 0; k < text_len; k++)
			text[k] = "ab"[rand() % 2];
		if (text_glob(pattern, text, 0) != by_definition(pattern, text))
			fail_msg("'%s' and '%s'", pattern, text);
	}
}

TEST(patterns_are_those_of_shell)
{
	static const struct {
		const char *pattern, *name;
		bool is_so;
	} cases[] = {
		{"*", "a.txt", true}, {"*", "", true}, {"a*.txt", "a.txt", true},
		{"a*.txt", "abc.txt", true}, {"a*.txt", "abc.txt.gz", false},
		{"a?.txt", "ab.txt", true}, {"a?.txt", "a.txt", false},
		{"a?.txt", "a\xc3\xa4.txt", true}, /* one character */
		{"a?.txt", "a\xff.txt", true}, /* an invalid byte counts as one character */
		{"A*.TXT", "abc.txt", true}, {"*a*b*c*", "xxaxxbxxcxx", true},
		{"*a*b*c*", "xxaxxcxxbxx", false}, {"*aab", "aaaaab", true}, {"**?", "a", true},
		{"", "", true}, {"", "a", false}, {"[a]", "a", false}, {"[a]", "[A]", true},
		{"[", "{", false}, /* the two differ by 0x20 but are not letters */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(
			text_glob(cases[i].pattern, cases[i].name, GLOB_FOLD | GLOB_QUESTION),
			cases[i].is_so);
	assert_false(text_glob("KERNEL*", "kernelbase", 0)); /* case-sensitive by default */
}

TEST(many_stars_take_no_time)
{
	char text[4001], pattern[401];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i + 1 < sizeof(pattern); i += 2) {
		pattern[i] = '*';
		pattern[i + 1] = 'a';
	}
	pattern[sizeof(pattern) - 2] = 'b';
	pattern[sizeof(pattern) - 1] = '\0';
	assert_false(text_glob(pattern, text, 0));
}
