#include "tests/unit/t.h"

#include "tests/unit/test_query_view.h"

#include "core/io/out.h"

static made_stack stacks[] = {
	{NEW, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MAIN}, /* 2 */
	{HELPER, NAMELESS, NAMELESS, MAIN}, /* 4 */
	{NOWHERE, MAIN}, /* 8 */
	{LIB_NAMELESS}, /* 16 */
	{CACHE, CACHE, HELPER, CACHE}, /* 32 */
};
STACKS_IN_NEW_TXT(stacks)

/* Expected group. The number of bytes identifies its stacks. */
struct wanted {
	const char *name;
	uint64_t self, total;
};

static void check_groups(const struct asked *asked, const struct wanted *wanted, size_t count)
{
	const struct view *view = &asked->view;

	for (size_t i = 0; i < count && i < view->group_count; i++) {
		assert_string_equal(view->groups[i].name, wanted[i].name);
		assert_int_equal(view->groups[i].self.now.requested_bytes, wanted[i].self);
		assert_int_equal(view->groups[i].total.now.requested_bytes, wanted[i].total);
	}
	assert_int_equal(view->group_count, count);
	assert_int_equal(view->shown_count, count);
}

#define CHECK(asked, wanted) check_groups(asked, wanted, sizeof(wanted) / sizeof(*(wanted)))

static struct asked *begin(enum view_group group)
{
	struct asked *asked = asked_begin(false, true);

	asked->request.group = group;
	return asked;
}

TEST(functions_add_up_to_self_and_total)
{
	static const struct wanted wanted[] = {
		{"app!Cache::fill<int>", 32, 2 + 32},
		{"lib!?", 16, 16},
		{"(no module)", 8, 8},
		{"lib!helper", 4, 4 + 32},
		{"lib!malloc", 2, 2},
		{"lib!operator new(unsigned long long)", 1, 1},
		{"app!main", 0, 1 + 2 + 4 + 8},
		{"app!?", 0, 4},
		{"app!leak_here", 0, 1},
	};

	struct asked *asked = begin(GROUP_FUNCTION);
	asked_do(asked);
	CHECK(asked, wanted);
}

TEST(self_is_innermost_frame_after_stripping)
{
	static const struct wanted wanted[] = {
		{"app!Cache::fill<int>", 2 + 32, 2 + 32},
		{"lib!?", 16, 16},
		{"(no module)", 8, 8},
		{"lib!helper", 4, 4 + 32},
		{"app!leak_here", 1, 1},
		{"app!main", 0, 1 + 2 + 4 + 8},
		{"app!?", 0, 4},
	};

	struct asked *asked = begin(GROUP_FUNCTION);
	strip_add_known(&asked->strip);
	asked->request.strip = &asked->strip;
	asked_do(asked);
	CHECK(asked, wanted);
}

TEST(files_and_modules_are_groups_too)
{
	static const struct wanted files[] = {
		{"C:\\src\\cache.cpp", 32, 2 + 32},
		{"(file not known)", 1 + 2 + 8 + 16, 1 + 2 + 4 + 8 + 16},
		{"D:\\lib\\Helper.cpp", 4, 4 + 32},
		{"C:\\src\\main.c", 0, 1 + 2 + 4 + 8},
		{"C:\\src\\leak.c", 0, 1},
	};
	static const struct wanted modules[] = {
		{"app", 32, 1 + 2 + 4 + 8 + 32},
		{"lib", 1 + 2 + 4 + 16, 1 + 2 + 4 + 16 + 32},
		{"(no module)", 8, 8},
	};

	struct asked *asked = begin(GROUP_FILE);
	asked_do(asked);
	CHECK(asked, files);
	asked = begin(GROUP_MODULE);
	asked_do(asked);
	CHECK(asked, modules);
}

