/* CSV for spreadsheets: RFC 4180. tests/e2e_formats.t reads it with a parser. */
#include "tests/unit/t.h"

#include "tests/unit/test_report.h"

#define HEADER                                                                                     \
	"growth_bytes,new_bytes,old_bytes,growth_count,new_count,old_count,"                       \
	"growth_overhead,new_overhead,old_overhead,"                                               \
	"kind,heap,ids,module,function,file,line,stack\r\n"

TEST(row_has_sums_first_frame_and_stack)
{
	struct made *made = made_three();
	made->comparison.rows[2].heap = 0x1E5;
	assert_string_equal(made_report(made, "csv", true),
		HEADER "500,500,0,1,1,0,8,8,0,stack,,BackTraceB1,app,leak,,,"
		       "app!leak <- lib+501 <- app+800\r\n"
		       "300,300,0,3,3,0,24,24,0,stack,,BackTraceB2,app,,,,"
		       "app+1020 <- lib+502 <- app+800\r\n"
		       "-100,0,100,-1,0,1,-8,0,8,stack,0x1E5,BackTraceA3,app,,,,"
		       "app+1030 <- lib+503 <- app+800\r\n");
	made->view.shown_count = 0;
	assert_string_equal(made_report(made, "csv", false), HEADER);
}

static void assert_fields(const char *function, const char *file, uint32_t line, const char *wanted)
{
	static const char before[] = HEADER "5,5,0,1,1,0,,,,stack,,BackTrace1,app,";
	struct frame frame = {.module = "app", .function = function, .file = file, .line = line};
	struct frames given = {.items = &frame, .count = 1};

	struct maker maker = dump_new((struct maker){0});
	write_entry(&maker, 5, 8, "1");
	put_lines(&maker, "\t140001010\n\n");
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	const struct dump_sums *dumps = made->comparison.dumps;
	made->comparison.dumps = NULL; /* the comparison looks as if it was parsed */
	made->comparison.rows[0].frames = &given;
	const char *text = made_report(made, "csv", false);
	made->comparison.dumps = dumps;
	assert_int_equal(strncmp(text, before, sizeof(before) - 1), 0);
	assert_string_equal(text + sizeof(before) - 1, wanted);
}

TEST(fields_are_quoted_where_they_have_to_be)
{
	assert_fields("f", "a.c", 7, "f,a.c,7,app!f\r\n");
	assert_fields("f<a,b>", "a.c", 0, "\"f<a,b>\",a.c,,\"app!f<a,b>\"\r\n");
	assert_fields("a\"b\"", "\"", 1, "\"a\"\"b\"\"\",\"\"\"\",1,\"app!a\"\"b\"\"\"\r\n");
	assert_fields("a\r\nb", "c\nd", 1, "\"a\r\nb\",\"c\nd\",1,\"app!a\r\nb\"\r\n");
	assert_fields("a;b c", " d ", 1, "a;b c, d ,1,app!a;b c\r\n");
}

TEST(text_is_no_formula)
{
	assert_fields(
		"=cmd|'/c calc'!A0", "+1", 1, "'=cmd|'/c calc'!A0,'+1,1,app!=cmd|'/c calc'!A0\r\n");
	assert_fields("-1", "@SUM(A1,B1)", 1, "'-1,\"'@SUM(A1,B1)\",1,app!-1\r\n");
	assert_fields("\t=1", "\r=1", 1, "'\t=1,\"'\r=1\",1,app!\t=1\r\n");
	/* Each quote is doubled, so removing one of the two restores the text. */
	assert_fields("'quoted'", "''", 1, "''quoted','\'',1,app!'quoted'\r\n");
	assert_fields("\xef\xbc\x9d"
		      "1",
		"a=1", 1,
		"'\xef\xbc\x9d"
		"1,a=1,1,app!\xef\xbc\x9d"
		"1\r\n");
}

TEST(text_is_utf8_without_what_terminal_obeys)
{
	assert_fields("J\xfcrgen\xc3\xa4", "\x1b[1m\x7f\xc2\x9b", 1,
		"J\xef\xbf\xbdrgen\xc3\xa4,?[1m??,1,app!J\xef\xbf\xbdrgen\xc3\xa4\r\n");
}

TEST(what_has_no_frames_has_words)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	write_entry(&maker, 500, 8, "94C4");
	put_lines(&maker, "\t140001010\n\tAlias\n\t140001020\n\t1\n\n");
	write_entry(&maker, 40, 8, "7");
	put_lines(&maker, "\n");
	write_stackless(&maker, 2, 30, 16);
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	assert_string_equal(made_report(made, "csv", false),
		HEADER "500,500,0,1,1,0,8,8,0,ambiguous,,BackTrace94C4,app,,,,"
		       "app+1010 | app+1020 <- 1\r\n"
		       "40,40,0,1,1,0,8,8,0,unknown,,BackTrace7,,,,,(stack not in the dump)\r\n"
		       "30,30,0,2,2,0,16,16,0,stackless,,BackTrace0,,,,,(no stack recorded)\r\n");
}

TEST(stacks_that_are_turned_round_point_other_way)
{
	struct made *made = made_three();
	made->view.is_inverted = true;
	const char *text = made_report(made, "csv", false);
	assert_null(strstr(text, " <- "));
	assert_non_null(strstr(text, " -> lib+501 -> "));
}

TEST(group_is_row_with_self_and_total)
{
	static struct view_group_row groups[] = {
		{.name = "=x",
			.self = {.now = {1, 500, 8}},
			.total = {.old = {1, 100, 8}, .now = {4, 800, 32}}},
		{.name = "hidden"},
	};

	struct made *made = made_grouped(GROUP_MODULE, groups);
	assert_string_equal(made_report(made, "csv", false),
		"self_growth_bytes,self_new_bytes,self_old_bytes,"
		"self_growth_count,self_new_count,self_old_count,"
		"self_growth_overhead,self_new_overhead,self_old_overhead,"
		"growth_bytes,new_bytes,old_bytes,growth_count,new_count,old_count,"
		"growth_overhead,new_overhead,old_overhead,group,name\r\n"
		"500,500,0,1,1,0,8,8,0,700,800,100,3,4,1,24,32,8,module,'=x\r\n");
	made->comparison.has_overhead = false;
	assert_non_null(strstr(made_report(made, "csv", false),
		"\r\n500,500,0,1,1,0,,,,700,800,100,3,4,1,,,,module,'=x\r\n"));
}
