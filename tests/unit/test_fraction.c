/* Numbers with a fraction as text. The C library of this machine rounds what it prints exactly. */
#include "tests/unit/t.h"

#include "diff/report/report_parts.h"

#include <float.h>
#include <math.h>

static void is(double value, const char *wanted)
{
	char text[FRACTION_TEXT_BYTES];
	const char *found = fraction_text(value, text);

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
	is(0.0625, "0.063"); /* these two are exactly in the middle */
	is(-0.1875, "-0.188");
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
	is(4503599627370495.5, "4503599627370495.5"); /* the largest with a fraction */
	is(-9223372036854775808.0, "-9223372036854775808");
	is(1e22, "10000000000000000000000"); /* the largest power of ten that is one */
	is(1208925819614629174706176.0, "1208925819614629174706176"); /* 2^80 */
}

TEST(what_is_no_number_is_none)
{
	is(INFINITY, NULL);
	is(-INFINITY, NULL);
	is(NAN, NULL);
}

static uint64_t random_state = 7;

static uint64_t random_bits(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return random_state >> 11 ^ random_state << 40;
}

/* What printf() has, without zeros at the end, a lonely point and the sign of a 0. */
static void printed(double value, char text[400])
{
	char *end = text + snprintf(text, 400, "%.3f", value);

	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		*--end = '\0';
	if (!strcmp(text, "-0"))
		strcpy(text, "0");
}

/* Between two thousandths lie odd sixteenths alone: printf() rounds them to even, this away from 0. */
static bool is_half(double value)
{
	double whole;

	return modf(value * 16, &whole) == 0 && modf(value * 8, &whole) != 0;
}

TEST(every_number_is_as_printf_prints_it)
{
	char wanted[400];

	for (unsigned i = 0; i < 200000; i++) {
		uint64_t bits = random_bits();
		double value;

		if (i % 3) /* most are like rates, some like anything */
			bits = (bits & UINT64_C(0x800FFFFFFFFFFFFF)) |
			       (UINT64_C(1023) - 12 + bits % 60) << 52;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value) || is_half(value))
			continue;
		printed(value, wanted);
		is(value, wanted);
	}
	for (int exponent = 53; exponent < 1024; exponent++) {
		printed(ldexp(-1.2345678901234567, exponent), wanted);
		is(ldexp(-1.2345678901234567, exponent), wanted);
	}
}
