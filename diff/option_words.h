/* Words that options take for values: what each stands for, and which there are when it is none. */
#ifndef DIFF_OPTION_WORDS_H
#define DIFF_OPTION_WORDS_H

#include "core/err.h"
#include "diff/report/report.h"

/* A list of them ends with one without a name. */
struct word {
	const char *name;
	int value;
};
extern const struct word sort_words[], spark_words[], group_words[], match_words[], base_words[];

/* Each: 0; -ERR_USAGE with the words that there are; -ERR_NOMEM. */
int word_value(const struct word *words, const char *text, int *value, struct err *err);
int word_format(const char *text, const struct report_format **found, struct err *err);

/* "grows,grew-once": a bit for each verdict that is named. */
int word_verdicts(const char *text, unsigned *verdicts, struct err *err);

#endif
