#include "diff/inputs/moment.h"

#include <stdio.h>
#include <string.h>

#include "core/date.h"
#include "core/duration.h"
#include "core/err.h"

/* Texts that are shorter than the whole, and what completes them. */
static const struct form {
	size_t len;
	const char *rest;
	int64_t span_ms; /* that such a text stands for */
} forms[] = {
	{sizeof("2026-11-20") - 1, "T00:00:00Z", 86400000},
	{sizeof("2026-11-20T10:00") - 1, ":00Z", 60000},
	{sizeof("2026-11-20T10:00:00") - 1, "Z", 1000},
	{sizeof("2026-11-20T10:00:00.000") - 1, "Z", 1},
};

static const struct form *form_of(size_t len)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (forms[i].len == len)
			return &forms[i];
	}
	return NULL;
}

int moment_parse(const char *text, bool is_end, struct moment *moment)
{
	size_t len = strlen(text);
	const struct form *form;
	char whole[40];
	int64_t ms;

	if (!duration_parse(text, &ms)) {
		*moment = (struct moment){MOMENT_BEFORE_NEWEST, ms};
		return 0;
	}
	if (len && text[len - 1] == 'Z')
		len--;
	form = form_of(len);
	if (!form)
		return -ERR_USAGE;
	snprintf(whole, sizeof(whole), "%.*s%s", (int)len, text, form->rest);
	if (date_parse(whole, &ms))
		return -ERR_USAGE;
	*moment = (struct moment){MOMENT_AT, is_end ? ms + form->span_ms - 1 : ms};
	return 0;
}

int64_t moment_ms(const struct moment *moment, int64_t newest_ms)
{
	if (moment->kind == MOMENT_AT)
		return moment->ms;
	return newest_ms >= INT64_MIN + moment->ms ? newest_ms - moment->ms : INT64_MIN;
}
