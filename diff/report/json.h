#ifndef DIFF_REPORT_JSON_H
#define DIFF_REPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/io/out.h"
#include "diff/read/frame.h"
#include "diff/report/report.h"

struct page_frames;
struct page_series;

/*
 * JSON output: commas, quotes and escapes. Output errors are stored in `out`.
 *
 * Texts may contain any bytes. Invalid UTF-8 becomes U+FFFD. Control characters (including DEL and
 * U+0080 to U+009F) and the line ends U+2028 and U+2029 are escaped. Therefore, the output is
 * UTF-8, only json_line() starts a new line, and no control sequence reaches a terminal. */
struct json {
	struct out *out;
	bool is_first; /* no comma before the next item */
	/* true if the JSON is inside an HTML page; '<', '>' and '&' are then also escaped, so that
	 * no text can end the HTML element */
	bool is_in_page;
	/* The part of the report that is being written. */
	const struct view *view;
	const struct comparison *comparison;
	bool has_rates;
	/* In a page: table of the frames. The JSON then contains a frame's number in this table
	 * instead of the frame. Otherwise NULL. */
	struct page_frames *frames;
	/* In a page of a trend: the current series, whose sums are in a table. Otherwise NULL. */
	const struct page_series *series;
};

/* A key is plain text, or NULL in an array and at the start of the document. */

void json_open(struct json *json, const char *key, char kind); /* '{' or '[' */
void json_close(struct json *json, char kind); /* '}' or ']' */

/* Starts a new line for the next item. If the item needs a comma, writes the comma before the line
 * end. */
void json_line(struct json *json);
void json_open_line(struct json *json, const char *key, char kind);

void json_text(struct json *json, const char *key, const char *text);
void json_hex(struct json *json, const char *key, uint64_t value); /* as text: "7FFE0308" */
/* Writes a heap's address like json_hex(), or the name of a heading as text. */
void json_heap(struct json *json, const char *key, uint64_t heap);
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
/* Rounds to thousandths. Writes null if `value` is not finite. */
void json_fraction(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
/* Writes a number, or null if it is not known. */
void json_known(struct json *json, const char *key, uint64_t value, bool is_known);
/* Writes new - old as a signed number. */
void json_growth(struct json *json, const char *key, uint64_t now, uint64_t old, bool is_known);

/* Writes the members of the object that report_json() opens. */
void json_report(struct json *json, const struct report *report);

/* Writes the balance of the process in the current view, if a dump records it. */
void json_balance(struct json *json);

/* Writes the heaps of the current view if `shows_heaps` is set, and the pinned containers if they
 * were requested. json_row_pinned() writes the pinned containers of a row. */
void json_heaps(struct json *json, bool shows_heaps);
void json_row_pinned(struct json *json, uint32_t number);

/* Opens an object and writes a frame into it. The caller may add keys and must close the object. */
void json_open_frame(struct json *json, const struct frame *frame);

/* Write frames, the bytes and blocks of a sum, and the sums of a window. */
void json_frames(struct json *json, const char *key, const struct frame *items, size_t count);
void json_some(struct json *json, const char *key, const struct block_totals *some);
void json_window(struct json *json, const struct window_sums *sums);

/* In a page of a trend: the rows that are listed, and a table of their sums. */
struct page_series {
	bool *is_listed; /* indexed by row shown */
	size_t other_count; /* number of rows that are not listed */
	struct buf table;
};

/* Chooses the rows of the current view. page_series_end() writes the table, and frees it. */
void page_series_begin(struct json *json, size_t series_count, struct page_series *series);
void page_series_end(struct json *json, struct page_series *series);

/* In a page of a window: writes what the page's script needs to show any part of the window. */
void page_lives(struct json *json);

/* The distinct frames of a page, in order of occurrence. */
struct page_frames {
	struct frame *items;
	size_t count, cap;
	struct table numbers;
	struct buf key;
};

/* Returns the number of a frame in the page's table, from 0. Equal frames have the same number. */
size_t page_frame_number(struct page_frames *frames, const struct frame *frame);

#endif