TEST(without_names_functions_are_those_of_their_modules)
{
	static const struct wanted wanted[] = {
		{"app!?", 32, 1 + 2 + 4 + 8 + 32},
		{"lib!?", 1 + 2 + 4 + 16, 1 + 2 + 4 + 16 + 32},
		{"(no module)", 8, 8},
	};

	struct asked *asked = asked_begin(false, false);
	asked->request.group = GROUP_FUNCTION;
	asked_do(asked);
	CHECK(asked, wanted);
}

/* 64: no stack recorded; 128: an id whose stack is missing; 256: one of two stacks under one id;
 * 512: an alias. */
TEST(rows_without_stack_of_their_own_are_groups_with_words)
{
	static const struct wanted wanted[] = {
		{"(ambiguous)", 256 + 512, 256 + 512},
		{"(stack not in the dump)", 128, 128},
		{"(no stack recorded)", 64, 64},
		{"app!main", 1 + 2, 1 + 2},
		{"app!leak_here", 0, 1},
	};

	for (int group = GROUP_FUNCTION; group <= GROUP_MODULE; group++) {
		struct maker maker = dump_new((struct maker){0});

		write_names(&maker);
		write_stackless(&maker, 1, 64, 8);
		write_entry(&maker, 128, 8, "99");
		put(&maker, "%s", "");
		write_entry(&maker, 1, 8, "A");
		write_frames(&maker, (made_stack){MAIN, LEAK});
		put(&maker, "%s", "");
		write_entry(&maker, 2, 8, "A");
		write_frames(&maker, (made_stack){MAIN});
		put(&maker, "%s", "");
		write_entry(&maker, 256, 8, "A");
		put(&maker, "%s", "");
		write_entry(&maker, 512, 8, "B");
		write_frames(&maker, (made_stack){MAIN});
		put(&maker, "\tAlias");
		write_frames(&maker, (made_stack){LEAK});
		put(&maker, "%s", "");
		dump_end(&maker, "new.txt");
		struct asked *asked = begin((enum view_group)group);
		asked_do(asked);
		if (group == GROUP_FUNCTION)
			CHECK(asked, wanted);
		else
			check_groups(asked,
				(const struct wanted[]){wanted[0], wanted[1], wanted[2],
					group == GROUP_FILE ?
						(struct wanted){"C:\\src\\main.c", 3, 3} :
						(struct wanted){"app", 3, 3},
					{"C:\\src\\leak.c", 0, 1}},
				group == GROUP_FILE ? 5 : 4);
	}
}

TEST(heap_is_group_of_all_its_rows)
{
	static const struct wanted wanted[] = {
		{"7FF0001E0000", 32 + 64, 32 + 64},
		{"(heap not known)", 16, 16},
		{"1E0000", 1 + 2 + 4 + 8, 1 + 2 + 4 + 8},
	};

	struct maker maker = dump_new((struct maker){0});
	write_stackless(&maker, 1, 64, 8);
	for (unsigned i = 0; i < 6; i++)
		put_block(&maker, UINT64_C(1) << i, 8, "A", i);
	dump_end(&maker, "new.txt");
	struct asked *asked = begin(GROUP_HEAP);
	for (size_t i = 0; i < asked->comparison.row_count; i++) {
		struct row *row = &asked->comparison.rows[i];

		if (row->totals[0].requested_bytes != 16)
			row->heap = row->totals[0].requested_bytes < 16 ? 0x1E0000 : 0x7FF0001E0000;
	}
	asked_do(asked);
	CHECK(asked, wanted);
}

