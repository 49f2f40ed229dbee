/* Numbers as text: sizes, counts, percentages, and fractions that are equal on every system. */
#include "diff/report/numbers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#define MANTISSA_BITS DBL_MANT_DIG

/* Stores the digits of a whole number, last digit first. Returns the number of digits. */
static size_t whole_digits(double whole, char *digits)
{
	int exponent;
	uint64_t bits = (uint64_t)ldexp(frexp(whole, &exponent), MANTISSA_BITS);
	int doublings = exponent - MANTISSA_BITS;
	size_t count = 0;

	if (doublings < 0) /* the bits below the point are 0 */
		bits = exponent > 0 ? bits >> -doublings : 0;
	do
		digits[count++] = (char)(bits % 10);
	while (bits /= 10);
	for (; doublings > 0; doublings--) {
		int carry = 0;

		for (size_t i = 0; i < count; i++) {
			int digit = 2 * digits[i] + carry;

			carry = digit > 9;
			digits[i] = (char)(digit - 10 * carry);
		}
		if (carry)
			digits[count++] = 1;
	}
	return count;
}

/* Converts a number in [0, 1) to thousandths. Rounds; the result may be 1000. */
static unsigned thousandths(double fraction)
{
	uint64_t bits = (uint64_t)ldexp(fraction, MANTISSA_BITS);

	return (unsigned)((bits * 1000 + (UINT64_C(1) << (MANTISSA_BITS - 1))) >> MANTISSA_BITS);
}

static char *write_fraction(char *to, unsigned part)
{
	if (!part)
		return to;
	*to++ = '.';
	for (unsigned unit = 100; part; part %= unit, unit /= 10)
		*to++ = (char)('0' + part / unit);
	return to;
}

const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES])
{
	double whole, part_of_one = modf(value < 0 ? -value : value, &whole);
	char digits[FRACTION_TEXT_BYTES], *to = text;
	unsigned part;
	size_t count;

	if (!isfinite(value))
		return NULL;
	part = thousandths(part_of_one);
	if (part == 1000) {
		part = 0;
		whole += 1;
	}
	if (value < 0 && (part || whole > 0))
		*to++ = '-';
	for (count = whole_digits(whole, digits); count;)
		*to++ = (char)('0' + digits[--count]);
	*write_fraction(to, part) = '\0';
	return text;
}

const char *report_size(uint64_t bytes, char text[REPORT_SIZE_BYTES])
{
	static const char units[] = "BKMGTPE";
	unsigned unit = 0;
	uint64_t whole, tenths;

	while (bytes >> 10 * unit >= 1024)
		unit++;
	for (;; unit++) { /* rounding up may reach the next unit */
		whole = bytes >> 10 * unit;
		tenths = bytes & (((uint64_t)1 << 10 * unit) - 1);
		tenths = unit ? (tenths * 10 + ((uint64_t)1 << (10 * unit - 1))) >> 10 * unit : 0;
		whole += tenths / 10;
		if (whole < 1024)
			break;
	}
	if (unit)
		snprintf(text, REPORT_SIZE_BYTES, "%" PRIu64 ".%u %ciB", whole,
			(unsigned)(tenths % 10), units[unit]);
	else
		snprintf(text, REPORT_SIZE_BYTES, "%" PRIu64 " B", whole);
	return text;
}

const char *report_count(uint64_t count, char text[REPORT_COUNT_BYTES])
{
	char digits[REPORT_COUNT_BYTES];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = text;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

unsigned report_percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

const char *report_tenths(double value, char text[REPORT_SIZE_BYTES])
{
	const char *sign = value <= -0.05 ? "-" : "";
	double amount = fabs(value);
	uint64_t tenths = amount <= 1e17 ? (uint64_t)(amount * 10 + 0.5) : 0;

	if (amount <= 1e17)
		snprintf(text, REPORT_SIZE_BYTES, "%s%" PRIu64 ".%u", sign, tenths / 10,
			(unsigned)(tenths % 10));
	else
		snprintf(text, REPORT_SIZE_BYTES, "%s> 1e17", sign);
	return text;
}
