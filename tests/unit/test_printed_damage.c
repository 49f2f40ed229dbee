#include "tests/unit/t.h"

#include "tests/unit/test_printed.h"

TEST(row_that_is_damaged_is_left_out_with_its_place)
{
	static const char *const rows[] = {
		/* The two lines contradict each other, or one contradicts itself. */
		"+ 8 ( 9 - 2) 1 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"- 8 ( 9 - 1) 1 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 - 1) 2 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 - 1) 1 allocs\tBackTrace2\n+ 2 ( 1 - 0)\tBackTrace2\tallocations\n",
		/* One of the words is missing. */
		"+ ( 9 - 1) 1 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 - 1) 1 blocks\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 - 1) allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 - 1) 1 allocs\tBackTrace\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
		"+ 8 ( 9 . 1) 1 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace2\tallocations\n",
	};
	char text[1000];

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct got *got;

		snprintf(text, sizeof(text), GOOD "%s\n\tx!y+1\n\nTotal increase == 8\n", rows[i]);
		got = read_in(text, 0);
		assert_int_equal(got->rc, 0);
		assert_string_equal(got->skipped, "old.txt:6\n");
		assert_int_equal(got->comparison.row_count, 1);
		assert_row(got, 0, 1, 9, 1, 1);
	}
}

TEST(line_that_belongs_to_nothing_is_left_out_with_its_place)
{
	static const struct {
		const char *text, *skipped;
	} texts[] = {
		{"+ 5 ( hello\n" GOOD "Total increase == 8\n", "old.txt:1\n"},
		{"\ta!b+1\n" GOOD "Total increase == 8\n", "old.txt:1\n"},
		{GOOD "+ 0 ( 1 - 1)\tBackTrace2\tallocations\n\n\ta!b+1\n\nTotal increase == 8\n",
			"old.txt:6\n"},
		{GOOD "Total increase == 8\nTotal increase == 8\n", "old.txt:7\n"},
		/* The two lines belong to two rows. */
		{GOOD "+ 8 ( 9 - 1) 1 allocs\tBackTrace2\n+ 0 ( 1 - 1)\tBackTrace3\tallocations\n"
		      "\n\tx!y+1\n\nTotal increase == 8\n",
			"old.txt:7\n"},
		{GOOD "Total increase == 8 requested + 1 overhead = 8\n", "old.txt:6\n"},
		{GOOD "Total increase == 8 requested + 1\n", "old.txt:6\n"},
		{GOOD "Total increase == f000000000000000 requested + 0 overhead = "
		      "f000000000000000\n",
			"old.txt:6\n"},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct got *got = read_in(texts[i].text, 0);

		assert_int_equal(got->rc, 0);
		assert_string_equal(got->skipped, texts[i].skipped);
		assert_int_equal(got->comparison.row_count, 1);
		assert_row(got, 0, 1, 9, 1, 1);
	}
}

TEST(more_damage_than_hundred_lines_is_error)
{
	struct buf text;
	struct got *got;

	buf_init(&text);
	for (unsigned i = 0; i < 100; i++)
		buf_add_text(&text, "+ 5 ( hello\n");
	buf_add_text(&text, GOOD "Total increase == 8\n");
	got = read_in(text.data, 0);
	assert_int_equal(got->rc, 0);
	assert_int_equal(got->skip_count, 100);
	buf_add_text(&text, "+ 5 ( hello\n");
	got = read_in(text.data, 0);
	assert_int_equal(got->rc, -ERR_BAD_LINE);
	assert_string_equal(got->err.place, "old.txt:107");
	buf_release(&text);
}

TEST(line_without_end_is_error_and_comment_may_be_long)
{
	struct buf text;
	struct got *got;

	buf_init(&text);
	for (int is_comment = 1; is_comment >= 0; is_comment--) {
		buf_add_text(&text, is_comment ? "//" : "\t");
		for (unsigned i = 0; i < 300000; i++)
			buf_add_text(&text, "+ 1 ( 1 ");
		buf_add_text(&text, "\n" GOOD "Total increase == 8\n");
		got = read_in(text.data, 0);
		assert_int_equal(got->rc, is_comment ? 0 : -ERR_BAD_LINE);
		buf_clear(&text);
	}
	buf_release(&text);
}

