/* hdiff: stacks through modules that were rebuilt, compared by the names that the dumps carry. */
#include "tests/unit/t.h"

#include "diff/match/locations.h"
#include "tests/unit/test_match.h"

static const struct match_request by_symbol = {.mode = MATCH_SYMBOL};
static const struct match_request by_function = {.mode = MATCH_FUNCTION};
static const struct match_request automatic = {.mode = MATCH_AUTO};

/* One block through app.exe in each dump: where, and what that is called. */
struct side {
	uint64_t offset;
	const char *function; /* NULL: the dump does not say */
	const char *file;
	unsigned line;
};

struct placed {
	struct side side;
	unsigned behind; /* the start of the function; 0: the dump does not say */
	unsigned bytes;
};

static void put_placed(struct maker *maker, const struct placed *placed, const char *id)
{
	const struct side *side = &placed->side;

	if (side->function)
		put_name_at(maker, APP_BASE, side->offset, side->function, placed->behind,
			side->file, side->line);
	put_entry(maker, placed->bytes, 8, id);
	put_frame(maker, APP_BASE, side->offset);
	put_frame(maker, LIB_BASE, 0x77);
}

static void put_side(struct maker *maker, const struct side *side, unsigned bytes, const char *id)
{
	put_placed(maker, &(struct placed){*side, 0, bytes}, id);
}

/* app.exe is another build in each dump, and all modules have moved. */
static void put_rebuilt(const struct side *old, const struct side *new)
{
	struct maker maker;

	dump_begin(&maker, (struct maker){.is_ours = true, .timestamp = 7});
	put_side(&maker, old, 100, "A");
	dump_end(&maker, "old.txt");
	dump_begin(&maker, (struct maker){.is_ours = true, .timestamp = 8, .slide = 0x330000});
	put_side(&maker, new, 300, "A");
	dump_end(&maker, "new.txt");
}

static size_t rows_of(struct side old, struct side new)
{
	put_rebuilt(&old, &new);
	return count_rows(automatic);
}

#undef TEST_AROUND
#define TEST_AROUND enter_folder, leave_folder

TEST(a_rebuilt_module_matches_by_function_and_line)
{
	struct compared compared;
	char *text;

	assert_int_equal(rows_of((struct side){0x1010, "leak", "a.c", 10},
				 (struct side){0x2350, "leak", "a.c", 10}),
		1);
	compare(&compared, automatic);
	assert_int_equal(row_growth(&compared, 0), 200);
	assert_int_equal(compared.comparison.rows[0].of[0].requested_bytes, 100);
	text = report_of(&compared.comparison, true);
	assert_non_null(strstr(text, "\tapp!leak (a.c, 10)\n\tlib+77 : 7FF812670077\n"));
	free(text);
	compared_release(&compared);
}

TEST(a_function_alone_will_do_where_no_lines_are_known)
{
	assert_int_equal(rows_of((struct side){0x1010, "leak", NULL, 0},
				 (struct side){0x2350, "leak", NULL, 0}),
		1);
	assert_int_equal(rows_of((struct side){0x1010, "leak", NULL, 0},
				 (struct side){0x2350, "leek", NULL, 0}),
		2);
}

TEST(what_moved_to_another_line_or_file_is_the_same_function)
{
	const struct side old = {0x1010, "leak", "a.c", 10};
	const struct side news[] = {{0x1010, "leak", "a.c", 11}, {0x1010, "leak", "b.c", 10},
		{0x1010, "leak", NULL, 0}, {0x1010, "other", "a.c", 10}};

	for (size_t i = 0; i < 4; i++) {
		bool is_other = i == 3;

		assert_int_equal(rows_of(old, news[i]), is_other ? 2 : 1);
		assert_int_equal(count_rows(by_symbol), 2);
		assert_int_equal(count_rows(by_function), is_other ? 2 : 1);
	}
}

