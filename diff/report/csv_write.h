/*
 * CSV as it is written: RFC 4180, and no text that a spreadsheet would run. What is wrong with the
 * output is kept in out.
 */
#ifndef DIFF_CSV_WRITE_H
#define DIFF_CSV_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/out.h"

struct csv {
	struct out *out;
	struct buf field; /* for putting one together */
	bool is_first; /* of its record */
};

void csv_init(struct csv *csv, struct out *out);
void csv_release(struct csv *csv);

/* A text that is clean: quoted where it has to be, marked where it would be run. */
void csv_text(struct csv *csv, const char *text);

/* Any text, made clean; NULL: nothing. 0 or -ERR_NOMEM. */
int csv_name(struct csv *csv, const char *text);

void csv_number(struct csv *csv, uint64_t value);
void csv_signed(struct csv *csv, int64_t value);

/* new - old, a number with a sign. */
void csv_growth(struct csv *csv, uint64_t new, uint64_t old);

/* As fraction_text() has it; empty when value is no number. */
void csv_fraction(struct csv *csv, double value);

/* count fields without anything. */
void csv_empty(struct csv *csv, size_t count);

/* Names of columns, with commas between; plain text. */
void csv_columns(struct csv *csv, const char *names);

void csv_end(struct csv *csv);

#endif
