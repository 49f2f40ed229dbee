/* Keyword values of options, and the errors for unknown ones. */
#include "diff/options.h"

#include <string.h>

#include "core/base/memory.h"
#include "diff/trend/trend.h"

const struct word sort_words[] = {
	{"bytes", SORT_BYTES},
	{"count", SORT_COUNT},
	{"new", SORT_NEW},
	{"old", SORT_OLD},
	{"total", SORT_TOTAL},
	{"name", SORT_NAME},
	{"verdict", SORT_VERDICT},
	{"slope", SORT_SLOPE},
	{NULL, 0},
};

const struct word spark_words[] = {
	{"auto", SPARK_AUTO},
	{"utf8", SPARK_UTF8},
	{"ascii", SPARK_ASCII},
	{"none", SPARK_NONE},
	{NULL, 0},
};

const struct word group_words[] = {
	{"stack", GROUP_STACK},
	{"function", GROUP_FUNCTION},
	{"file", GROUP_FILE},
	{"module", GROUP_MODULE},
	{"heap", GROUP_HEAP},
	{"memory", GROUP_MEMORY},
	{"thread", GROUP_THREAD},
	{NULL, 0},
};

const struct word match_words[] = {
	{"auto", MATCH_AUTO},
	{"id", MATCH_ID},
	{"address", MATCH_ADDRESS},
	{"module", MATCH_MODULE},
	{"symbol", MATCH_SYMBOL},
	{"function", MATCH_FUNCTION},
	{NULL, 0},
};

const struct word fate_words[] = {
	{"aifo", FATE_AIFO},
	{"aifi", FATE_AIFI},
	{"aofi", FATE_AOFI},
	{"aofo", FATE_AOFO},
	{"ai", FATE_AI},
	{NULL, 0},
};

const struct word colour_words[] = {
	{"auto", COLOUR_AUTO},
	{"always", COLOUR_ALWAYS},
	{"never", COLOUR_NEVER},
	{NULL, 0},
};

const struct word base_words[] = {{"hex", 16}, {"decimal", 10}, {NULL, 0}};

/* Sets the error for an unknown word and lists the known words in it. Releases `known`. */
static int unknown_word(const char *text, struct buf *known, struct err *err)
{
	err_set(err, ERR_USAGE, text, "choose one of %s", known->data);
	buf_release(known);
	return -ERR_USAGE;
}

static void add_word(struct buf *known, const char *word)
{
	buf_printf(known, "%s%s", known->len ? ", " : "", word);
}

int option_word_value(const struct word *words, const char *text, int *value, struct err *err)
{
	struct buf known;

	for (const struct word *word = words; word->name; word++) {
		if (!strcmp(word->name, text)) {
			*value = word->value;
			return 0;
		}
	}
	buf_init(&known);
	for (const struct word *word = words; word->name; word++)
		add_word(&known, word->name);
	return unknown_word(text, &known, err);
}

int option_word_verdicts(const char *text, unsigned *verdicts, struct err *err)
{
	unsigned found = 0;
	struct buf known;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		unsigned i = 0;

		for (; i < TREND_VERDICTS; i++) {
			const char *name = trend_verdict_name((enum trend_verdict)i);

			if (strlen(name) == len && !memcmp(name, at, len))
				break;
		}
		if (i == TREND_VERDICTS) {
			buf_init(&known);
			for (i = 0; i < TREND_VERDICTS; i++)
				add_word(&known, trend_verdict_name((enum trend_verdict)i));
			return unknown_word(at, &known, err);
		}
		found |= 1u << i;
		at += len;
		if (!*at)
			break;
	}
	*verdicts = found;
	return 0;
}

int option_word_format(const char *text, const struct report_format **found, struct err *err)
{
	struct buf known;

	for (const struct report_format *format = report_formats; format->name; format++) {
		if (!strcmp(format->name, text)) {
			*found = format;
			return 0;
		}
	}
	buf_init(&known);
	for (const struct report_format *format = report_formats; format->name; format++)
		add_word(&known, format->name);
	return unknown_word(text, &known, err);
}