/* Puts the places of app.exe in two builds, up to one that has no bytes, and compares. */
static void compare_builds(struct compared *compared, const struct placed *old,
	const struct placed *new, struct match_request request)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
		for (const struct placed *at = is_new ? new : old; at->bytes; at++)
			put_placed(&maker, at, at->side.line % 2 ? "A" : "B");
	}
	compare(compared, request);
}

TEST(code_that_stayed_matches_however_its_lines_moved)
{
	const struct placed old[] = {{{0x1010, "f", "a.c", 10}, 0x10, 100},
		{{0x1020, "f", "a.c", 11}, 0x20, 200}, {{0}, 0, 0}};
	const struct placed new[] = {{{0x2010, "f", "a.c", 11}, 0x10, 100},
		{{0x2020, "f", "a.c", 12}, 0x20, 200}, {{0}, 0, 0}};
	struct compared compared;

	compare_builds(&compared, old, new, automatic);
	assert_int_equal(compared.comparison.row_count, 0);
	compared_release(&compared);
	compare_builds(&compared, old, new, by_symbol);
	assert_int_equal(compared.comparison.row_count, 3); /* lines 10, 11 and 12 */
	compared_release(&compared);
}

TEST(in_code_that_changed_lines_match_that_are_still_there)
{
	const struct placed old[] = {{{0x1010, "f", "a.c", 10}, 0x10, 100},
		{{0x1020, "f", "a.c", 11}, 0x20, 200}, {{0}, 0, 0}};
	const struct placed new[] = {{{0x2018, "f", "a.c", 10}, 0x18, 100},
		{{0x202c, "f", "a.c", 11}, 0x2c, 200}, {{0x2040, "f", "a.c", 15}, 0x40, 50},
		{{0}, 0, 0}};
	struct compared compared;

	for (int is_back = 0; is_back < 2; is_back++) {
		compare_builds(&compared, is_back ? new : old, is_back ? old : new, automatic);
		assert_int_equal(compared.comparison.row_count, 1);
		assert_int_equal(row_growth(&compared, 0), is_back ? -50 : 50);
		assert_int_equal(compared.comparison.rows[0].stack->frames[0], APP_BASE + 0x2040);
		compared_release(&compared);
	}
}

TEST(code_whose_lines_moved_too_is_one_with_the_rest_of_its_function)
{
	const struct placed old[] = {{{0x1010, "f", "a.c", 10}, 0x10, 100},
		{{0x1020, "f", "a.c", 11}, 0x20, 200}, {{0x1030, "g", "a.c", 31}, 0x4, 7},
		{{0}, 0, 0}};
	const struct placed new[] = {{{0x2018, "f", "a.c", 11}, 0x18, 100},
		{{0x202c, "f", "a.c", 12}, 0x2c, 260}, {{0x2040, "g", "a.c", 32}, 0x4, 7},
		{{0}, 0, 0}};
	struct compared compared;

	compare_builds(&compared, old, new, automatic);
	assert_int_equal(compared.comparison.row_count, 1);
	assert_int_equal(
		row_old(&compared.comparison, compared.comparison.rows).requested_bytes, 300);
	assert_int_equal(row_growth(&compared, 0), 60);
	compared_release(&compared);
}

TEST(asked_by_function_lines_do_not_matter_in_any_module)
{
	struct compared compared;

	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		struct side first = {0x1010, "f", "a.c", 10}, second = {0x1030, "f", "a.c", 11};

		put_side(&maker, &first, is_new ? 40 : 50, "A");
		put_side(&maker, &second, is_new ? 90 : 50, "B");
		/* What has no name goes by its offset. */
		put_side(&maker, &(struct side){.offset = 0x5000}, is_new ? 9 : 3, "C");
		put_side(&maker, &(struct side){.offset = 0x6000}, is_new ? 1 : 3, "D");
	}
	assert_int_equal(count_rows(automatic), 4);
	compare(&compared, by_function);
	assert_int_equal(compared.comparison.row_count, 3);
	assert_int_equal(row_growth(&compared, 0), 130 - 100);
	compared_release(&compared);
}

