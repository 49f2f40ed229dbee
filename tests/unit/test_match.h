/* Comparisons of dumps that were read or made by hand, and their rows. Tests compute their
 * expectations from the contents of the dumps. */
#ifndef TESTS_UNIT_TEST_MATCH_H
#define TESTS_UNIT_TEST_MATCH_H

#include "diff/dump_identity.h"
#include "diff/match/match.h"
#include "diff/query/naming.h"
#include "diff/read/dump_sums.h"
#include "diff/report/report.h"
#include "tests/unit/test_diff.h"

/* The last comparison. The next comparison releases it. */
static struct {
	struct dump_sums dumps[4]; /* oldest first */
	size_t dump_count;
	struct comparison comparison;
} compared;

/* Starts a comparison. The test then reads or makes dumps in compared.dumps. */
static inline void compared_begin(size_t dump_count)
{
	if (compared.dump_count)
		comparison_release(&compared.comparison);
	for (size_t i = 0; i < compared.dump_count; i++)
		sums_release(&compared.dumps[i]);
	memset(&compared, 0, sizeof(compared));
	compared.dump_count = dump_count;
}

static inline void compared_make(struct match_request request)
{
	comparison_make(&compared.comparison, compared.dumps, compared.dump_count, &request);
}

/* Compares old.txt and new.txt; returns the number of rows. */
static inline size_t compare(struct match_request request)
{
	compared_begin(2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(read_sums(&compared.dumps[i], i ? "new.txt" : "old.txt"), 0);
	}
	request.is_one_process = dumps_share_modules(compared.dumps, 2);
	compared_make(request);
	return compared.comparison.row_count;
}

static inline int64_t row_growth(size_t row)
{
	return row_delta(&compared.comparison, &compared.comparison.rows[row]).requested_bytes;
}

static inline void write_frame(struct maker *maker, uint64_t base, unsigned offset)
{
	put(maker, "\t%" PRIX64, base + maker->slide + offset);
}

/* Adds the name of a frame that is `behind` bytes after its function's start. If line is 0, adds no
 * file and line. */
static inline void write_name_at(struct maker *maker, uint64_t base, unsigned offset,
	const char *function, unsigned behind, const char *file, unsigned line)
{
	char place[200] = "";

	if (line)
		snprintf(place, sizeof(place), " file=%s line=%u", file, line);
	put(maker, "// hsnap: name addr=%" PRIX64 " function=%s offset=%X%s",
		base + maker->slide + offset, function, behind, place);
}

static inline void write_name_of(struct maker *maker, uint64_t base, unsigned offset,
	const char *function, const char *file, unsigned line)
{
	write_name_at(maker, base, offset, function, 1, file, line);
}

static inline void write_heap(struct maker *maker, uint64_t addr)
{
	put(maker, "*- - - - - Heap %" PRIX64 " Hogs - - - - -", addr);
}

/* Returns all rows of the comparison as text, valid until the next call. */
static inline char *report_of(bool by_name)
{
	static char *text;
	struct view view;
	struct out out;

	view_make(&view, &compared.comparison, by_name);
	naming_find(&view.naming, view.rows, view.row_count);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	report_umdh(&out, &(struct report){.views = &view, .view_count = 1});
	assert_int_equal(out_commit(&out, NULL), 0);
	view_release(&view);
	free(text);
	return text = read_text("out.txt");
}

#endif
