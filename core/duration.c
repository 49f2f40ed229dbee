#include "core/duration.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "core/err.h"

static const struct {
	char name;
	int64_t ms;
} duration_units[] = {{'d', 86400000}, {'h', 3600000}, {'m', 60000}, {'s', 1000}};

#define UNITS (sizeof(duration_units) / sizeof(*duration_units))

/* Moves *text behind the digits it starts with: 0 and their number, or -ERR_USAGE. */
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

/* Of the duration_units from the given one on; UNITS: it is none of them. */
static size_t duration_unit(char c, size_t from)
{
	while (from < UNITS && (c != duration_units[from].name && c != duration_units[from].name - 'a' + 'A'))
		from++;
	return from;
}

int duration_parse(const char *text, int64_t *ms)
{
	int64_t sum = 0, number = 0;
	size_t unit = 0;

	do {
		if (read_digits(&text, &number))
			return -ERR_USAGE;
		unit = duration_unit(*text, unit);
		if (unit == UNITS || number > (INT64_MAX - sum) / duration_units[unit].ms)
			return -ERR_USAGE;
		sum += number * duration_units[unit++].ms;
		text++;
	} while (*text);
	*ms = sum;
	return 0;
}

const char *duration_text(int64_t ms, char text[DURATION_TEXT_BYTES])
{
	size_t len = 0;

	for (size_t i = 0; i < UNITS; i++) {
		int64_t number = ms / duration_units[i].ms;

		ms %= duration_units[i].ms;
		if (number || (i == UNITS - 1 && !len))
			len += (size_t)snprintf(text + len, DURATION_TEXT_BYTES - len,
				"%" PRId64 "%c", number, duration_units[i].name);
	}
	return text;
}
