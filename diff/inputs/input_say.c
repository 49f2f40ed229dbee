#include "diff/inputs/input_say.h"

#include "core/buf.h"
#include "core/text.h"
#include "diff/read/dump_warnings.h"

int say_warning(FILE *say, const char *place, const char *what, const char *text)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s: warning: %s%s", place, what, text);
	if (!rc) {
		fprintf(say, "hdiff: %s\n", text_harmless(words.data));
		fflush(say);
	}
	buf_release(&words);
	return rc;
}

int say_left_out(FILE *say, const char *place, const char *why)
{
	return say_warning(say, place, "left out: ", why);
}

/* The place is told by the reason: it may be a line of the file. */
int say_damaged(FILE *say, const char *place, const struct err *why)
{
	struct err without_place = *why;
	char text[sizeof(why->detail) + 200];

	without_place.place[0] = '\0';
	return say_left_out(say, why->place[0] ? why->place : place,
		err_reason(&without_place, text, sizeof(text)));
}

int say_cut(FILE *say, const struct err *err)
{
	return say_warning(
		say, err->place, "it is cut short and used as far as it goes: ", err->detail);
}

/* Lines that were left out have their own place. */
int say_warnings(FILE *say, const char *name, const struct sums *sums)
{
	char text[60];
	int rc = 0;

	for (size_t i = 0; !rc && i < sums->warning_count && i < WARNINGS_MAX; i++) {
		const struct left_out *line = &sums->left_out[i];

		rc = line->place ? say_left_out(say, line->place, line->why) :
				   say_warning(say, name, "", sums->warnings[i]);
	}
	if (!rc && sums->warning_count > WARNINGS_MAX) {
		snprintf(text, sizeof(text), "and %zu more", sums->warning_count - WARNINGS_MAX);
		rc = say_warning(say, name, "", text);
	}
	return rc;
}

static int say_dump_warning(FILE *say, const struct dump_warning *warning)
{
	const struct left_out none = {0}, *line = &none;
	struct buf words;
	int rc;

	if (warning->number < WARNINGS_MAX)
		line = &warning->first->left_out[warning->number];
	if (line->place)
		return say_left_out(say, line->place, line->why);
	buf_init(&words);
	rc = dump_warning_words(&words, warning);
	if (!rc)
		rc = say_warning(say, warning->first->path, "", words.data);
	buf_release(&words);
	return rc;
}

int say_series_warnings(FILE *say, const struct sums *dumps, size_t count)
{
	struct dump_warnings warnings;
	int rc = dump_warnings_gather(&warnings, dumps, count);

	for (size_t i = 0; !rc && i < warnings.count; i++)
		rc = say_dump_warning(say, &warnings.items[i]);
	dump_warnings_release(&warnings);
	return rc;
}
