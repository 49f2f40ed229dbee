#include "tests/unit/t.h"

#include "diff/match/locations.h"
#include "tests/unit/test_match.h"

static const struct match_request by_symbol = {.mode = MATCH_SYMBOL};
static const struct match_request by_function = {.mode = MATCH_FUNCTION};
static const struct match_request automatic = {.mode = MATCH_AUTO};

/* Place in app.exe that allocated a block, and the place's name. */
struct place {
	uint64_t offset;
	const char *function; /* NULL: the dump has no name */
	const char *file;
	unsigned line;
	unsigned behind; /* bytes after the function's start; 0: the dump has no offset */
	unsigned bytes;
};

#define PLACE(at, name, path, number)                                                              \
	((struct place){.offset = (at), .function = (name), .file = (path), .line = (number)})

static void write_place(struct maker *maker, struct place place, unsigned bytes, const char *id)
{
	if (place.function)
		write_name_at(maker, APP_BASE, place.offset, place.function, place.behind,
			place.file, place.line);
	write_entry(maker, bytes, 8, id);
	write_frame(maker, APP_BASE, place.offset);
	write_frame(maker, LIB_BASE, 0x77);
}

/* Compares one block in each dump; returns the number of rows. Between the dumps app.exe was
 * rebuilt and all modules moved. */
static size_t rows_of(struct place old, struct place now)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7,
		.slide = is_new ? 0x330000 : 0)
		write_place(&maker, is_new ? now : old, is_new ? 300 : 100, "A");
	return compare(automatic);
}

TEST(rebuilt_module_matches_by_function_and_line)
{
	assert_int_equal(
		rows_of(PLACE(0x1010, "leak", "a.c", 10), PLACE(0x2350, "leak", "a.c", 10)), 1);
	assert_int_equal(row_growth(0), 200);
	assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes, 100);
	assert_non_null(strstr(report_of(true), "\tapp!leak (a.c, 10)\n\tlib+77 : 7FF812670077\n"));
	/* The folder in which the program was built is ignored. */
	assert_int_equal(rows_of(PLACE(0x1010, "leak", "C:\\\\build\\\\1\\\\a.c", 10),
				 PLACE(0x2010, "leak", "D:/build/2/a.c", 10)),
		1);
}

TEST(function_alone_will_do_where_no_lines_are_known)
{
	const struct place old = {0x1010, "leak", NULL, 0, 0, 0};

	assert_int_equal(rows_of(old, PLACE(0x2350, "leak", NULL, 0)), 1);
	assert_int_equal(rows_of(old, PLACE(0x2350, "leek", NULL, 0)), 2);
}

TEST(what_moved_to_another_line_or_file_is_same_function)
{
	const struct place old = {0x1010, "leak", "a.c", 10, 0, 0};
	const struct place news[] = {{0x1010, "leak", "a.c", 11, 0, 0},
		{0x1010, "leak", "b.c", 10, 0, 0}, {0x1010, "leak", NULL, 0, 0, 0},
		{0x1010, "other", "a.c", 10, 0, 0}};

	for (size_t i = 0; i < 4; i++) {
		bool is_other = i == 3;

		assert_int_equal(rows_of(old, news[i]), is_other ? 2 : 1);
		assert_int_equal(compare(by_symbol), 2);
		assert_int_equal(compare(by_function), is_other ? 2 : 1);
	}
}

/* Compares blocks from app.exe in two builds. A block of 0 bytes ends each list. */
static size_t compare_builds(
	const struct place *old, const struct place *now, struct match_request request)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
		for (const struct place *at = is_new ? now : old; at->bytes; at++)
			write_place(&maker, *at, at->bytes, at->line % 2 ? "A" : "B");
	}
	return compare(request);
}

TEST(code_that_stayed_matches_however_its_lines_moved)
{
	const struct place old[] = {
		{0x1010, "f", "a.c", 10, 0x10, 100}, {0x1020, "f", "a.c", 11, 0x20, 200}, {0}};
	const struct place now[] = {
		{0x2010, "f", "a.c", 11, 0x10, 100}, {0x2020, "f", "a.c", 12, 0x20, 200}, {0}};

	assert_int_equal(compare_builds(old, now, automatic), 0);
	assert_int_equal(compare_builds(old, now, by_symbol), 3); /* lines 10, 11 and 12 */
}

