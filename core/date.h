/* Times as text: "2026-11-20T10:25:48.123Z" (ISO 8601, UTC, milliseconds) and back. */
#ifndef CORE_DATE_H
#define CORE_DATE_H

#include <stdint.h>

#define DATE_TEXT_BYTES 48

/* ms since 1970-01-01 UTC, years 1 to 9999; outside them the text is "?". Returns text. */
const char *date_text(int64_t ms, char text[DATE_TEXT_BYTES]);

/* 0 and *ms, or -ERR_BAD_LINE when text is no such time (milliseconds may be missing). */
int date_parse(const char *text, int64_t *ms);

#endif
