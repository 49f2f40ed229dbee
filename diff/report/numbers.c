/* Numbers as text: sizes, counts, percentages, and fractions that are equal on every system. */
#include "diff/report/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns true if the value is exactly halfway between two thousandths. Among the numbers that a
 * double can represent, these are the odd multiples of 1/16. */
static bool is_half(double value)
{
	double sixteenths = value * 16;

	return fabs(sixteenths) < 0x1p53 && sixteenths == (double)(int64_t)sixteenths &&
	       (int64_t)sixteenths % 2;
}

const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES])
{
	bool is_up = is_half(value); /* printf() would round a half to the even thousandth */
	char *end;

	if (!isfinite(value))
		return NULL;
	end = text + snprintf(text, FRACTION_TEXT_BYTES, is_up ? "%.4f" : "%.3f", value);
	if (is_up) {
		*--end = '\0'; /* the fourth digit, which is 5 */
		end[-1]++; /* the third digit, which is 2 or 7 */
	}
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		*--end = '\0';
	return strcmp(text, "-0") != 0 ? text : "0";
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