/* A block through a frame of app.exe that has no name, and main's. */
static void put_nameless(unsigned timestamp, unsigned offset, unsigned bytes, bool is_named)
{
	struct maker maker;

	dump_begin(&maker, (struct maker){.is_ours = true, .timestamp = timestamp});
	if (is_named)
		put_name_at(&maker, APP_BASE, 0x1010, "main", 0x10, "a.c", 5);
	put_entry(&maker, bytes, 8, "A");
	put_frame(&maker, APP_BASE, offset);
	put_frame(&maker, APP_BASE, 0x1010);
	dump_end(&maker, timestamp == 8 ? "new.txt" : "old.txt");
}

TEST(a_frame_without_a_name_goes_by_its_place_among_named_ones)
{
	put_nameless(7, 0x500, 100, true);
	put_nameless(8, 0x600, 300, true);
	assert_int_equal(count_rows(automatic), 1);
	assert_int_equal(count_rows(by_function), 1);
	assert_int_equal(count_rows(by_symbol), 2);
	put_nameless(8, 0x600, 300, false); /* this build has no names at all */
	assert_int_equal(count_rows(automatic), 2);
}

TEST(the_folder_that_a_build_was_made_in_does_not_matter)
{
	assert_int_equal(rows_of((struct side){0x1010, "leak", "C:\\\\build\\\\1\\\\a.c", 10},
				 (struct side){0x2010, "leak", "D:/build/2/a.c", 10}),
		1);
}

TEST(without_names_in_both_builds_a_rebuilt_module_stays_apart)
{
	const struct side named = {0x1010, "leak", "a.c", 10}, bare = {.offset = 0x1010};

	assert_int_equal(rows_of(bare, bare), 2);
	assert_int_equal(rows_of(named, bare), 2);
	assert_int_equal(rows_of(bare, named), 2);
	assert_int_equal(rows_of(named, named), 1);
	assert_int_equal(count_rows((struct match_request){.no_symbols = true}), 2);
	assert_int_equal(count_rows((struct match_request){.mode = MATCH_MODULE}), 2);
	assert_int_equal(count_rows(by_symbol), 1);
	assert_int_equal(
		count_rows((struct match_request){.mode = MATCH_SYMBOL, .no_symbols = true}), 2);
}

/* Two places in app.exe with one name, in dumps of the given builds: how many rows. */
static size_t rows_of_twice(uint32_t old, uint32_t new, struct match_request request)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? new : old) {
		for (unsigned i = 0; i < 2; i++) {
			struct side side = {0x1010 + 0x20 * i + 0x100 * (is_new && new != old),
				"leak", "a.c", 10};

			put_side(&maker, &side, is_new ? 50 : 20 + i, i ? "A" : "B");
		}
	}
	return count_rows(request);
}

TEST(one_function_twice_on_a_line_is_one_stack_where_names_are_compared)
{
	struct compared compared;

	assert_int_equal(rows_of_twice(7, 7, automatic), 2); /* the same build: offsets tell more */
	assert_int_equal(rows_of_twice(7, 7, by_symbol), 1);
	assert_int_equal(rows_of_twice(7, 8, automatic), 1);
	compare(&compared, automatic);
	assert_int_equal(row_growth(&compared, 0), 100 - 41);
	assert_int_equal(compared.comparison.rows[0].id_count, 2);
	/* That of the smaller id, in the newest dump. */
	assert_int_equal(compared.comparison.rows[0].stack->frames[0], APP_BASE + 0x1130);
	compared_release(&compared);
}