TEST(growth_sorts_groups_by_self_then_total_then_name)
{
	/* self and total growth of app!leak_here (1), app!main, Cache, helper */
	static made_stack old_stacks[] = {{LEAK, MAIN}, {LEAK}, {LEAK}, {MAIN}, {HELPER}};
	static made_stack new_stacks[] = {{LEAK}, {CACHE, HELPER}, {MAIN, CACHE}, {HELPER}};
	/* 1: leak>main; 2, 4: leak; 8: main; 16: helper -> 1: leak; 2: cache>helper; 4: main>cache;
	 * 8: helper. Rows: leak>main -1, leak 1 - 6 = -5, main -8, helper 8 - 16 = -8, cache>helper
	 * +2, main>cache +4. */
	static const struct {
		const char *name;
		int64_t self, total;
	} wanted[] = {{"app!Cache::fill<int>", 2, 6}, {"app!main", 4 - 8, 4 - 8 - 1},
		{"app!leak_here", -5 - 1, -5 - 1}, {"lib!helper", -8, 2 - 8}};

	write_stacks("old.txt", old_stacks, 5);
	write_stacks("new.txt", new_stacks, 4);
	struct asked *asked = asked_begin(true, true);
	asked->request.group = GROUP_FUNCTION;
	asked->request.shown_max = 3;
	asked_do(asked);
	assert_int_equal(asked->view.group_count, 4);
	assert_int_equal(asked->view.shown_count, 3);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(asked->view.groups[i].name, wanted[i].name);
		assert_int_equal(
			change_delta(&asked->view.groups[i].self).requested_bytes, wanted[i].self);
		assert_int_equal(change_delta(&asked->view.groups[i].total).requested_bytes,
			wanted[i].total);
	}
}

TEST(groups_alike_are_sorted_by_total_and_name)
{
	/* Only helper has self bytes. Totals: main 3, cache 2, leak 1, nameless 1. */
	static made_stack of[] = {{HELPER, MAIN, LEAK, NAMELESS}, {HELPER, CACHE, MAIN}};
	static const struct wanted by_bytes[] = {{"lib!helper", 3, 3}, {"app!main", 0, 3},
		{"app!Cache::fill<int>", 0, 2}, {"app!?", 0, 1}, {"app!leak_here", 0, 1}};
	static const struct wanted by_name[] = {{"app!?", 0, 1}, {"app!Cache::fill<int>", 0, 2},
		{"app!leak_here", 0, 1}, {"app!main", 0, 3}, {"lib!helper", 3, 3}};

	write_stacks("new.txt", of, 2);
	for (int sort = SORT_BYTES; sort <= SORT_NAME; sort++) {
		if (sort == SORT_COUNT || sort == SORT_OLD)
			continue; /* all bits are equal, or no bit is set */
		struct asked *asked = begin(GROUP_FUNCTION);
		asked->request.sort = (enum view_sort)sort;
		asked_do(asked);
		check_groups(asked, sort == SORT_NAME ? by_name : by_bytes, 5);
	}
}

TEST(groups_are_of_what_is_selected)
{
	/* Only stacks 2 and 32. */
	static const struct wanted wanted[] = {{"app", 32, 2 + 32}, {"lib", 2, 2 + 32}};

	struct asked *asked = begin(GROUP_MODULE);
	assert_int_equal(patterns_add(&asked->filter.include, "Cache", NULL), 0);
	asked_do(asked);
	assert_int_equal(asked->view.selected.now.requested_bytes, 2 + 32);
	CHECK(asked, wanted);
}

/* Every row has one innermost frame or its own text. */
TEST(self_of_all_groups_adds_up_to_what_is_selected)
{
	srand(11);
	for (int i = 0; i < 100; i++) {
		unsigned made[12][6] = {{0}};
		struct block_totals sum = {0};

		for (size_t k = 0; k < 12; k++) {
			for (size_t m = 0; m <= k % 5; m++)
				made[k][m] = 1 + (unsigned)rand() % (FRAMES - 1);
		}
		write_stacks("new.txt", (made_stack *)made, 12);
		struct asked *asked = begin((enum view_group)(GROUP_FUNCTION + i % 4));
		strip_add_known(&asked->strip);
		asked->request.strip = i % 2 ? &asked->strip : NULL;
		asked_do(asked);
		for (size_t k = 0; k < asked->view.group_count; k++) {
			const struct view_group_row *group = &asked->view.groups[k];

			block_totals_add(&sum, &group->self.now);
			assert_true(group->self.now.block_count <= group->total.now.block_count);
			assert_true(group->total.now.block_count <= 12);
		}
		check_block_totals(sum, (struct block_totals){12, 4095, 12 * 8});
		check_block_totals(asked->view.selected.now, sum);
	}
}

