#include "tests/unit/data.h"
#include "tests/unit/test_printed.h"

#include "diff/printed/printed.h"

/* ---------------------------------------------------------------- UMDH's */

TEST(rows_of_umdh_are_read_in_hexadecimal)
{
	struct got *got = read_whole(hex_text, 0);
	const struct frame *frame;

	assert_int_equal(got->comparison.row_count, 2);
	assert_row(got, 0, 0, UINT64_C(0x15cf4) * 0x1f4, 0, 0x15cf4);
	assert_row(got, 1, 0x2018, 0, 1, 0);
	assert_string_equal(got->comparison.rows[0].ids[0], "74050");
	assert_int_equal(got->comparison.rows[0].frames->count, 2);
	frame = &got->comparison.rows[0].frames->items[1];
	assert_string_equal(frame->module, "CppResourceLeaks");
	assert_string_equal(frame->function, "LeakHeapMemory");
	assert_int_equal(frame->line, 228);
	assert_true(got->comparison.has_overhead);
	assert_int_equal(got->comparison.new_total.requested_bytes, 0x2a98c90);
	assert_int_equal(got->comparison.old_total.requested_bytes, 0x2018);
	assert_int_equal(got->comparison.new_total.overhead_bytes, 0x1f3b20);
	assert_int_equal(got->comparison.old_total.overhead_bytes, 0);
	assert_sound(got);
}

/* 119 blocks of 4096 bytes are 487424 bytes, and 4 of 65536 are 262144. Both are from published
 * samples. */
TEST(rows_of_umdh_are_read_in_decimal)
{
	struct got *got =
		read_whole("+  487424 ( 487424 -      0)    119 allocs\tBackTrace1A\r\n"
			   "+     119 (    119 -      0)\tBackTrace1A\tallocations\r\n"
			   "\r\n\r\n"
			   "\tntdll!RtlAllocateHeap+A64\r\n"
			   "\r\n"
			   "+   65536 ( 262144 - 196608)      4 allocs\tBackTrace2\r\n"
			   "+       1 (      4 -      3)\tBackTrace2\tallocations\r\n"
			   "\r\n"
			   "\tntdll!RtlAllocateHeap+A65\r\n"
			   "\r\n\r\n\r\n\r\n"
			   "Total increase == 552960 requested +   -960 overhead = 552000\r\n",
			0);

	assert_row(got, 0, 0, 119 * 4096, 0, 119);
	assert_row(got, 1, 3 * 65536, 4 * 65536, 3, 4);
	assert_int_equal(got->comparison.old_total.overhead_bytes, 960);
	assert_int_equal(got->comparison.new_total.overhead_bytes, 0);
	assert_sound(got);
}

/* 0xf110 - 0x9df0 = 0x5320. The file does not contain the growth of 20 blocks of 0x428 bytes. */
TEST(dhcmp_lacks_old_counts_and_none_is_invented)
{
	struct got *got = read_in("+ 5320 ( f110 - 9df0) 3a allocs BackTrace00B53 \n"
				  "ntdll!RtlDebugAllocateHeap+0x000000FD\n"
				  "MyApp!operator new+0x0000000E\n"
				  "\n"
				  "+ 10 ( 10 - 0) 2 allocs BackTrace 00B54\n"
				  "Total increase == 5330 \n",
		0);

	assert_int_equal(got->rc, 0);
	assert_row(got, 0, 0x9df0, 0xf110, 0x3a, 0x3a);
	assert_row(got, 1, 0, 0x10, 0, 2);
	assert_string_equal(got->comparison.rows[0].ids[0], "00B53");
	assert_string_equal(got->comparison.rows[1].ids[0], "00B54");
	assert_int_equal(got->comparison.rows[0].frames->count, 2);
	assert_string_equal(
		got->comparison.rows[0].frames->items[0].function, "RtlDebugAllocateHeap");
	assert_int_equal(got->comparison.rows[1].kind, ROW_UNKNOWN);
	assert_false(got->comparison.has_overhead);
	assert_int_equal(got->warning_count, 1);
	assert_non_null(strstr(got->warnings, "old number of blocks"));
	assert_sound(got);
}

/* Published samples, which are stored next to the checkout where that is permitted. Their contents
 * were counted by hand: 0x2a98c90 is 0x15cf4 * 0x1f4, and 0x5320 is 0xf110 - 0x9df0. */
