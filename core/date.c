#include "core/date.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"

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

/* Days from 1970-01-01 to January 1st of year. */
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

/* Takes digits and marks from text as form has them ('0' for any digit); NULL when it differs. */
static const char *take_form(const char *text, const char *form, int numbers[])
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

	text = take_form(text, "0000-00-00T00:00:00", n);
	if (text && *text == '.')
		text = take_form(text, ".000", milli);
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
