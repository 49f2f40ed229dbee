/* hdiff: more than two dumps. */
#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

/* Each dump in another place in memory; what counts is the last against the first. */
TEST_WITH(of_many_dumps_the_growth_is_from_the_first_to_the_last, enter_folder, leave_folder)
{
	static const char *const paths[] = {"old.txt", "2.txt", "3.txt", "4.txt", "new.txt"};
	static const unsigned bytes[] = {100, 900, 20, 7, 160};
	struct result *result;

	for (unsigned i = 0; i < 5; i++) {
		struct maker maker;

		dump_begin(&maker, (struct maker){.slide = 0x100000 * i});
		put_block(&maker, bytes[i], 16, "A", 1);
		put_block(&maker, 50, 16, "B", 2);
		if (i == 2)
			put_block(&maker, 1000, 16, "C", 3);
		dump_end(&maker, paths[i]);
	}
	result = run_hdiff("old.txt", "2.txt", "3.txt", "4.txt", "new.txt");
	assert_int_equal(result->status, 0);
	assert_int_equal(result->row_count, 2); /* what comes and goes is one, too */
	assert_int_equal(growth(row_of(result, 3)), 0);
	assert_int_equal(growth(row_of(result, 1)), 60);
	assert_int_equal(row_of(result, 1)->old_bytes, 100);
	assert_int_equal(result->requested, 60);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(times(result->text, paths[i]), 1);
		assert_true(i == 0 ||
			    strstr(result->text, paths[i]) > strstr(result->text, paths[i - 1]));
	}
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(remove(paths[i]), 0);
}