TEST(in_code_that_changed_lines_match_that_are_still_there)
{
	const struct place old[] = {
		{0x1010, "f", "a.c", 10, 0x10, 100}, {0x1020, "f", "a.c", 11, 0x20, 200}, {0}};
	const struct place now[] = {{0x2018, "f", "a.c", 10, 0x18, 100},
		{0x202c, "f", "a.c", 11, 0x2c, 200}, {0x2040, "f", "a.c", 15, 0x40, 50}, {0}};

	for (int is_back = 0; is_back < 2; is_back++) {
		assert_int_equal(
			compare_builds(is_back ? now : old, is_back ? old : now, automatic), 1);
		assert_int_equal(row_growth(0), is_back ? -50 : 50);
		assert_int_equal(
			stack_frame(compared.comparison.rows[0].stack, 0), APP_BASE + 0x2040);
	}
}

TEST(code_whose_lines_moved_too_is_one_with_rest_of_its_function)
{
	const struct place old[] = {{0x1010, "f", "a.c", 10, 0x10, 100},
		{0x1020, "f", "a.c", 11, 0x20, 200}, {0x1030, "g", "a.c", 31, 0x4, 7}, {0}};
	const struct place now[] = {{0x2018, "f", "a.c", 11, 0x18, 100},
		{0x202c, "f", "a.c", 12, 0x2c, 260}, {0x2040, "g", "a.c", 32, 0x4, 7}, {0}};

	assert_int_equal(compare_builds(old, now, automatic), 1);
	assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes, 300);
	assert_int_equal(row_growth(0), 60);
}

/* An allocating function was called in main, `behind` bytes after main's start. */
struct call {
	const char *function;
	unsigned behind, bytes;
};

static void write_calls(struct maker *maker, const struct call *calls, uint64_t moved)
{
	for (unsigned i = 0; calls[i].bytes; i++) {
		uint64_t callee = 0x1000 + moved + 0x100u * (unsigned char)*calls[i].function;
		uint64_t caller = 0x800 + 3 * moved + calls[i].behind;
		char id[20];

		snprintf(id, sizeof(id), "%X", calls[i].behind);
		if (!i || strcmp(calls[i].function, calls[i - 1].function) != 0)
			write_name_at(maker, APP_BASE, callee, calls[i].function, 4, "m.c", 3);
		write_name_at(maker, APP_BASE, caller, "main", calls[i].behind, "m.c", 10 + i);
		write_entry(maker, calls[i].bytes, 8, id);
		write_frame(maker, APP_BASE, callee);
		write_frame(maker, APP_BASE, caller);
	}
}

static size_t compare_calls(const struct call *old, const struct call *now)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7)
		write_calls(&maker, is_new ? now : old, is_new ? 0x20 : 0);
	return compare(automatic);
}

/* Each call after the inserted call is now where another call was before. The last call is at a new
 * place. */
TEST(old_leaks_behind_inserted_call_are_not_new)
{
	const struct call old[] = {
		{"a", 9, 100}, {"b", 14, 200}, {"c", 19, 300}, {"d", 24, 400}, {0}};
	const struct call now[] = {
		{"a", 9, 100}, {"x", 14, 50}, {"b", 19, 200}, {"c", 24, 300}, {"d", 29, 400}, {0}};

	assert_int_equal(compare_calls(old, now), 1);
	assert_int_equal(row_growth(0), 50);
	assert_non_null(strstr(report_of(true), "\tapp!x"));
	assert_int_equal(compare_calls(now, old), 1);
	assert_int_equal(row_growth(0), -50);
}

TEST(calls_of_one_function_behind_inserted_call_are_not_new)
{
	const struct call old[] = {{"b", 14, 200}, {"b", 19, 300}, {0}};
	const struct call near[] = {{"x", 14, 50}, {"b", 19, 200}, {"b", 24, 300}, {0}};
	assert_int_equal(compare_calls(old, near), 1);
	assert_int_equal(row_growth(0), 50);
}

TEST(calls_of_one_function_are_distinguished_by_their_order)
{
	const struct call old[] = {
		{"b", 14, 200}, {"b", 19, 300}, {"c", 24, 400}, {"d", 29, 500}, {0}};
	const struct call now[] = {{"x", 14, 50}, {"y", 19, 60}, {"b", 24, 200}, {"b", 29, 330},
		{"c", 34, 400}, {"d", 39, 500}, {0}};

	assert_int_equal(compare_calls(old, now), 3);
	assert_int_equal(row_growth(2), 30);
	assert_int_equal(compared.comparison.rows[2].totals[0].requested_bytes, 300);
}

