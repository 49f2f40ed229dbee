/* What is said of heaps that are not as they should be. */
#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/capture/capture_parts.h"

TEST(places_are_said_by_what_is_known_of_them)
{
	struct raw_capture captured = {0};
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 0);
	walk_doubt(&captured.walk, 0xabc000, "odd thing");
	walk_doubt(&captured.walk, 0xdef000, "other thing");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 1);
	assert_string_equal(snapshot.warnings[0],
		"2 places in the heaps may be damaged; the first: odd thing at ABC000");
	assert_int_equal(snapshot.missing_count, 0);
	walk_broken(&captured.walk, 0x123000, "bad thing");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 3);
	assert_string_equal(snapshot.warnings[1],
		"1 places in the heaps made no sense; the first: bad thing at 123000");
	assert_int_equal(snapshot.missing_count, 1);
	walk_missing(&captured.walk, 0x456000, "a list");
	walk_missing(&captured.walk, 0x789000, "a page");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 6);
	assert_string_equal(snapshot.warnings[4], "2 places in the heaps lead to memory that is "
						  "not there; the first: a list at 456000");
	assert_int_equal(snapshot.missing_count, 3);
	walk_clear(&captured.walk);
	assert_int_equal(captured.walk.doubt_count, 0);
	snapshot_release(&snapshot);
}
