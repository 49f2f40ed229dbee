/*
 * For the tests of matching: dumps read or made by hand, compared as asked for, and their rows. What
 * a test expects it computes from what it put into the dumps.
 */
#ifndef TESTS_UNIT_TEST_MATCH_H
#define TESTS_UNIT_TEST_MATCH_H

#include "diff/match/match.h"
#include "diff/query/naming.h"
#include "diff/read/dump_sums.h"
#include "diff/report/report.h"
#include "tests/unit/test_diff.h"
#include "tests/unit/test_sums.h"

struct compared {
	struct dump_sums dumps[3]; /* oldest first */
	size_t dump_count;
	struct comparison comparison;
};

/* Compares old.txt and new.txt. */
static inline void compare(struct compared *compared, struct match_request request)
{
	struct err err = {0};

	compared->dump_count = 2;
	for (size_t i = 0; i < 2; i++) {
		sums_init(&compared->dumps[i]);
		assert_int_equal(
			read_sums(&compared->dumps[i], i ? "new.txt" : "old.txt", &err), 0);
	}
	comparison_make(&compared->comparison, compared->dumps, 2, &request);
}

static inline void compared_release(struct compared *compared)
{
	comparison_release(&compared->comparison);
	for (size_t i = 0; i < compared->dump_count; i++)
		sums_release(&compared->dumps[i]);
}

static inline int64_t row_growth(const struct compared *compared, size_t row)
{
	return row_delta(&compared->comparison, &compared->comparison.rows[row]).requested_bytes;
}

/* How many rows the two dumps become. */
static inline size_t count_rows(struct match_request request)
{
	struct compared compared;
	size_t count;

	compare(&compared, request);
	count = compared.comparison.row_count;
	compared_release(&compared);
	return count;
}

/* A frame by its module's base and the offset. */
static inline void put_frame(struct maker *maker, uint64_t base, unsigned offset)
{
	put(maker, "\t%" PRIX64, base + maker->slide + offset);
}

/* What the dump says of a frame, so far behind the start of its function; line 0: no file and line. */
static inline void put_name_at(struct maker *maker, uint64_t base, unsigned offset,
	const char *function, unsigned behind, const char *file, unsigned line)
{
	char place[200] = "";

	if (line)
		snprintf(place, sizeof(place), " file=%s line=%u", file, line);
	put(maker, "// hsnap: name addr=%" PRIX64 " function=%s offset=%X%s",
		base + maker->slide + offset, function, behind, place);
}

static inline void put_name_of(struct maker *maker, uint64_t base, unsigned offset,
	const char *function, const char *file, unsigned line)
{
	put_name_at(maker, base, offset, function, 1, file, line);
}

static inline void put_heap(struct maker *maker, uint64_t addr)
{
	put(maker, "*- - - - - Heap %" PRIX64 " Hogs - - - - -", addr);
}

/* All rows with their names, as text; the caller frees it. */
static inline char *report_of(const struct comparison *comparison, bool by_name)
{
	struct report_style style = {.hex = false};
	struct view view;
	struct err err;
	struct out out;

	view_make(&view, comparison, by_name);
	naming_find(&view.naming, view.rows, view.row_count);
	assert_int_equal(out_open(&out, "out.txt", &err), 0);
	report_text(&out, &(struct report){.views = &view, .view_count = 1, .style = style});
	assert_int_equal(out_commit(&out, &err), 0);
	view_release(&view);
	return read_text("out.txt");
}

#endif