TEST(new_call_of_function_is_new_where_others_stayed)
{
	const struct call old[] = {{"b", 14, 200}, {0}};
	const struct call now[] = {{"b", 14, 200}, {"b", 19, 300}, {0}};

	assert_int_equal(compare_calls(old, now), 1);
	assert_int_equal(row_growth(0), 300);
	assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes, 0);
}

TEST(asked_by_function_lines_do_not_matter_in_any_module)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		write_place(&maker, PLACE(0x1010, "f", "a.c", 10), is_new ? 40 : 50, "A");
		write_place(&maker, PLACE(0x1030, "f", "a.c", 11), is_new ? 90 : 50, "B");
		write_place(&maker, (struct place){.offset = 0x5000}, is_new ? 9 : 3, "C");
		write_place(&maker, (struct place){.offset = 0x6000}, is_new ? 1 : 3, "D");
	}
	assert_int_equal(compare(automatic), 4);
	assert_int_equal(compare(by_function), 3);
	assert_int_equal(row_growth(0), 130 - 100);
}

/* Each dump has one block from an unnamed frame of app.exe, and one from main. */
TEST(frame_without_name_goes_by_its_place_among_named_ones)
{
	/* Names exist in both builds, then only in the old build. */
	for (int has_names = 1; has_names >= 0; has_names--) {
		EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
			if (!is_new || has_names)
				write_name_at(&maker, APP_BASE, 0x1010, "main", 0x10, "a.c", 5);
			write_entry(&maker, is_new ? 300 : 100, 8, "A");
			write_frame(&maker, APP_BASE, is_new ? 0x600 : 0x500);
			write_frame(&maker, APP_BASE, 0x1010);
		}
		assert_int_equal(compare(automatic), has_names ? 1 : 2);
		assert_int_equal(compare(by_function), has_names ? 1 : 2);
		assert_int_equal(compare(by_symbol), 2);
	}
}

TEST(without_names_in_both_builds_rebuilt_module_stays_apart)
{
	const struct place named = {0x1010, "leak", "a.c", 10, 0, 0}, bare = {.offset = 0x1010};

	assert_int_equal(rows_of(bare, bare), 2);
	assert_int_equal(rows_of(named, bare), 2);
	assert_int_equal(rows_of(bare, named), 2);
	assert_int_equal(rows_of(named, named), 1);
	assert_int_equal(compare((struct match_request){.no_symbols = true}), 2);
	assert_int_equal(compare((struct match_request){.mode = MATCH_MODULE}), 2);
	assert_int_equal(compare(by_symbol), 1);
	assert_int_equal(
		compare((struct match_request){.mode = MATCH_SYMBOL, .no_symbols = true}), 2);
}

static void write_twice(struct maker *maker, bool is_new, unsigned offset)
{
	for (unsigned i = 0; i < 2; i++)
		write_place(maker, PLACE(offset + 0x20 * i, "leak", "a.c", 10),
			is_new ? 50 : 20 + i, i ? "A" : "B");
}

TEST(one_function_twice_on_line_is_one_stack_where_names_are_compared)
{
	for (unsigned rebuilt = 0; rebuilt < 2; rebuilt++) {
		EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 7 + rebuilt : 7)
			write_twice(&maker, is_new, is_new && rebuilt ? 0x1110 : 0x1010);
		assert_int_equal(compare(by_symbol), 1);
		/* If the program was not rebuilt, offsets are more precise. */
		assert_int_equal(compare(automatic), rebuilt ? 1 : 2);
	}
	assert_int_equal(row_growth(0), 100 - 41);
	assert_int_equal(compared.comparison.rows[0].id_count, 2);
	/* The row has the stack of the smaller id in the newest dump. */
	assert_int_equal(stack_frame(compared.comparison.rows[0].stack, 0), APP_BASE + 0x1130);
}

TEST(build_that_all_dumps_have_goes_by_offset_whatever_else_there_is)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		if (is_new)
			put_lines(&maker,
				"// Loaded modules: \n//    90000 1000 C:\\other\\app.exe\n"
				"// Process modules enumerated.\n"
				"// hsnap: module base=90000 timestamp=8 checksum=1\n");
		write_twice(&maker, is_new, 0x1010);
	}
	assert_int_equal(compare(automatic), 2);
	assert_int_equal(compare(by_symbol), 1);
}

