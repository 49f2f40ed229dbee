/* Tables of numbers in a page, and the choice of rows that fit in it. */
#ifndef DIFF_REPORT_PAGE_TABLE_H
#define DIFF_REPORT_PAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/report/json.h"

/* Appends a number with 7 bits per byte, the lowest first. A byte above 127 is not the last of its
 * number. page_add_signed() appends a number of either sign: doubled, and minus 1 if it is
 * positive. */
void page_add_number(struct buf *table, uint64_t value);
void page_add_signed(struct buf *table, int64_t value);

/* Writes a table as Base64. */
void page_write_table(struct json *json, const char *key, const struct buf *table);

struct page_row {
	size_t shown; /* index in view->rows */
	size_t first, count; /* entries of the row in the caller's table */
	size_t bytes; /* about how many bytes the row needs in the table */
	uint64_t weight;
	bool is_listed;
};

/* Chooses the rows with the largest weights whose rows, frames and tables need about `bytes_max`
 * bytes in a page. Sets `is_listed`. Returns the number of listed rows. */
size_t page_choose_rows(struct json *json, struct page_row *rows, size_t count, size_t bytes_max);

#endif
