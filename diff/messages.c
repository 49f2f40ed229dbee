/* Messages about input files: single lines, and the warnings of a dump or of a series. */
#include "diff/messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/read/dump_sums.h"

void message_line(FILE *messages, const char *format, ...)
{
	char small[200], *words = small;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	if (len >= (int)sizeof(small)) {
		words = xmalloc((size_t)len + 1);
		va_start(args, format);
		vsnprintf(words, (size_t)len + 1, format, args);
		va_end(args);
	}
	fprintf(messages, "hdiff: %s\n", text_harmless(words));
	fflush(messages);
	if (words != small)
		free(words);
}

void message_warning(FILE *messages, const char *place, const char *what, const char *text)
{
	message_line(messages, "%s: warning: %s%s", place, what, text);
}

void message_left_out(FILE *messages, const char *place, const char *why)
{
	message_warning(messages, place, "left out: ", why);
}

/* Prints the place in `why`, if it has one, instead of `place`. The place in `why` may be a line of
 * the file. */
void message_damaged(FILE *messages, const char *place, const struct err *why)
{
	struct err without_place = *why;
	char text[sizeof(why->detail) + 200];

	without_place.place[0] = '\0';
	message_left_out(messages, why->place[0] ? why->place : place,
		err_reason(&without_place, text, sizeof(text)));
}

void message_cut(FILE *messages, const struct err *err)
{
	message_warning(
		messages, err->place, "cut short; only the complete part is used: ", err->detail);
}

/* A warning about a malformed line names the line. */
void message_warnings(FILE *messages, const char *name, const struct dump_sums *sums)
{
	for (size_t i = 0; i < sums->quality.warning_count && i < WARNINGS_MAX; i++) {
		const struct left_out *line = &sums->quality.left_out[i];

		if (line->place)
			message_left_out(messages, line->place, line->why);
		else
			message_warning(messages, name, "", sums->quality.warnings[i]);
	}
	if (sums->quality.warning_count > WARNINGS_MAX)
		message_line(messages, "%s: warning: %zu more warning%s not shown", name,
			sums->quality.warning_count - WARNINGS_MAX,
			text_plural(sums->quality.warning_count - WARNINGS_MAX));
}

void message_series_warnings(FILE *messages, const struct dump_sums *dumps, size_t count)
{
	struct dump_warnings warnings;
	struct buf words;

	buf_init(&words);
	dump_warnings_gather(&warnings, dumps, count);
	for (size_t i = 0; i < warnings.count; i++) {
		const struct dump_warning *warning = &warnings.items[i];
		const struct left_out none = {0}, *line = &none;

		if (warning->number < WARNINGS_MAX)
			line = &warning->first->quality.left_out[warning->number];
		buf_clear(&words);
		dump_warning_words(&words, warning);
		if (line->place)
			message_left_out(messages, line->place, line->why);
		else
			message_warning(messages, warning->first->id.path, "", words.data);
	}
	dump_warnings_release(&warnings);
	buf_release(&words);
}
