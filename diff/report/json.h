/* Writing JSON. */
#ifndef DIFF_REPORT_JSON_H
#define DIFF_REPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/io/out.h"
#include "diff/read/frame.h"
#include "diff/report/report.h"

struct page_frames;

/*
 * JSON as it is written: commas, quotes and escapes. What is wrong with the output is kept in out.
 *
 * Texts may hold any bytes: what is no UTF-8 becomes U+FFFD, and control characters (DEL and U+0080
 * to U+009F too) and the line ends U+2028 and U+2029 are escaped. So the output is UTF-8, each of
 * its lines is one that json_line() began, and no terminal obeys it.
 */
struct json {
	struct out *out;
	bool is_first; /* no comma before what comes next */
	bool is_in_page; /* '<', '>' and '&' are escaped too: no text ends the element that it is in */
	/* Of a report: what is at hand. */
	const struct view *view;
	const struct comparison *comparison;
	bool has_rates;
	struct page_frames *frames; /* of a page: frames are numbers in it; else NULL */
};

/* Keys are plain text, or NULL in an array and at the very beginning. */

void json_open(struct json *json, const char *key, char kind); /* '{' or '[' */
void json_close(struct json *json, char kind); /* '}' or ']' */

/* What comes next begins a line, behind the comma if there is one. */
void json_line(struct json *json);
void json_open_line(struct json *json, const char *key, char kind);

void json_text(struct json *json, const char *key, const char *text);
void json_hex(struct json *json, const char *key, uint64_t value); /* a text: "7FFE0308" */
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
/* To thousandths; null when value is no number. */
void json_fraction(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
/* A number, or null where it is not known. */
void json_known(struct json *json, const char *key, uint64_t value, bool is_known);
/* new - old, a number with a sign. */
void json_growth(struct json *json, const char *key, uint64_t new, uint64_t old);

/* What is in the object that report_json() writes. */
void json_report(struct json *json, const struct report *report);

/* A frame, open to more keys; the caller closes it. */
void json_open_frame(struct json *json, const struct frame *frame);

/* The number of a frame among those of a page, from 0; the same for equal ones. */
size_t page_frame_number(struct page_frames *frames, const struct frame *frame);

#endif