TEST(inlined_functions_are_compared_as_whole)
{
	static const struct {
		const char *names[2];
		size_t rows;
	} news[] = {
		{{"inner", "outer"}, 1}, {{"outer"}, 2}, {{"inner"}, 2}, {{"middle", "outer"}, 2}};
	static const char *const old[] = {"inner", "outer"};

	for (size_t i = 0; i < sizeof(news) / sizeof(*news); i++) {
		EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
			const char *const *names = is_new ? news[i].names : old;

			for (size_t k = 0; k < 2 && names[k]; k++)
				write_name_of(&maker, APP_BASE, 0x1010, names[k], "a.c", 3);
			write_entry(&maker, is_new ? 50 : 20, 8, "1");
			write_frame(&maker, APP_BASE, 0x1010);
		}
		assert_int_equal(compare(automatic), news[i].rows);
	}
}

TEST(function_of_another_module_is_another_one)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		uint64_t base = is_new ? LIB_BASE : APP_BASE;

		write_name_of(&maker, base, 0x100, "leak", "a.c", 5);
		write_entry(&maker, is_new ? 50 : 20, 8, "1");
		write_frame(&maker, base, 0x100);
	}
	assert_int_equal(compare(by_symbol), 2);
}

TEST(builds_are_distinguished_by_pdb_and_matched_by_name)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		put(&maker,
			"// hsnap: module base=%" PRIX64 " timestamp=7 checksum=1 pdb=a.pdb "
			"guid=00112233445566778899AABBCCDDEEF%u age=1",
			APP_BASE, is_new);
		write_place(&maker, PLACE(is_new ? 0x1400 : 0x1010, "leak", "a.c", 10),
			is_new ? 90 : 20, "1");
	}
	assert_int_equal(compare(automatic), 1);
	assert_int_equal(compare((struct match_request){.no_symbols = true}), 2);
}

TEST(only_what_was_rebuilt_goes_by_name)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
		unsigned lib = is_new ? 0x100 : 0x200;

		write_name_of(&maker, LIB_BASE, lib, "leak", "a.c", 5);
		write_name_of(&maker, APP_BASE, 0x1010, "main", "m.c", 5);
		write_entry(&maker, is_new ? 50 : 20, 8, "1");
		write_frame(&maker, LIB_BASE, lib);
		write_frame(&maker, APP_BASE, 0x1010);
	}
	assert_int_equal(compare(automatic), 2);
	assert_int_equal(compare(by_symbol), 1);
}

TEST(name_that_one_dump_carries_is_for_same_build_in_all)
{
	for (int names_in_new = 0; names_in_new < 2; names_in_new++) {
		EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7,
			.slide = is_new ? 0x40000 : 0)
			write_place(&maker,
				PLACE(0x1010, is_new == names_in_new ? "leak" : NULL, "a.c", 10),
				is_new ? 90 : 20, "1");
		assert_int_equal(compare(by_symbol), 1);
	}
}

/* ---------------------------------------------------------------- names for reports */

TEST(what_matching_looked_for_is_not_looked_for_again)
{
	struct naming naming;
	struct frames frames;

	rows_of(PLACE(0x1010, "leak", "a.c", 10), PLACE(0x2350, "leak", "a.c", 10));
	frames_init(&frames);
	assert_int_equal(compared.comparison.names->count, 2); /* one place in each build */
	naming_make(&naming, &compared.comparison, true);
	naming_frames(&naming, 0, &frames);
	assert_int_equal(frames.count, 2);
	assert_null(frames.items[0].function); /* not resolved yet */
	for (int again = 0; again < 2; again++) {
		naming_find(&naming, &(uint32_t){0}, 1);
		assert_int_equal(compared.comparison.names->count, 3); /* the third is in lib.dll */
	}
	naming_frames(&naming, 0, &frames);
	assert_string_equal(frames.items[0].function, "leak");
	assert_int_equal(frames.items[0].addr, APP_BASE + 0x330000 + 0x2350);
	assert_string_equal(frames.items[1].module, "lib");
	assert_int_equal(frames.items[1].offset_bytes, 0x77);
	frames_release(&frames);
	naming_release(&naming);
}

