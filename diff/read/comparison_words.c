#include "diff/read/comparison_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/dump.h"

static int keep(struct comparison *to, const char *text)
{
	if (to->warning_count < WARNINGS_MAX) {
		const char *own = arena_text(&to->arena, text, strlen(text));

		if (!own)
			return -ERR_NOMEM;
		to->warnings[to->warning_count] = own;
	}
	to->warning_count++;
	return 0;
}

int voice_warn(struct reader_voice *voice, const char *text)
{
	int rc = keep(voice->to, text);

	if (rc || !voice->words->warning)
		return rc;
	return voice->words->warning(voice->words->ctx, text);
}

int voice_skip(struct reader_voice *voice, uint64_t line, const char *why)
{
	char place[600], text[200];
	struct err err;
	int rc;

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, voice->name, line);
	if (!voice->words->skipped || voice->skips++ >= DUMP_SKIPS_MAX)
		return err_set(voice->err, ERR_BAD_LINE, place, "%s", why);
	snprintf(text, sizeof(text), "line %" PRIu64 " was left out: %s", line, why);
	rc = keep(voice->to, text);
	err_set(&err, ERR_BAD_LINE, place, "%s", why);
	return rc ? rc : voice->words->skipped(voice->words->ctx, &err);
}