TEST(samples_of_umdh_are_read)
{
	static const struct {
		const char *name;
		unsigned base;
		size_t rows, frames, skips;
		int64_t requested;
	} samples[] = {
		{"cmp_dec_win10_x64_mahdytech_fragment.txt", 0, 1, 8, 0, 154944},
		{"cmp_hex_v6_wow64_cppresourceleaks_fragment.txt", 0, 2, 8, 0, 0x2a98c90 - 0x2018},
		{"cmp_noargs_10.0.19041_stdout.txt", 0, 0, 0, 0, 0},
		{"legacy_msdocs_dhcmp_and_hogs_fragment.txt", 0, 1, 0, 2,
			0x5320}, /* one entry with its names */
	};
	char path[2000];

	for (size_t i = 0; i < COUNT(samples); i++) {
		struct got *got;
		char *text;

		snprintf(path, sizeof(path), "umdh/%s", samples[i].name);
		text = read_text(data_file(path));
		assert_int_equal(file_kind_of(text, strlen(text)), FILE_COMPARISON);
		got = read_in(text, samples[i].base);
		assert_int_equal(got->rc, 0);
		assert_int_equal(got->skip_count, samples[i].skips);
		assert_false(got->comparison.is_guess);
		assert_int_equal(got->comparison.row_count, samples[i].rows);
		if (samples[i].rows)
			assert_int_equal(got->comparison.rows[0].frames->count, samples[i].frames);
		assert_int_equal(
			comparison_delta(&got->comparison).requested_bytes, samples[i].requested);
		assert_sound(got);
		free(text);
	}
}

TEST(empty_comparison_is_no_growth)
{
	static const char header[] =
		"// Debug library initialized ...\n"
		"// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID \n"
		"\n\n\n";
	static const char total[] =
		"Total decrease ==      0 requested +      0 overhead =      0\n\n";
	char whole[1000];
	struct got *got;

	snprintf(whole, sizeof(whole), "%s%s", header, total);
	got = read_whole(whole, 0);
	assert_int_equal(got->comparison.row_count, 0);
	assert_true(got->comparison.has_overhead);
	got = read_in(header, 0); /* hdiff must not report this as "nothing grew" */
	assert_int_equal(got->rc, -ERR_CUT);
	got = read_in("", 0);
	assert_int_equal(got->rc, -ERR_EMPTY);
	got = read_in("Dear diary\n", 0);
	assert_int_equal(got->rc, -ERR_NOT_DUMP);
}

/* Published total lines have two numbers. The requested bytes come from the rows, here 0. */
TEST(overhead_counts_to_side_that_has_more)
{
	static const struct {
		const char *line;
		int64_t overhead;
		bool is_known;
	} totals[] = {
		{"Total increase ==    620 requested +  40340 overhead =  40960\n", 40340, true},
		{"Total decrease == 487210 requested +   1654 overhead = 488864\n", -1654, true},
		{"Total increase ==     -5 requested +    100 overhead =     95\n", 100, true},
		{"Total decrease ==    100 requested +    -40 overhead =     60\n", 40, true},
		{"Total decrease ==      0 requested +      0 overhead =      0\n", 0, true},
		{"Total increase == 5320 \n", 0, false},
	};

	for (size_t i = 0; i < COUNT(totals); i++) {
		struct got *got = read_in(totals[i].line, 10);

		assert_int_equal(got->rc, 0);
		assert_int_equal(got->skip_count, 0);
		assert_int_equal(got->comparison.has_overhead, totals[i].is_known);
		assert_int_equal(
			comparison_delta(&got->comparison).overhead_bytes, totals[i].overhead);
		assert_true(!got->comparison.new_total.overhead_bytes ||
			    !got->comparison.old_total.overhead_bytes);
	}
}

/* ---------------------------------------------------------------- bases */