TEST(file_that_ends_anywhere_is_never_taken_for_whole)
{
	size_t whole = sizeof(hex_text) - 1;

	for (size_t len = 1; len < whole - 1; len++) {
		struct got *got = read_bytes(hex_text, len, 16);

		assert_true(got->rc == -ERR_CUT || got->rc == -ERR_NOT_DUMP);
		/* The last row is cut at its own lines or at its stack. */
		if (len > (size_t)(strstr(hex_text, "-    2018") - hex_text))
			assert_row(got, 0, 0, 0x2a98c90, 0, 0x15cf4);
		assert_sound(got);
	}
	for (size_t len = whole - 1; len <= whole; len++) {
		struct got *got = read_bytes(hex_text, len, 16);

		assert_int_equal(got->rc, 0);
		assert_string_equal(got->warnings, "");
	}
}

TEST(file_that_ends_inside_row_is_cut)
{
	static const struct {
		const char *text;
		size_t rows;
	} texts[] = {
		/* If its second line is missing, the number of OLD's blocks is unknown. */
		{GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3\n", 1},
		{GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3", 1},
		{GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3\n"
		      "+ 1 ( 1 - 0)\tBackTrace3\tallocations",
			1},
		{GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3\n"
		      "+ 1 ( 1 - 0)\tBackTrace3\tallocations\n",
			2},
		{GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3\n"
		      "+ 1 ( 1 - 0)\tBackTrace3\tallocations\n\n\n",
			2},
		/* The total might be 8 or 80. */
		{GOOD "//     al", 1},
		{GOOD "Total increase == 8", 1},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct got *got = read_in(texts[i].text, 0);

		assert_int_equal(got->rc, -ERR_CUT);
		assert_string_equal(got->err.place, "old.txt");
		assert_int_equal(got->comparison.row_count, texts[i].rows);
		assert_row(got, 0, 1, 9, 1, 1);
		assert_sound(got);
	}
}

TEST(stack_that_is_cut_is_equal_to_no_other)
{
	struct got *got = read_in(GOOD "+ 1 ( 1 - 0) 1 allocs\tBackTrace3\n"
				       "+ 1 ( 1 - 0)\tBackTrace3\tallocations\n\n"
				       "\ta!b+1\n\ta!main+",
		0);

	assert_int_equal(got->rc, -ERR_CUT);
	assert_int_equal(got->comparison.row_count, 2);
	assert_row(got, 1, 0, 1, 0, 1);
	assert_sound(got);
}

/* hdiff's own form; the sum has the largest possible value. */
static const char own_text[] =
	"// hdiff 1: heap growth by stack\n"
	"// BLOCKS are those in NEW. Numbers are decimal\n"
	"+ 9223372036854775800 ( 9223372036854775801 - 1) 1 allocs\tBackTrace1\n"
	"+ 0 ( 1 - 1)\tBackTrace1\tallocations\n\n\ta!b+1\n\ta!c+1\n\n"
	"Total increase == 9223372036854775805 requested + -9223372036854775804 overhead = 1\n";

TEST(no_damage_breaks_what_always_holds)
{
	static const char bytes[] = "+-( )0129af\t\n\r/ !:T\0\xff";
	char text[sizeof(hex_text) + sizeof(own_text)];
	uint64_t seed = 3;

	for (unsigned i = 0; i < 8000; i++) {
		const char *whole = i % 2 ? hex_text : own_text;
		size_t len = strlen(whole);
		struct got *got;

		memcpy(text, whole, len + 1);
		for (unsigned k = 0; k < i % 13; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[(seed >> 40) % len] = bytes[(seed >> 33) % (sizeof(bytes) - 1)];
		}
		got = read_bytes(text, len, i % 3 == 0 ? 0 : i % 3 == 1 ? 10 : 16);
		assert_sound(got);
		gots_free();
	}
}
