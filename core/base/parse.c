/* Parses and prints sizes, dates and durations, independently of the C library's locale and time
 * zone. */
#include "core/base/parse.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/text.h"

static const char size_units[] = "KMGT";

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the factor of a unit ("", "K", "KB", "KiB" and so on), or 0 for other text. */
static uint64_t size_unit(const char *text, size_t len)
{
	const char *unit;

	if (!len)
		return 1;
	unit = memchr(size_units, text_upper(text[0]), sizeof(size_units) - 1);
	if (!unit || len > 3 || (len > 1 && text_upper(text[len - 1]) != 'B') ||
		(len == 3 && text_upper(text[1]) != 'I'))
		return 0;
	return UINT64_C(1) << 10 * (unit - size_units + 1);
}

/* Returns `unit` times the decimal fraction 0.DIGITS. Starts at the last digit, because rounding
 * down at each step then gives the same result as rounding down once at the end. */
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

#define DAY_MS 86400000LL

static int is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year));
}

/* Returns the number of days from 1970-01-01 to January 1st of year. */
static int64_t year_start(int year)
{
	int64_t y = year - 1;

	return 365 * (y - 1969) + (y / 4 - 492) - (y / 100 - 19) + (y / 400 - 4);
}

const char *date_text(int64_t ms, char text[DATE_TEXT_BYTES])
{
	int64_t days = ms / DAY_MS, rest = ms % DAY_MS;
	int year, month = 1;

	if (rest < 0) {
		rest += DAY_MS;
		days--;
	}
	if (days < year_start(1) || days >= year_start(10000))
		return strcpy(text, "?");
	year = days < 0 ? 1 : 1970 + (int)(days / 366);
	while (year_start(year + 1) <= days)
		year++;
	days -= year_start(year);
	while (days >= month_days(year, month))
		days -= month_days(year, month++);
	snprintf(text, DATE_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month,
		(int)days + 1, (int)(rest / 3600000), (int)(rest / 60000 % 60),
		(int)(rest / 1000 % 60), (int)(rest % 1000));
	return text;
}

/* Parses text of the given form, in which '0' represents any digit. Stores the numbers in
 * numbers[], in order. Returns the remaining text, or NULL if the text does not have that form. */
static const char *parse_form(const char *text, const char *form, int numbers[])
{
	for (; *form; form++, text++) {
		if (*form != '0') {
			if (*text != *form)
				return NULL;
			*++numbers = 0;
		} else if (*text >= '0' && *text <= '9') {
			*numbers = *numbers * 10 + (*text - '0');
		} else {
			return NULL;
		}
	}
	return text;
}

int date_parse(const char *text, int64_t *ms)
{
	enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MILLI, COUNT };
	int n[COUNT] = {0}, milli[3] = {0};
	int64_t days;

	text = parse_form(text, "0000-00-00T00:00:00", n);
	if (text && *text == '.')
		text = parse_form(text, ".000", milli);
	n[MILLI] = milli[1];
	if (!text || strcmp(text, "Z") != 0 || n[YEAR] < 1 || n[MONTH] < 1 || n[MONTH] > 12 ||
		n[DAY] < 1 || n[DAY] > month_days(n[YEAR], n[MONTH]) || n[HOUR] > 23 ||
		n[MINUTE] > 59 || n[SECOND] > 59)
		return -ERR_BAD_LINE;
	days = year_start(n[YEAR]) + n[DAY] - 1;
	while (--n[MONTH])
		days += month_days(n[YEAR], n[MONTH]);
	*ms = days * DAY_MS + n[HOUR] * 3600000LL + n[MINUTE] * 60000LL + n[SECOND] * 1000LL +
	      n[MILLI];
	return 0;
}

/* Abbreviated forms of a time, each with the text that completes it. */
static const struct form {
	size_t len;
	const char *rest;
	int64_t span_ms;
} forms[] = {
	{sizeof("2026-11-20") - 1, "T00:00:00Z", 86400000},
	{sizeof("2026-11-20T10:00") - 1, ":00Z", 60000},
	{sizeof("2026-11-20T10:00:00") - 1, "Z", 1000},
	{sizeof("2026-11-20T10:00:00.000") - 1, "Z", 1},
};

