/* A view made of dumps, without a report. */
#ifndef TESTS_UNIT_TEST_QUERY_VIEW_H
#define TESTS_UNIT_TEST_QUERY_VIEW_H

#include "tests/unit/test_query.h"

#include "diff/query/view.h"

struct asked {
	struct dump_sums dumps[2];
	size_t dump_count;
	struct comparison comparison;
	struct filter filter;
	struct suppressions suppressions;
	struct strip strip;
	struct view_request request;
	struct view view;
};

/* Reads new.txt, or old.txt and new.txt. The test then sets request and filter. The previous
 * request is discarded. */
static inline struct asked *asked_begin(bool has_old, bool by_name)
{
	struct match_request match = {.mode = MATCH_AUTO};
	static struct asked asked;

	if (asked.dump_count) {
		view_release(&asked.view);
		filter_release(&asked.filter);
		suppressions_release(&asked.suppressions);
		strip_release(&asked.strip);
		comparison_release(&asked.comparison);
	}
	for (size_t i = 0; i < asked.dump_count; i++)
		sums_release(&asked.dumps[i]);
	asked = (struct asked){.dump_count = has_old ? 2 : 1};
	for (size_t i = 0; i < asked.dump_count; i++) {
		const char *path = has_old && !i ? "old.txt" : "new.txt";

		assert_int_equal(read_sums(&asked.dumps[i], path), 0);
	}
	comparison_make(&asked.comparison, asked.dumps, asked.dump_count, &match);
	view_make(&asked.view, &asked.comparison, by_name);
	filter_init(&asked.filter);
	suppressions_init(&asked.suppressions);
	strip_init(&asked.strip);
	asked.request.shown_max = SIZE_MAX;
	asked.request.filter = &asked.filter;
	return &asked;
}

static inline void asked_do(struct asked *asked)
{
	assert_int_equal(view_select(&asked->view, &asked->request, NULL), 0);
}

static inline void asked_suppress(struct asked *asked, const char *list)
{
	write_bytes("more.txt", list, strlen(list));
	assert_int_equal(suppressions_add_file(&asked->suppressions, "more.txt", NULL), 0);
	asked->request.suppressions = &asked->suppressions;
}

static inline size_t named_rows(const struct asked *asked)
{
	size_t count = 0;

	for (size_t i = 0; i < asked->comparison.row_count; i++)
		count += asked->view.naming.is_asked[i];
	return count;
}

static inline void check_block_totals(struct block_totals got, struct block_totals wanted)
{
	assert_int_equal(got.block_count, wanted.block_count);
	assert_int_equal(got.requested_bytes, wanted.requested_bytes);
	assert_int_equal(got.overhead_bytes, wanted.overhead_bytes);
}

#endif