TEST(each_place_is_kept_once_however_many_rows_have_it)
{
	uint32_t rows[50];
	struct naming naming;
	struct buf words;

	EACH_DUMP (maker, is_new, 0) {
		for (unsigned i = 0; is_new && i < 50; i++)
			put_block(&maker, 10 + i, 8, "1", i);
	}
	assert_int_equal(compare(automatic), 50);
	naming_make(&naming, &compared.comparison, true);
	for (uint32_t i = 0; i < 50; i++)
		rows[i] = i;
	naming_find(&naming, rows, 10);
	assert_int_equal(compared.comparison.names->count, 2 * 10 + 1);
	naming_find(&naming, rows, 50);
	assert_int_equal(compared.comparison.names->count, 2 * 50 + 1);
	buf_init(&words);
	naming_missing(&naming, false, &words);
	assert_string_equal(words.data, "150 of 150 frames have no name: 100 in app, 50 in lib; "
					"hsym --explain new.txt shows why");
	buf_clear(&words);
	naming_missing(&naming, true, &words);
	assert_string_equal(words.data, "stopped looking for names; frames without a name: 150");
	buf_release(&words);
	naming_release(&naming);
}

TEST(newest_dump_that_has_name_gives_it)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .slide = is_new ? 0x50000 : 0) {
		write_name_of(&maker, APP_BASE, 0x1010, is_new ? "newer" : "older", NULL, 0);
		if (!is_new) {
			write_name_of(&maker, APP_BASE, 0x800, "only_old", NULL, 0);
			put_block(&maker, 100, 8, "1", 1);
		}
	}
	compare(automatic);
	assert_non_null(strstr(report_of(true), "\tapp!newer+1\n"));
	assert_non_null(strstr(report_of(true), "\tapp!only_old+1\n"));
}

TEST(file_that_is_loaded_twice_has_names_of_either_place)
{
	static const char head[] = "// hsnap: dump format=1 tool=test\n"
				   "// Loaded modules: \n"
				   "//    10000 1000 C:\\a.dll\n"
				   "//    20000 1000 C:\\a.dll\n"
				   "// Process modules enumerated.\n"
				   "// hsnap: name addr=20123 function=leak offset=1\n"
				   "*- - Heap 0 Hogs - -\n";
	static const char *const entries[] = {"10 bytes + 8 at 100 by BackTrace1\n\t10123\n\n",
		"10 bytes + 8 at 200 by BackTrace1\n\t20123\n\n"};
	static const char end[] = "// hsnap: end blocks=2 requested=32 overhead=16\n";

	for (unsigned i = 0; i < 2; i++) {
		char text[1000];

		snprintf(text, sizeof(text), "%s%s%s%s", head, entries[i], entries[!i], end);
		write_bytes("new.txt", text, strlen(text));
		snprintf(text, sizeof(text), "%s// hsnap: end blocks=0 requested=0 overhead=0\n",
			head);
		write_bytes("old.txt", text, strlen(text));
		assert_int_equal(compare(by_symbol), 1);
		assert_non_null(strstr(report_of(true), "\n\ta!leak+1\n"));
	}
}

TEST(comparison_that_was_read_has_its_own_frames)
{
	struct frame items[] = {{.module = "m", .function = "f", .line = 3, .file = "a.c"},
		{.function = "g"}, {.has_addr = true, .addr = 77}};
	size_t part_at[] = {2, 3};
	struct frames given = {.items = items, .count = 3, .part_at = part_at, .part_count = 2};
	struct row row = {.frames = &given};
	struct comparison comparison = {.dump_count = 2, .rows = &row, .row_count = 1};
	struct frames frames;
	struct naming naming;
	struct buf words;

	frames_init(&frames);
	buf_init(&words);
	naming_make(&naming, &comparison, true);
	naming_find(&naming, &(uint32_t){0}, 1);
	naming_frames(&naming, 0, &frames);
	assert_int_equal(frames.count, 3);
	assert_memory_equal(frames.items, items, sizeof(items));
	assert_int_equal(frames.part_count, 2);
	assert_memory_equal(frames.part_at, part_at, sizeof(part_at));
	naming_missing(&naming, false, &words);
	assert_int_equal(words.len, 0);
	naming_release(&naming);
	frames_release(&frames);
	buf_release(&words);
}
