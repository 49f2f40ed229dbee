/* Parts of reports: numbers, text without harmful characters, UTF-8. This machine's C library
 * rounds its output exactly. */
#include "tests/unit/t.h"

#include <float.h>
#include <math.h>

#include "core/base/text.h"
#include "core/io/out.h"
#include "diff/report/numbers.h"
#include "tests/unit/test_diff.h"

static uint64_t random_state;

static uint64_t random_number(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 11 ^ random_state << 40;
}

/* Compares the numbers with the C library's output. There are more numbers than one buffer can
 * hold. */
TEST(numbers_are_as_printf_prints_them)
{
	struct buf wanted;
	struct out out;
	char *text, part[200], number[40];

	random_state = 1;
	buf_init(&wanted);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t value = i < 4 ? (uint64_t)i - 2 : random_number() >> (i % 64);
		unsigned width = i % 27, base = i & 1 ? 16 : 10;
		char sign = "\0+-"[i % 3];

		out_hex(&out, value);
		out_char(&out, ' ');
		out_number(&out, value, base, width);
		out_signed(&out, sign, value, base, width);
		out_char(&out, '\n');
		snprintf(number, sizeof(number), base == 16 ? "%.*s%" PRIx64 : "%.*s%" PRIu64,
			sign ? 1 : 0, &sign, value);
		snprintf(part, sizeof(part),
			base == 16 ? "%" PRIX64 " %*" PRIx64 "%*s\n" :
				     "%" PRIX64 " %*" PRIu64 "%*s\n",
			value, (int)width, value, (int)width, number);
		buf_add_text(&wanted, part);
	}
	assert_true(wanted.len > OUT_BUFFER_BYTES);
	assert_int_equal(out_commit(&out, NULL), 0);
	text = read_text("out.txt");
	assert_string_equal(text, wanted.data);
	free(text);
	buf_release(&wanted);
}

/* The texts have every length around eight bytes, because eight bytes are checked at once, and
 * contain every kind of byte. */
TEST(text_is_made_harmless_as_text_harmless_does)
{
	static const char bytes[] = "ab\\ ~\x7f\x01\x1f\n\xc2\x80\x9b\xa0\xc3\xff\xbf\xe2\xae\x20";
	struct buf wanted;
	struct out out;
	char text[30], *got;

	random_state = 2;
	buf_init(&wanted);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	for (unsigned i = 0; i < 40000; i++) {
		size_t len = i % 28;
		/* Most bytes are plain, so the one special byte may be anywhere. */
		for (size_t k = 0; k < len; k++)
			text[k] = bytes[random_number() % (i & 1 ? sizeof(bytes) - 1 : 5)];
		if (len && i % 3 == 0)
			text[random_number() % len] = bytes[random_number() % (sizeof(bytes) - 1)];
		text[len] = '\0';
		out_harmless(&out, text);
		if (text_is_plain(text, len)) {
			for (size_t k = 0; k < len; k++)
				assert_in_range(text[k], ' ', '~');
		}
		buf_add_text(&wanted, text_harmless(text));
	}
	assert_int_equal(out_commit(&out, NULL), 0);
	got = read_text("out.txt");
	assert_string_equal(got, wanted.data);
	free(got);
	buf_release(&wanted);
}

TEST(text_of_plain_ascii_is_known_as_such)
{
	for (size_t len = 0; len < 40; len++) {
		char text[41] = "";

		memset(text, '~', len);
		assert_true(text_is_plain(text, len));
		for (size_t i = 0; i < len; i++) {
			text[i] = "\x1f\x7f\x80\xff"[i % 4];
			assert_false(text_is_plain(text, len));
			text[i] = ' ';
		}
	}
}

/* RFC 3629. Section 3 has the sequences' lengths and limits; section 10 has the invalid
 * sequences. */
TEST(utf8_is_what_rfc_allows)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t code;
	} cases[] = {
		{"\x01", 1, 1},
		{"\x7f", 1, 0x7f},
		{"\xc2\x80", 2, 0x80},
		{"\xdf\xbfx", 2, 0x7ff},
		{"\xe0\xa0\x80", 3, 0x800},
		{"\xed\x9f\xbf", 3, 0xd7ff},
		{"\xee\x80\x80", 3, 0xe000},
		{"\xef\xbf\xbf", 3, 0xffff},
		{"\xf0\x90\x80\x80", 4, 0x10000},
		{"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
		{"", 0, 0},
		{"\x80", 0, 0}, /* a continuation byte without a start byte */
		{"\xbf", 0, 0},
		{"\xc0\x80", 0, 0}, /* a sequence that is longer than needed */
		{"\xc1\xbf", 0, 0},
		{"\xe0\x9f\xbf", 0, 0},
		{"\xf0\x8f\xbf\xbf", 0, 0},
		{"\xed\xa0\x80", 0, 0}, /* a surrogate */
		{"\xed\xbf\xbf", 0, 0},
		{"\xf4\x90\x80\x80", 0, 0}, /* past the last code point */
		{"\xf5\x80\x80\x80", 0, 0},
		{"\xff\x80", 0, 0},
		{"\xc2", 0, 0}, /* an incomplete sequence */
		{"\xe2\x82", 0, 0},
		{"\xf0\x90\x80", 0, 0},
		{"\xe2\x28\xa1", 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t code = 0;

		assert_int_equal(text_utf8(cases[i].text, &code), cases[i].len);
		assert_int_equal(code, cases[i].code);
	}
}

/* ---------------------------------------------------------------- fractions */

static void is(double value, const char *wanted)
{
	char text[FRACTION_TEXT_BYTES];
	const char *found = report_fraction(value, text);

	if (wanted)
		assert_string_equal(found, wanted);
	else
		assert_null(found);
}

TEST(numbers_are_rounded_to_thousandths)
{
	is(0, "0");
	is(-0.0, "0");
	is(0.001, "0.001");
	is(-0.001, "-0.001");
	is(0.0004, "0");
	is(-0.0004, "0");
	is(0.0006, "0.001");
	is(0.0625, "0.063"); /* these numbers are exactly halfway between two thousandths */
	is(-0.1875, "-0.188");
	is(0.3125, "0.313");
	is(-2.5625, "-2.563");
	is(562949953421311.9375, "562949953421311.938"); /* 2^49 - 1/16, the largest one */
	is(0.5, "0.5");
	is(1.25, "1.25");
	is(0.9996, "1");
	is(-9.9996, "-10");
	is(1000.1, "1000.1");
	is(DBL_MIN, "0");
	is(4.9e-324, "0");
}

TEST(large_numbers_have_all_their_digits)
{
	is(9007199254740991.0, "9007199254740991"); /* 2^53 - 1 */
	is(4503599627370495.5, "4503599627370495.5"); /* the largest number with a fraction */
	is(-9223372036854775808.0, "-9223372036854775808");
	is(1e22, "10000000000000000000000"); /* the largest exact power of ten */
	is(1208925819614629174706176.0, "1208925819614629174706176"); /* 2^80 */
}

TEST(what_is_no_number_is_none)
{
	is(INFINITY, NULL);
	is(-INFINITY, NULL);
	is(NAN, NULL);
}
