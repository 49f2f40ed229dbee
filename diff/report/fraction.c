#include "diff/report/fraction.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define MANTISSA_BITS DBL_MANT_DIG

/* The digits of a whole number, the last one first; how many. */
static size_t whole_digits(double whole, char *digits)
{
	int exponent;
	uint64_t bits = (uint64_t)ldexp(frexp(whole, &exponent), MANTISSA_BITS);
	int doublings = exponent - MANTISSA_BITS;
	size_t count = 0;

	if (doublings < 0) /* what is below the point is 0 */
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

/* Of a number from 0 to below 1, 1000 when it is nearer to 1. */
static unsigned thousandths(double fraction)
{
	uint64_t bits = (uint64_t)ldexp(fraction, MANTISSA_BITS);

	return (unsigned)((bits * 1000 + (UINT64_C(1) << (MANTISSA_BITS - 1))) >> MANTISSA_BITS);
}

static char *put_fraction(char *to, unsigned part)
{
	if (!part)
		return to;
	*to++ = '.';
	for (unsigned unit = 100; part; part %= unit, unit /= 10)
		*to++ = (char)('0' + part / unit);
	return to;
}

const char *fraction_text(double value, char text[FRACTION_TEXT_BYTES])
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
	*put_fraction(to, part) = '\0';
	return text;
}
