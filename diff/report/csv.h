/* Fields of a CSV report (RFC 4180). Output errors are stored in `out`. */
#ifndef DIFF_REPORT_CSV_H
#define DIFF_REPORT_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/io/out.h"
#include "diff/report/report.h"

struct csv {
	struct out *out;
	struct buf field; /* scratch, for composing a field */
	bool is_first; /* no field of the current record has been written yet */
	const struct report *report;
	size_t series; /* index of the current view */
	const struct view *view;
	const struct comparison *comparison;
	bool is_trend, has_sample; /* optional columns */
};

/* Writes the comma before a field, unless the field is the record's first. */
void csv_comma(struct csv *csv);

/* Writes a sanitized text. Quotes it if necessary. If a spreadsheet would execute the text, adds an
 * apostrophe before it. */
void csv_text(struct csv *csv, const char *text);

/* Writes `csv->field` like csv_text(). */
void csv_field(struct csv *csv);

/* Writes any text, sanitized. Writes an empty field for NULL. */
void csv_name(struct csv *csv, const char *text);

void csv_number(struct csv *csv, uint64_t value);
void csv_signed(struct csv *csv, int64_t value);

/* Writes a number. Writes an empty field for 0, which means unknown. */
void csv_known(struct csv *csv, uint64_t value);

/* Writes now - old as a signed number. */
void csv_growth(struct csv *csv, uint64_t now, uint64_t old);

/* Writes a number like report_fraction(), or an empty field if the number is not finite. */
void csv_fraction(struct csv *csv, double value);

/* Appends a heap's address with a prefix, or the name of a heading. Without the prefix,
 * spreadsheets would read 1E5 as a number. */
void csv_add_heap(struct buf *field, uint64_t heap);

/* Writes a heap in this form. Writes an empty field for 0. */
void csv_heap(struct csv *csv, uint64_t heap);

void csv_empty(struct csv *csv, size_t count);

/* Writes column names: plain text, separated by commas. */
void csv_columns(struct csv *csv, const char *names);

/* Ends the record. */
void csv_end(struct csv *csv);

/* Writes the names of a trend's first columns, which identify the process of a series, and their
 * fields in the current series. */
void csv_process_columns(struct csv *csv);
void csv_process(struct csv *csv);

/* Writes the names of a trend's last columns, one for each snapshot of each series. A name consists
 * of `word` and the snapshot's time. If the time is unknown, the name contains the snapshot's path
 * instead. */
void csv_snapshot_columns(struct csv *csv, const char *word);

/* Returns the number of snapshots in series [from, end). */
size_t csv_snapshot_count(const struct csv *csv, size_t from, size_t end);

/* The report for --heaps: the balances of the processes and their heaps. */
void csv_balance(struct csv *csv);

#endif
