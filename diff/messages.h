/* Messages about input files, one line each. Control characters in names and texts are replaced. */
#ifndef DIFF_MESSAGES_H
#define DIFF_MESSAGES_H

#include <stddef.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/read/dump_sums.h"

/* Prints "hdiff: " and the formatted text, sanitized. */
void message_line(FILE *messages, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints "hdiff: PLACE: warning: WHAT TEXT". */
void message_warning(FILE *messages, const char *place, const char *what, const char *text);

void message_left_out(FILE *messages, const char *place, const char *why);
void message_damaged(FILE *messages, const char *place, const struct err *why);

/* Reports the defects of a dump that is used. */
void message_warnings(FILE *messages, const char *name, const struct dump_sums *sums);

/* Reports the defects of the dumps in a series. Prints equal texts only once. */
void message_series_warnings(FILE *messages, const struct dump_sums *dumps, size_t count);

void message_cut(FILE *messages, const struct err *err);

#endif