/* ---------------------------------------------------------------- two spellings of one module */

/* Blocks of 1, 2, 4 ... bytes. Each stack has its own frame, in a module with the frame's name, and
 * one frame with a function. */
static void write_spelt(const char *path, const char *const *modules, size_t count, unsigned offset)
{
	struct maker maker = {.eol = "\n"};

	buf_init(&maker.text);
	put(&maker, "// Loaded modules: ");
	put(&maker, "//     Base Size Module");
	for (size_t i = 0; i < count; i++)
		put(&maker, "//    %16" PRIX64 " %8X C:\\made up\\%zu\\%s", APP_BASE + 0x10000 * i,
			0x10000, i, modules[i]);
	put(&maker, "//\n// Process modules enumerated.");
	put(&maker, "// hsnap: name addr=%" PRIX64 " function=f offset=5", APP_BASE + 0x3010);
	put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
	put(&maker, "*- - - - - Heap 1E0000 Hogs - - - - -\n");
	for (size_t i = 0; i < count; i++) {
		write_entry(&maker, UINT64_C(1) << i, 8, "1");
		put(&maker, "\t%" PRIX64 "\n\t%" PRIX64 "\n", APP_BASE + 0x10000 * i + offset,
			APP_BASE + 0x3010);
	}
	dump_end(&maker, path);
}

/* Checks the name and growth of every group, and the report for flame graphs. */
static void check_spelt(enum view_group group, const char *wanted, const char *folded)
{
	static const struct report_style style = {0};
	struct buf names;
	struct out out;

	struct asked *asked = asked_begin(true, true);
	asked->request.group = group;
	asked_do(asked);
	buf_init(&names);
	for (size_t i = 0; i < asked->view.group_count; i++)
		buf_printf(&names, "%s %" PRId64 ",", asked->view.groups[i].name,
			change_delta(&asked->view.groups[i].total).requested_bytes);
	assert_string_equal(names.data, wanted);
	buf_release(&names);
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	report_folded(
		&out, &(struct report){.views = &asked->view, .view_count = 1, .style = style});
	assert_int_equal(out_commit(&out, NULL), 0);
	char *text = read_text("out.txt");
	assert_string_equal(text, folded);
	free(text);
}

TEST(module_is_one_group_as_newest_dump_spells_it)
{
	static const char *const lower[] = {"ntdll.dll"}, *const upper[] = {"NTDLL.DLL"};

	write_spelt("old.txt", lower, 1, 0x1010);
	write_spelt("new.txt", upper, 1, 0x2010);
	check_spelt(GROUP_MODULE, "NTDLL 0,", "NTDLL 1 1\n");
	check_spelt(GROUP_FUNCTION, "NTDLL!? 0,NTDLL!f 0,", "NTDLL!f;NTDLL!? 1 1\n");
	write_spelt("old.txt", upper, 1, 0x1010);
	write_spelt("new.txt", lower, 1, 0x2010);
	check_spelt(GROUP_MODULE, "ntdll 0,", "ntdll 1 1\n");
}

/* The blocks of 1 byte existed before. All stacks were called from the first module. */
TEST(modules_of_one_name_are_several_groups)
{
	static const char *const names[] = {"ntdll.dll", "NTDLL.DLL", "Ntdll.dll"};
	static const char *const none[] = {"nTDLL.DLL"};

	write_spelt("old.txt", none, 1, 0x1010);
	write_spelt("new.txt", names, 3, 0x2010);
	check_spelt(GROUP_MODULE, "Ntdll(2) 4,NTDLL(1) 2,ntdll(0) 6,",
		"ntdll(0) 1 1\nntdll(0);NTDLL(1) 0 2\nntdll(0);Ntdll(2) 0 4\n");
}