TEST(practice_11_base_is_found_in_contents)
{
	static const struct {
		const char *text;
		uint64_t new_bytes;
		bool is_guess;
	} texts[] = {
		/* A letter shows that the numbers are hexadecimal. */
		{ONE_ROW("a", "a", "0"), 10, false},
		/* With a single letter the text could be hexadecimal, and with a single decimal row
		 * decimal. Among more decimal rows the letter is damage. */
		{ONE_ROW("a", "a", "0") ONE_ROW("3", "12", "9"), 10, false},
		{ONE_ROW("a", "a", "0") ONE_ROW("3", "12", "9") ONE_ROW("3", "22", "19"), 12 + 22,
			false},
		/* 0x10 - 8 = 8 is hexadecimal, and 12 - 9 = 3 is decimal. */
		{ONE_ROW("8", "10", "8"), 16, false},
		{ONE_ROW("3", "12", "9"), 12, false},
		/* Several rows outweigh one damaged row. */
		{ONE_ROW("3", "12", "9") ONE_ROW("3", "22", "19") ONE_ROW("8", "10", "8"), 12 + 22,
			false},
		/* 9 + 1 = 10 is decimal; 0x8 + 0x8 = 0x10 is hexadecimal. */
		{ONE_ROW("20", "20", "0") "Total increase == 9 requested + 1 overhead = 10\n", 20,
			false},
		{ONE_ROW("20", "20", "0") "Total increase == 8 requested + 8 overhead = 10\n", 32,
			false},
		/* 98 + 4 = 102 is decimal. 0x98 + 8 is 0xa0, so the hexadecimal sum must be 0x92 +
		 * 8 = 0x9a. */
		{ONE_ROW("98", "98", "0") ONE_ROW("4", "4", "0") "Total increase == 102\n", 102,
			false},
		{ONE_ROW("98", "98", "0") ONE_ROW("8", "8", "0") "Total increase == 106\n", 106,
			false},
		{ONE_ROW("98", "98", "0") ONE_ROW("68", "68", "0") "Total increase == 100\n", 0x100,
			false},
		/* Published samples have OLD in five columns after a blank, or in six columns. Rows
		 * that are valid in one base only outweigh the padding, and a wide number has no
		 * padding. */
		{ONE_ROW("100", "100", "    0"), 0x100, false},
		{ONE_ROW("100", "100", "     0"), 100, false},
		{ONE_ROW("8", "10", "     8"), 0x10, false},
		{ONE_ROW("3", "12", "    9"), 12, false},
		{ONE_ROW("1", "10001", "10000"), 0x10001, true},
		{ONE_ROW("1", "10001", " 10000"), 10001, false},
		{ONE_ROW("1", "100001", "100000"), 0x100001, true},
		/* The text shows no base. */
		{ONE_ROW("100", "100", "0"), 0x100, true},
		{ONE_ROW("100", "100", "0") "Total increase == 100\n", 0x100, true},
		/* The base does not matter. */
		{ONE_ROW("8", "9", "1") "Total increase == 8\n", 9, false},
		/* hdiff's own header states the base. */
		{"// BLOCKS are those in NEW. Numbers are decimal; offsets\n" ONE_ROW(
			 "100", "100", "0"),
			100, false},
		{"// BLOCKS are those in NEW. Numbers are hexadecimal; offsets\n" ONE_ROW(
			 "100", "100", "0"),
			0x100, false},
		{"// NEW: Numbers are decimal\n" ONE_ROW("100", "100", "0"), 0x100, true},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct got *got = read_in(texts[i].text, 0);

		assert_int_equal(got->rc, 0);
		assert_int_equal(got->comparison.new_total.requested_bytes, texts[i].new_bytes);
		assert_int_equal(strstr(got->warnings, "--input-base") != NULL, texts[i].is_guess);
		assert_sound(got);
	}
}

TEST(base_that_was_asked_for_is_taken)
{
	static const char text[] = ONE_ROW("100", "100", "0") ONE_ROW("8", "10", "8");
	struct got *got = read_in(text, 10);

	assert_int_equal(got->comparison.new_total.requested_bytes, 100);
	assert_string_equal(got->skipped, "old.txt:6\n"); /* 10 - 8 is not 8 */
	got = read_in(text, 16);
	assert_int_equal(got->comparison.new_total.requested_bytes, 0x110);
	assert_string_equal(got->skipped, "");
}

TEST(numbers_have_63_bits_and_so_have_sums)
{
	struct got *got = read_in(ONE_ROW("7fffffffffffffff", "7fffffffffffffff", "0"), 0);

	assert_int_equal(got->comparison.new_total.requested_bytes, INT64_MAX);
	got = read_in(ONE_ROW("113faf000", "113faf000", "0") /* from a real server */
		ONE_ROW("8000000000000000", "8000000000000000", "0")
			ONE_ROW("10000000000000001", "10000000000000001", "0")
				ONE_ROW("7fffffffffffffff", "7fffffffffffffff", "0"),
		16);
	assert_int_equal(got->comparison.new_total.requested_bytes, 0x113faf000);
	assert_string_equal(got->skipped, "old.txt:6\nold.txt:11\nold.txt:16\n");
	assert_sound(got);
}

