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

int date_parse(const char *text, int64_t *ms)
{
	int year, month, day, hour, minute, second, milli = 0, end = 0;
	int64_t days;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second,
		    &end) != 6)
		return -ERR_BAD_LINE;
	text += end;
	if (*text == '.') {
		end = 0;
		if (sscanf(text, ".%3d%n", &milli, &end) != 1 || end != 4)
			return -ERR_BAD_LINE;
		text += end;
	}
	if (strcmp(text, "Z") != 0 || year < 1 || month < 1 || month > 12 || day < 1 ||
		day > month_days(year, month) || hour < 0 || hour > 23 || minute < 0 ||
		minute > 59 || second < 0 || second > 59 || milli < 0)
		return -ERR_BAD_LINE;
	days = year_start(year) + day - 1;
	while (--month)
		days += month_days(year, month);
	*ms = days * DAY_MS + hour * 3600000LL + minute * 60000LL + second * 1000LL + milli;
	return 0;
}
