#include "snapshot/schedule/task/iso_duration.h"

#include <inttypes.h>
#include <stdbool.h>

static const struct unit {
	char name;
	int64_t ms;
} units[] = {{'D', 86400000}, {'H', 3600000}, {'M', 60000}, {'S', 1000}};

#define UNITS (sizeof(units) / sizeof(*units))
#define TIME_UNITS_FROM 1 /* these stand behind a 'T' */
#define NUMBER_MAX 1000000000 /* of any unit, far less than what overflows */

int iso_duration_add(struct buf *text, int64_t ms)
{
	int rc = buf_add_text(text, "P");
	bool has_time = false;

	if (!rc && ms < 1000)
		return buf_add_text(text, "T0S");
	for (size_t i = 0; !rc && i < UNITS; i++) {
		int64_t number = ms / units[i].ms;

		ms %= units[i].ms;
		if (!number)
			continue;
		if (i >= TIME_UNITS_FROM && !has_time)
			rc = buf_add_text(text, "T");
		has_time |= i >= TIME_UNITS_FROM;
		if (!rc)
			rc = buf_printf(text, "%" PRId64 "%c", number, units[i].name);
	}
	return rc;
}

/* A number and its unit, one of those from *next on, which moves behind it. */
static int read_part(const char **text, size_t *next, int64_t *ms)
{
	int64_t number = 0;
	const char *at = *text;
	size_t unit = *next;

	for (; *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (*at - '0');
		if (number > NUMBER_MAX)
			return -ERR_USAGE;
	}
	while (unit < UNITS && units[unit].name != *at)
		unit++;
	if (at == *text || unit == UNITS)
		return -ERR_USAGE;
	*ms += number * units[unit].ms;
	*next = unit + 1;
	*text = at + 1;
	return 0;
}

int iso_duration_parse(const char *text, int64_t *ms)
{
	int64_t sum = 0;
	size_t next = 0;
	bool is_time = false;

	if (*text++ != 'P' || !*text)
		return -ERR_USAGE;
	while (*text) {
		if (*text == 'T' && !is_time) {
			is_time = true;
			text++;
			next = TIME_UNITS_FROM;
		}
		if (!is_time && next >= TIME_UNITS_FROM)
			return -ERR_USAGE;
		if (read_part(&text, &next, &sum) || (!is_time && next > TIME_UNITS_FROM))
			return -ERR_USAGE;
	}
	*ms = sum;
	return 0;
}