int date_span_parse(const char *text, int64_t *first_ms, int64_t *last_ms)
{
	size_t len = strlen(text);
	const struct form *form = forms, *end = forms + sizeof(forms) / sizeof(*forms);
	char whole[40];
	int64_t ms;

	if (len && text[len - 1] == 'Z')
		len--;
	while (form < end && form->len != len)
		form++;
	if (form == end)
		return -ERR_USAGE;
	snprintf(whole, sizeof(whole), "%.*s%s", (int)len, text, form->rest);
	if (date_parse(whole, &ms))
		return -ERR_USAGE;
	*first_ms = ms;
	*last_ms = ms + form->span_ms - 1;
	return 0;
}

static const struct {
	const char *name;
	int64_t ms;
} duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define UNITS (sizeof(duration_units) / sizeof(*duration_units))
#define UNIT_SECONDS 3

/* Parses digits and advances *text. Returns 0 or -ERR_USAGE. */
static int read_digits(const char **text, int64_t *number)
{
	const char *at = *text;
	int64_t value = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		int digit = *at - '0';

		if (value > (INT64_MAX - digit) / 10)
			return -ERR_USAGE;
		value = value * 10 + digit;
	}
	if (at == *text)
		return -ERR_USAGE;
	*text = at;
	*number = value;
	return 0;
}

/* Parses a unit and advances *text. Returns the unit's index, which is at least `from`, or UNITS if
 * no unit matches. */
static size_t read_unit(const char **text, size_t from)
{
	char name[3] = {text_lower(**text)};

	if (name[0] == 'm' && text_lower((*text)[1]) == 's')
		name[1] = 's';
	while (from < UNITS && strcmp(name, duration_units[from].name) != 0)
		from++;
	*text += strlen(name);
	return from;
}

/* If *text starts with a point and digits, advances *text past them. Returns the number of
 * digits. */
static size_t read_fraction(const char **text)
{
	size_t count = **text == '.' ? strspn(*text + 1, "0123456789") : 0;

	*text += count ? count + 1 : 0;
	return count;
}

int duration_parse(const char *text, int64_t *ms)
{
	int64_t sum = 0, number = 0, fraction;
	size_t unit = 0, digits;

	do {
		const char *at;

		if (read_digits(&text, &number))
			return -ERR_USAGE;
		at = text + 1;
		digits = read_fraction(&text);
		text += *text == ' ';
		unit = read_unit(&text, unit);
		if (unit >= UNITS - (digits != 0))
			return -ERR_USAGE;
		fraction = (int64_t)fraction_of(at, digits, (uint64_t)duration_units[unit].ms);
		if (number > (INT64_MAX - sum - fraction) / duration_units[unit].ms)
			return -ERR_USAGE;
		sum += number * duration_units[unit++].ms + fraction;
	} while (*text && !digits);
	if (*text)
		return -ERR_USAGE;
	*ms = sum;
	return 0;
}

const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES])
{
	size_t len = 0;

	for (size_t i = 0; i <= UNIT_SECONDS; i++) {
		int64_t number = ms / duration_units[i].ms;

		ms %= duration_units[i].ms;
		if (number || (i == UNIT_SECONDS && !len))
			len += (size_t)snprintf(text + len, DURATION_TEXT_BYTES - len,
				"%" PRId64 "%s", number, duration_units[i].name);
	}
	return text;
}

int moment_parse(const char *text, bool is_end, struct moment *moment)
{
	int64_t ms, last_ms;

	if (!duration_parse(text, &ms)) {
		*moment = (struct moment){MOMENT_BEFORE_NEWEST, ms};
		return 0;
	}
	if (date_span_parse(text, &ms, &last_ms))
		return -ERR_USAGE;
	*moment = (struct moment){MOMENT_AT, is_end ? last_ms : ms};
	return 0;
}

int64_t moment_ms(const struct moment *moment, int64_t newest_ms)
{
	if (moment->kind == MOMENT_AT)
		return moment->ms;
	return newest_ms >= INT64_MIN + moment->ms ? newest_ms - moment->ms : INT64_MIN;
}
