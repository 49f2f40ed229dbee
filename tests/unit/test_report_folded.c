/* Folded stacks with two numbers, the input of programs that draw differential flame graphs. */
#include "tests/unit/t.h"

#include "tests/unit/test_report.h"

static void assert_folded(size_t dump_count, enum view_group group, const char *wanted)
{
	struct made *made = made_read(dump_count);

	made->view.group = group;
	assert_string_equal(made_report(made, "folded", true), wanted);
}

TEST(root_comes_first_and_old_before_new)
{
	write_three();
	assert_folded(2, GROUP_STACK,
		"app+800;lib+501;app!leak 0 500\n"
		"app+800;lib+502;app+1020 0 300\n"
		"app+800;lib+503;app+1030 100 0\n");
	assert_folded(1, GROUP_STACK,
		"app+800;lib+501;app!leak 500\n"
		"app+800;lib+502;app+1020 300\n"
		"app+800;lib+504;app+1040 64\n");
}

TEST(new_may_come_before_old_where_there_are_both)
{
	write_three();
	for (size_t dump_count = 1; dump_count <= 2; dump_count++) {
		struct made *made = made_read(dump_count);
		const struct report report = {
			.views = &made->view, .view_count = 1, .style = {.is_reverse = true}};
		struct out out;

		assert_int_equal(out_open(&out, "out.txt", NULL), 0);
		report_folded(&out, &report);
		assert_int_equal(out_commit(&out, NULL), 0);
		char *text = read_text("out.txt");
		assert_string_equal(text, dump_count == 1 ? "app+800;lib+501;app!leak 500\n"
							    "app+800;lib+502;app+1020 300\n"
							    "app+800;lib+504;app+1040 64\n" :
							    "app+800;lib+501;app!leak 500 0\n"
							    "app+800;lib+502;app+1020 300 0\n"
							    "app+800;lib+503;app+1030 0 100\n");
		free(text);
	}
}

/* Two entries at different offsets in the same function, and rows of 0 bytes. */
TEST(equal_texts_are_one_line_with_their_sum)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		for (unsigned i = 1; i <= 3; i++)
			write_function(&maker, i, i < 3 ? "same" : "another");
		for (unsigned i = 1; i <= 3; i++) {
			write_entry(&maker, is_new ? 1000 * i : i, 8, "1");
			put_lines(&maker, i == 1 ? "\t140001010\n\n" :
					  i == 2 ? "\t140001020\n\n" :
						   "\t140001030\n\n");
		}
		if (is_new) {
			write_entry(&maker, 0, 8, "2");
			put_lines(&maker, "\t140000010\n\n");
		}
	}
	assert_folded(2, GROUP_STACK, "app!another 3 3000\napp!same 3 3000\n");
}

TEST(lines_are_sorted_frame_by_frame)
{
	static const char *const names[] = {"a b", "a", "\xc3\xa4", "a", "B"};

	struct maker maker = dump_new((struct maker){.is_ours = true});
	for (unsigned i = 0; i < 5; i++) {
		put(&maker, "// hsnap: name addr=%X function=\"%s\" offset=1", 0x10 + i, names[i]);
		write_entry(&maker, 1 + i, 8, "1");
		put(&maker, "\t%X", 0x90 - i);
		/* The second "a" is called by another frame; the other frames are the root. */
		put(&maker, i == 3 ? "\t10\n\t11" : "\t%X", 0x10 + i);
		put(&maker, "%s", "");
	}
	dump_end(&maker, "new.txt");
	assert_folded(1, GROUP_STACK, "B;8C 5\na;8F 2\na;a b;8D 4\na b;90 1\n\xc3\xa4;8E 3\n");
}