/* A second build of app.exe in one of the dumps makes the one that both have no less the same. */
TEST(a_build_that_all_dumps_have_goes_by_offset_whatever_else_there_is)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		if (is_new) {
			put(&maker, "// Loaded modules: ");
			put(&maker, "//    90000 1000 C:\\other\\app.exe");
			put(&maker, "// Process modules enumerated.");
			put(&maker, "// hsnap: module base=90000 timestamp=8 checksum=1");
		}
		for (unsigned i = 0; i < 2; i++) {
			struct side side = {0x1010 + 0x20 * i, "leak", "a.c", 10};

			put_side(&maker, &side, is_new ? 50 : 20 + i, i ? "A" : "B");
		}
	}
	assert_int_equal(count_rows(automatic), 2);
	assert_int_equal(count_rows(by_symbol), 1);
}

/* Names of inlined functions come first; a list of "function file line" each. */
static void put_chain(const char *const *old, const char *const *new)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
		unsigned offset = is_new ? 0x1500 : 0x1010;

		for (const char *const *at = is_new ? new : old; *at; at++)
			put_name_of(&maker, APP_BASE, offset, *at, "a.c", 3);
		put_entry(&maker, is_new ? 50 : 20, 8, "1");
		put_frame(&maker, APP_BASE, offset);
	}
}

#define CHAIN(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(inlined_functions_are_compared_as_a_whole)
{
	put_chain(CHAIN("inner", "outer"), CHAIN("inner", "outer"));
	assert_int_equal(count_rows(automatic), 1);
	put_chain(CHAIN("inner", "outer"), CHAIN("outer"));
	assert_int_equal(count_rows(automatic), 2);
	put_chain(CHAIN("inner", "outer"), CHAIN("inner"));
	assert_int_equal(count_rows(automatic), 2);
	put_chain(CHAIN("inner", "outer"), CHAIN("middle", "outer"));
	assert_int_equal(count_rows(automatic), 2);
}

TEST(a_function_of_another_module_is_another_one)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7) {
		uint64_t base = is_new ? LIB_BASE : APP_BASE;

		put_name_of(&maker, base, 0x100, "leak", "a.c", 5);
		put_entry(&maker, is_new ? 50 : 20, 8, "1");
		put_frame(&maker, base, 0x100);
	}
	assert_int_equal(count_rows(by_symbol), 2);
}

TEST(builds_are_told_by_their_pdb_and_matched_by_name)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		struct side side = {is_new ? 0x1400 : 0x1010, "leak", "a.c", 10};

		put(&maker,
			"// hsnap: module base=%" PRIX64 " timestamp=7 checksum=1 pdb=a.pdb "
			"guid=00112233445566778899AABBCCDDEEF%u age=1",
			APP_BASE, is_new);
		put_side(&maker, &side, is_new ? 90 : 20, "1");
	}
	assert_int_equal(count_rows(automatic), 1);
	assert_int_equal(count_rows((struct match_request){.no_symbols = true}), 2);
}

/* Modules that were not rebuilt go by offset, named or not. */
TEST(only_what_was_rebuilt_goes_by_name)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = is_new ? 8 : 7) {
		unsigned lib = is_new ? 0x100 : 0x200;

		put_name_of(&maker, LIB_BASE, lib, "leak", "a.c", 5);
		put_name_of(&maker, APP_BASE, 0x1010, "main", "m.c", 5);
		put_entry(&maker, is_new ? 50 : 20, 8, "1");
		put_frame(&maker, LIB_BASE, lib);
		put_frame(&maker, APP_BASE, 0x1010);
	}
	assert_int_equal(count_rows(automatic), 2);
	assert_int_equal(count_rows(by_symbol), 1);
}

TEST(a_name_that_one_dump_carries_is_for_the_same_build_in_all)
{
	for (int names_in_new = 0; names_in_new < 2; names_in_new++) {
		EACH_DUMP (maker, is_new, .is_ours = true, .timestamp = 7,
			.slide = is_new ? 0x40000 : 0) {
			struct side side = {
				0x1010, is_new == names_in_new ? "leak" : NULL, "a.c", 10};

			put_side(&maker, &side, is_new ? 90 : 20, "1");
		}
		assert_int_equal(count_rows(by_symbol), 1);
	}
}

