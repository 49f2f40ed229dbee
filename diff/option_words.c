#include "diff/option_words.h"

#include <string.h>

#include "core/buf.h"
#include "diff/ask/view.h"
#include "diff/match/match.h"
#include "diff/trend/trend.h"

const struct word sort_words[] = {
	{"bytes", SORT_BYTES},
	{"count", SORT_COUNT},
	{"new", SORT_NEW},
	{"old", SORT_OLD},
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

const struct word base_words[] = {{"hex", 16}, {"decimal", 10}, {NULL, 0}};

/* An unknown word, with those that are known: next() gives them one by one. */
static int unknown_word(const char *text, const char *(*next)(const void *all, size_t i),
	const void *all, struct err *err)
{
	const char *name;
	struct buf names;
	int rc = 0;

	buf_init(&names);
	for (size_t i = 0; !rc && (name = next(all, i)); i++)
		rc = buf_printf(&names, "%s%s", i ? ", " : "", name);
	rc = rc ? err_set(err, ERR_NOMEM, NULL, NULL) :
		  err_set(err, ERR_USAGE, text, "there are %s", names.data);
	buf_release(&names);
	return rc;
}

static const char *word_name(const void *all, size_t i)
{
	return ((const struct word *)all)[i].name;
}

static const char *verdict_name(const void *all, size_t i)
{
	(void)all;
	return i < TREND_VERDICTS ? trend_verdict_name((enum trend_verdict)i) : NULL;
}

static const char *format_name(const void *all, size_t i)
{
	return ((const struct report_format *)all)[i].name;
}

int word_value(const struct word *words, const char *text, int *value, struct err *err)
{
	for (const struct word *word = words; word->name; word++) {
		if (!strcmp(word->name, text)) {
			*value = word->value;
			return 0;
		}
	}
	return unknown_word(text, word_name, words, err);
}

/* The one that the first len characters of a list are. */
static int take_verdict(unsigned *verdicts, const char *text, size_t len, struct err *err)
{
	for (unsigned i = 0; i < TREND_VERDICTS; i++) {
		const char *known = trend_verdict_name((enum trend_verdict)i);

		if (strlen(known) == len && !memcmp(known, text, len)) {
			*verdicts |= 1u << i;
			return 0;
		}
	}
	return unknown_word(text, verdict_name, NULL, err);
}

int word_verdicts(const char *text, unsigned *verdicts, struct err *err)
{
	unsigned found = 0;
	int rc = 0;

	for (;; text++) {
		size_t len = strcspn(text, ",");

		rc = take_verdict(&found, text, len, err);
		text += len;
		if (rc || !*text)
			break;
	}
	if (!rc)
		*verdicts = found;
	return rc;
}

int word_format(const char *text, const struct report_format **found, struct err *err)
{
	for (const struct report_format *format = report_formats; format->name; format++) {
		if (!strcmp(format->name, text)) {
			*found = format;
			return 0;
		}
	}
	return unknown_word(text, format_name, report_formats, err);
}