/* ---------------------------------------------------------------- rows */

TEST(equal_stacks_under_several_ids_are_one_row)
{
	struct got *got = read_whole("+ 30 ( 30 - 0) 3 allocs\tBackTraceB\n"
				     "+ 3 ( 3 - 0)\tBackTraceB\tallocations\n\n\ta!b+1\n\ta!c+2\n\n"
				     "+ 15 ( 15 - 0) 2 allocs\tBackTraceA\n"
				     "+ 2 ( 2 - 0)\tBackTraceA\tallocations\n\n\ta!b+1\n\n"
				     "+ 1 ( 1 - 0) 1 allocs\tBackTraceC\n"
				     "+ 1 ( 1 - 0)\tBackTraceC\tallocations\n\n\ta!d+1\n\n"
				     "- 9 ( 0 - 9) 0 allocs\tBackTrace7\n"
				     "- 1 ( 0 - 1)\tBackTrace7\tallocations\n\n\ta!b+1\n\ta!c+2\n\n"
				     "- 1 ( 0 - 1) 0 allocs\tBackTraceB\n"
				     "- 1 ( 0 - 1)\tBackTraceB\tallocations\n\n\ta!b+1\n\ta!c+2\n\n"
				     "- 1 ( 0 - 1) 0 allocs\tBackTraceD\n"
				     "- 1 ( 0 - 1)\tBackTraceD\tallocations\n\n\ta!d+1\n\n"
				     "Total increase == 35\n",
		10);

	/* The growth of C and the growth of D cancel. */
	assert_int_equal(got->comparison.row_count, 2);
	assert_row(got, 0, 10, 30, 2, 3);
	assert_int_equal(got->comparison.rows[0].id_count, 2);
	assert_string_equal(got->comparison.rows[0].ids[0], "B");
	assert_string_equal(got->comparison.rows[0].ids[1], "7");
	assert_row(got, 1, 0, 15, 0, 2);
	assert_int_equal(got->comparison.new_total.requested_bytes, 46);
	assert_int_equal(got->comparison.old_total.requested_bytes, 11);
	assert_sound(got);
}

TEST(rows_without_stack_are_equal_by_known_facts)
{
#define BARE(id, stack)                                                                            \
	"+ 4 ( 4 - 0) 1 allocs\tBackTrace" id "\n+ 1 ( 1 - 0)\tBackTrace" id                       \
	"\tallocations\n\n" stack "\n"
	struct got *got =
		read_in(BARE("0", "") BARE("5", "") BARE("5", "\t(stack not in the dump)\n")
				BARE("6", "") BARE("00", "\t(no stack recorded)\n"),
			16);
	static const struct {
		enum row_kind kind;
		uint64_t bytes;
	} rows[] = {{ROW_STACKLESS, 8}, {ROW_UNKNOWN, 8}, {ROW_UNKNOWN, 4}};

	assert_int_equal(got->comparison.row_count, COUNT(rows));
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(got->comparison.rows[i].kind, rows[i].kind);
		assert_int_equal(got->comparison.rows[i].totals[1].requested_bytes, rows[i].bytes);
	}
	assert_sound(got);
}

/* 30000 rows of 3 frames in 100 stacks, then in 30000 stacks. */
TEST(many_rows_take_no_more_than_their_share_of_time)
{
	struct buf text;

	for (unsigned stacks = 100; stacks <= 30000; stacks += 29900) {
		struct got *got;

		buf_init(&text);
		for (unsigned i = 0; i < 30000; i++)
			buf_printf(&text,
				"+ 7 ( 7 - 0) 1 allocs\tBackTrace%X\n"
				"+ 1 ( 1 - 0)\tBackTrace%X\tallocations\n\n"
				"\ta!b+1\n\ta!c%u+2 (c.c, 9)\n\ta!main+3\n\n",
				i, i, i % stacks);
		buf_add_text(&text, "Total increase == 210000\n");
		got = read_whole(text.data, 10);
		assert_int_equal(got->comparison.row_count, stacks);
		assert_row(got, 0, 0, 7 * (30000 / stacks), 0, 30000 / stacks);
		assert_int_equal(got->comparison.rows[0].id_count, 30000 / stacks);
		assert_sound(got);
		buf_release(&text);
	}
}