TEST(names_do_not_break_lines_or_frames)
{
	static const char *const names[] = {"a;b", "x\ny\tz\r", "J\xfcrgen", "n 1 2", "\x1b\x7f"};

	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 0; i < 5; i++)
		write_symbol_note(&maker, 0x10 + i, names[i], 0, NULL, 0);
	write_entry(&maker, 5, 8, "1");
	for (unsigned i = 0; i < 5; i++)
		put(&maker, "\t%X", 0x10 + i);
	put(&maker, "%s", "");
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	assert_string_equal(
		made_report(made, "folded", false), "??;n 1 2;J\xef\xbf\xbdrgen;x?y?z?;a:b 5\n");
}

TEST(what_has_no_frames_is_one_frame_in_words)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	write_entry(&maker, 500, 8, "94C4");
	put_lines(&maker, "\t140001010\n\t140000800\n\tAlias\n\t140001020\n\n");
	write_entry(&maker, 40, 8, "7");
	put_lines(&maker, "\n");
	write_entry(&maker, 2, 8, "9");
	put_lines(&maker, "\n");
	write_stackless(&maker, 2, 30, 16);
	dump_end(&maker, "new.txt");
	/* Two unknown stacks have equal texts, so their bytes are added: 40 + 2. */
	assert_folded(1, GROUP_STACK,
		"(ambiguous: one of 2 stacks);app+800;app+1010 500\n"
		"(no stack recorded) 30\n"
		"(stack not in the dump) 42\n");
}

TEST(groups_stand_for_their_frames)
{
	static const struct {
		enum view_group group;
		const char *wanted;
	} cases[] = {
		{GROUP_STACK, "lib!f;app!h;app!g;app!f 5\n"},
		{GROUP_FUNCTION, "lib!f;app!h;app!g;app!f 5\n"},
		{GROUP_MODULE, "lib;app 5\n"},
		{GROUP_FILE, "(file not known);b:.c;a.c 5\n"},
	};
	struct maker maker = dump_new((struct maker){0});
	write_symbol_note(&maker, 0x140001010, "f", 1, "a.c", 1);
	write_symbol_note(&maker, 0x140001020, "g", 2, "a.c", 2);
	write_symbol_note(&maker, 0x140001030, "h", 3, "b;.c", 3);
	write_symbol_note(&maker, 0x7FF812340501, "f", 4, NULL, 0);
	write_entry(&maker, 5, 8, "1");
	put_lines(&maker, "\t140001010\n\t140001020\n\t140001030\n\t7FF812340501\n\n");
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	/* No group is shown, so the rows are used. */
	made->view.shown_count = 0;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		made->view.group = cases[i].group;
		made->view.shown_count = cases[i].group == GROUP_STACK;
		assert_string_equal(made_report(made, "folded", false), cases[i].wanted);
	}
}

/* A recursive function is one box in its group, but two boxes in a stack. */
TEST(frames_of_one_function_are_united_when_grouped)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	for (unsigned i = 1; i <= 3; i++)
		write_function(&maker, i, i == 3 ? "other" : "again");
	write_entry(&maker, 5, 8, "1");
	put_lines(&maker, "\t140001010\n\t140001020\n\t140001030\n\t140001010\n\n");
	dump_end(&maker, "new.txt");
	assert_folded(1, GROUP_STACK, "app!again;app!other;app!again;app!again 5\n");
	assert_folded(1, GROUP_FUNCTION, "app!again;app!other;app!again 5\n");
}

TEST(heaps_are_only_frame_and_only_rows_that_are_shown_are_folded)
{
	struct made *made = made_three();

	made->view.group = GROUP_HEAP;
	made->comparison.rows[0].heap = made->comparison.rows[2].heap = 0x1E0000;
	assert_string_equal(
		made_report(made, "folded", false), "(heap not known) 0 300\n1E0000 100 500\n");
	made->view.group = GROUP_STACK;
	made->view.shown_count = 1;
	assert_string_equal(made_report(made, "folded", false), "app+800;lib+501;app!leak 0 500\n");
}

TEST(nothing_is_empty_file)
{
	struct maker maker = dump_new((struct maker){0});
	dump_end(&maker, "new.txt");
	assert_folded(1, GROUP_STACK, "");
}