/* ---------------------------------------------------------------- names for reports */

TEST(what_matching_looked_for_is_not_looked_for_again)
{
	const struct side old = {0x1010, "leak", "a.c", 10}, new = {0x2350, "leak", "a.c", 10};
	struct compared compared;
	struct naming naming;
	struct frames frames;

	put_rebuilt(&old, &new);
	frames_init(&frames);
	compare(&compared, automatic);
	assert_int_equal(compared.comparison.names->count, 2); /* a place in each build */
	naming_make(&naming, &compared.comparison, true);
	naming_frames(&naming, 0, &frames);
	assert_int_equal(frames.count, 2);
	assert_null(frames.items[0].function); /* not asked for yet */
	for (int again = 0; again < 2; again++) {
		naming_find(&naming, &(uint32_t){0}, 1);
		assert_int_equal(compared.comparison.names->count, 3); /* and one in lib.dll */
	}
	naming_frames(&naming, 0, &frames);
	assert_string_equal(frames.items[0].function, "leak");
	assert_int_equal(frames.items[0].addr, APP_BASE + 0x330000 + 0x2350);
	assert_string_equal(frames.items[1].module, "lib");
	assert_int_equal(frames.items[1].offset_bytes, 0x77);
	frames_release(&frames);
	naming_release(&naming);
	compared_release(&compared);
}

TEST(each_place_is_kept_once_however_many_rows_have_it)
{
	uint32_t rows[50];
	struct compared compared;
	struct naming naming;
	struct maker maker;
	struct buf words;

	dump_begin(&maker, (struct maker){0});
	dump_end(&maker, "old.txt");
	dump_begin(&maker, (struct maker){0});
	for (unsigned i = 0; i < 50; i++)
		put_block(&maker, 10 + i, 8, "1", i);
	dump_end(&maker, "new.txt");
	compare(&compared, automatic);
	assert_int_equal(compared.comparison.row_count, 50);
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
					"hsym --explain new.txt says why");
	buf_clear(&words);
	naming_missing(&naming, true, &words);
	assert_string_equal(words.data, "stopped looking for names; 150 frames have none");
	buf_release(&words);
	naming_release(&naming);
	compared_release(&compared);
}

/* Asked for from one dump or the other: what the newest one says is what is shown. */
TEST(the_newest_dump_that_has_a_name_gives_it)
{
	struct compared compared;
	char *text;

	EACH_DUMP (maker, is_new, .is_ours = true, .slide = is_new ? 0x50000 : 0) {
		put_name_of(&maker, APP_BASE, 0x1010, is_new ? "newer" : "older", NULL, 0);
		if (!is_new) {
			put_name_of(&maker, APP_BASE, 0x800, "only_old", NULL, 0);
			put_block(&maker, 100, 8, "1", 1);
		}
	}
	compare(&compared, automatic);
	text = report_of(&compared.comparison, true);
	assert_non_null(strstr(text, "\tapp!newer+1\n"));
	assert_non_null(strstr(text, "\tapp!only_old+1\n"));
	free(text);
	compared_release(&compared);
}

TEST(a_file_that_is_loaded_twice_has_the_names_of_either_place)
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
		struct compared compared;
		char text[1000], *report;

		snprintf(text, sizeof(text), "%s%s%s%s", head, entries[i], entries[!i], end);
		write_bytes("new.txt", text, strlen(text));
		snprintf(text, sizeof(text), "%s// hsnap: end blocks=0 requested=0 overhead=0\n",
			head);
		write_bytes("old.txt", text, strlen(text));
		compare(&compared, by_symbol);
		assert_int_equal(compared.comparison.row_count, 1);
		report = report_of(&compared.comparison, true);
		assert_non_null(strstr(report, "\n\ta!leak+1\n"));
		free(report);
		compared_release(&compared);
	}
}

TEST(a_comparison_that_was_read_has_its_own_frames)
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
