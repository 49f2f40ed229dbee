#include "core/size.h"

#include <stdbool.h>
#include <string.h>

#include "core/err.h"

static const char size_units[] = "KMGT";

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* "", "K", "KB" or "KiB": what it stands for, or 0. */
static uint64_t size_unit(const char *text, size_t len)
{
	const char *unit;

	if (!len)
		return 1;
	unit = memchr(size_units, upper(text[0]), sizeof(size_units) - 1);
	if (!unit || len > 3 || (len > 1 && upper(text[len - 1]) != 'B') ||
		(len == 3 && upper(text[1]) != 'I'))
		return 0;
	return UINT64_C(1) << 10 * (unit - size_units + 1);
}

/* The digits behind a decimal point, times unit. Going from the last digit to the first one,
 * rounding down at each step is the same as doing so once. */
static uint64_t fraction_of(const char *digits, size_t count, uint64_t unit)
{
	uint64_t sum = 0;

	while (count--)
		sum = ((uint64_t)(digits[count] - '0') * unit + sum) / 10;
	return sum;
}

int size_parse(const char *text, size_t len, uint64_t *bytes)
{
	size_t at = 0, point;
	uint64_t whole = 0, unit, fraction = 0;

	for (; at < len && is_digit(text[at]); at++) {
		uint64_t digit = (uint64_t)(text[at] - '0');

		if (whole > (UINT64_MAX - digit) / 10)
			return -ERR_USAGE;
		whole = whole * 10 + digit;
	}
	if (!at)
		return -ERR_USAGE;
	point = at;
	if (at < len && text[at] == '.') {
		while (++at < len && is_digit(text[at]))
			;
		if (at == point + 1)
			return -ERR_USAGE;
	}
	unit = size_unit(text + at, len - at);
	if (!unit || (unit == 1 && at > point))
		return -ERR_USAGE;
	if (at > point)
		fraction = fraction_of(text + point + 1, at - point - 1, unit);
	if (whole > (UINT64_MAX - fraction) / unit)
		return -ERR_USAGE;
	*bytes = whole * unit + fraction;
	return 0;
}
