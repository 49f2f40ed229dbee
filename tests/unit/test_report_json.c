/* The JSON report, exactly as in man/hdiff-json.5. tests/e2e_formats.t reads it with a parser. */
#include "tests/unit/t.h"

#include "tests/unit/test_report.h"

static void lacks(const char *text, const char *part)
{
	if (strstr(text, quoted(part)))
		fail_msg("%s in:\n%s", quoted(part), text);
}

TEST(whole_report_is_as_in_man_page)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put_lines(&maker, "// hsnap: dump format=1 time=2026-01-02T03:04:05.678Z\n"
			  "// hsnap: process id=4711 start=2026-01-01T00:00:00.000Z "
			  "image=\"C:\\\\a.exe\"\n"
			  "// hsnap: warning text=\"a heap is missing\"\n");
	write_function(&maker, 1, "leak");
	put_block(&maker, 500, 8, "B1", 1);
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	assert_string_equal(made_report(made, "json", true),
		quoted("{'schema':'hdiff/1',\n"
		       "'tool':'hdiff " HSNAP_VERSION "',\n"
		       "'inputs':[\n"
		       "{'role':'new','path':'new.txt','image':'C:\\\\a.exe','pid':4711,"
		       "'start':'2026-01-01T00:00:00.000Z','time':'2026-01-02T03:04:05.678Z',"
		       "'cut':false,'warning_count':1,'warnings':['a heap is missing']}],\n"
		       "'group':'stack',\n"
		       "'frame_order':'innermost_first',\n"
		       "'filtered':false,\n"
		       "'totals':{\n"
		       "'all':{'old':{'bytes':0,'blocks':0,'overhead':0},"
		       "'new':{'bytes':500,'blocks':1,'overhead':8},"
		       "'growth':{'bytes':500,'blocks':1,'overhead':8}},\n"
		       "'selected':{'old':{'bytes':0,'blocks':0,'overhead':0},"
		       "'new':{'bytes':500,'blocks':1,'overhead':8},"
		       "'growth':{'bytes':500,'blocks':1,'overhead':8}},\n"
		       "'suppressed':{'old':{'bytes':0,'blocks':0,'overhead':0},"
		       "'new':{'bytes':0,'blocks':0,'overhead':0},"
		       "'growth':{'bytes':0,'blocks':0,'overhead':0}},\n"
		       "'left_out':{'old':{'bytes':0,'blocks':0,'overhead':0},"
		       "'new':{'bytes':0,'blocks':0,'overhead':0},"
		       "'growth':{'bytes':0,'blocks':0,'overhead':0}}},\n"
		       "'row_count':1,\n"
		       "'suppressed_count':0,\n"
		       "'shown_count':1,\n"
		       "'rows':[\n"
		       "{'kind':'stack','ids':['B1'],"
		       "'old':{'bytes':0,'blocks':0,'overhead':0},"
		       "'new':{'bytes':500,'blocks':1,'overhead':8},"
		       "'growth':{'bytes':500,'blocks':1,'overhead':8},"
		       "'frames':[{'module':'app','function':'leak','offset':'2F',"
		       "'address':'140001010'},"
		       "{'module':'lib','offset':'501','address':'7FF812340501'},"
		       "{'module':'app','offset':'800','address':'140000800'}]}]}\n"));
}

TEST(sums_of_what_is_not_selected_are_given)
{
	struct made *made = made_three();
	made->comparison.rows[0].heap = 0x1E0000;
	made->view.row_count = 2;
	made->view.shown_count = 1;
	made->view.is_filtered = made->view.is_inverted = true;
	made->view.selected = (struct change){.now = {1, 500, 8}};
	made->view.suppressed = (struct change){.now = {3, 300, 24}};
	made->view.suppressed_count = 1;
	const char *text = made_report(made, "json", false);
	has(text, "{'role':'old','path':'old.txt',");
	has(text, "{'role':'new','path':'new.txt',");
	has(text, "'filtered':true,\n");
	has(text, "'frame_order':'outermost_first',\n");
	/* Omitted are stack 3, and the two blocks of stack 4 in both dumps. */
	has(text, "'left_out':{'old':{'bytes':164,'blocks':3,'overhead':24},"
		  "'new':{'bytes':64,'blocks':2,'overhead':16},"
		  "'growth':{'bytes':-100,'blocks':-1,'overhead':-8}}");
	has(text, "'row_count':2,\n'suppressed_count':1,\n'shown_count':1,\n");
	has(text, "\n{'kind':'stack','heap':'1E0000','ids':['B1'],");
	lacks(text, "'ids':['B2']");
}

TEST(candidates_are_kept_apart)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	write_entry(&maker, 500, 8, "94C4");
	put_lines(&maker, "\t140001010\n\tAlias\n\t140001020\n\t140000800\n\tAlias\n\t1\n\n");
	write_entry(&maker, 40, 8, "7");
	put_lines(&maker, "\n");
	write_stackless(&maker, 2, 30, 16);
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	const char *text = made_report(made, "json", false);
	has(text, "\n{'kind':'ambiguous','ids':['94C4'],");
	has(text, "'candidates':[[{'module':'app','offset':'1010','address':'140001010'}],"
		  "[{'module':'app','offset':'1020','address':'140001020'},"
		  "{'module':'app','offset':'800','address':'140000800'}],"
		  "[{'address':'1'}]]}");
	has(text, "\n{'kind':'unknown','ids':['7'],'old':{'bytes':0,'blocks':0,'overhead':0},"
		  "'new':{'bytes':40,'blocks':1,'overhead':8},"
		  "'growth':{'bytes':40,'blocks':1,'overhead':8},'frames':[]}");
	has(text, "\n{'kind':'stackless',");
}

TEST(blocks_of_one_of_several_stacks_show_how_many)
{
	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 1; i <= 3; i++)
		put_block(&maker, 100, 8, "5", i);
	write_entry(&maker, 64, 8, "5");
	put_lines(&maker, "\n");
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	const char *text = made_report(made, "json", false);
	has(text, "{'kind':'one_of','ids':['5'],'old':{'bytes':0,'blocks':0,'overhead':0},"
		  "'new':{'bytes':64,'blocks':1,'overhead':8},"
		  "'growth':{'bytes':64,'blocks':1,'overhead':8},'candidate_count':3,'frames':[]}");
}

TEST(what_names_carry_is_there_and_nothing_else)
{
	struct maker maker = dump_new((struct maker){0});
	write_symbol_note(&maker, 0x140001020, "inlined", 0x1f, "a.c", 7);
	write_symbol_note(&maker, 0x140001020, "outer", 0, "b.c", 0);
	put_block(&maker, 500, 2, "1", 2);
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	const char *text = made_report(made, "json", false);
	has(text, "'frames':[{'module':'app','function':'inlined','offset':'1F',"
		  "'address':'140001020','file':'a.c','line':7,'inline':true},"
		  "{'module':'app','function':'outer','address':'140001020','file':'b.c'},"
		  "{'module':'lib','offset':'502',");
}

TEST(groups_take_place_of_rows)
{
	struct view_group_row groups[] = {
		{.name = "a\"b",
			.self = {.now = {1, 500, 8}},
			.total = {.old = {1, 100, 8}, .now = {4, 800, 32}}},
		{.name = "hidden"},
	};

	struct made *made = made_grouped(GROUP_FILE, groups);
	const char *text = made_report(made, "json", false);
	has(text, "'group':'file',\n");
	has(text, "'row_count':3,\n'suppressed_count':0,\n'group_count':2,\n'shown_count':1,\n");
	has(text, "\n{'name':'a\\'b','self':{'old':{'bytes':0,'blocks':0,'overhead':0},"
		  "'new':{'bytes':500,'blocks':1,'overhead':8},"
		  "'growth':{'bytes':500,'blocks':1,'overhead':8}},"
		  "'total':{'old':{'bytes':100,'blocks':1,'overhead':8},"
		  "'new':{'bytes':800,'blocks':4,'overhead':32},"
		  "'growth':{'bytes':700,'blocks':3,'overhead':24}}}]}\n");
	lacks(text, "'rows'");
	lacks(text, "hidden");
}

TEST(overhead_that_is_not_known_is_null)
{
	struct block_totals sums[2] = {{0, 0, 0}, {5, 5320, 0}};
	struct frame frame = {.module = "app", .function = "leak"};
	struct frames frames = {.items = &frame, .count = 1};
	const char *ids[] = {"B53"};
	struct row row = {.totals = sums, .frames = &frames, .ids = ids, .id_count = 1};
	struct made *made = made_new();

	made->comparison = (struct comparison){.dump_count = 2,
		.read_from = "cmp.txt",
		.rows = &row,
		.row_count = 1,
		.has_overhead = true,
		.new_total = {5, 5320, 80}};
	made_view(made);
	const char *text = made_report(made, "json", false);
	has(text, "'inputs':[\n{'role':'comparison','path':'cmp.txt',"
		  "'cut':false,'warning_count':0,'warnings':[]}],\n");
	has(text, "'all':{'old':{'bytes':0,'blocks':0,'overhead':null},"
		  "'new':{'bytes':5320,'blocks':5,'overhead':null},"
		  "'growth':{'bytes':5320,'blocks':5,'overhead':80}},\n'selected'");
	has(text, "'ids':['B53'],'old':{'bytes':0,'blocks':0,'overhead':null},"
		  "'new':{'bytes':5320,'blocks':5,'overhead':null},"
		  "'growth':{'bytes':5320,'blocks':5,'overhead':null},'frames':[");
	made->comparison.has_overhead = false;
	made->comparison.is_cut = true;
	made->comparison.warnings[0] = "no \"total\"";
	made->comparison.warning_count = 1;
	text = made_report(made, "json", false);
	has(text, "'cut':true,'warning_count':1,'warnings':['no \\'total\\'']}],\n");
	has(text, "'all':{'old':{'bytes':0,'blocks':0,'overhead':null},");
	lacks(text, "'overhead':0");
	lacks(text, "'overhead':80");
}

/* RFC 8259, section 7, lists the characters that must be escaped. RFC 3629 defines valid UTF-8. */
TEST(texts_are_utf8_on_one_line_whatever_they_hold)
{
	static const char *const texts[][2] = {
		{"\"\\/\n\r\t\x01\x1f\x7f", "\\\"\\\\/\\u000a\\u000d\\u0009\\u0001\\u001f\\u007f"},
		{"\xc2\x85\xc2\x9b\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa",
			"\\u0085\\u009b\xc2\xa0\\u2028\\u2029\xe2\x80\xaa"},
		{"J\xfcrgen \xc3\xa4 \xed\xa0\x80 \xf0\x9f\x92\xa7 \xe2\x82",
			"J\xef\xbf\xbdrgen \xc3\xa4 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
			"\xf0\x9f\x92\xa7 \xef\xbf\xbd\xef\xbf\xbd"},
		{"", ""}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct view_group_row groups[2] = {{.name = texts[i][0]}};
		struct made *made = made_grouped(GROUP_FUNCTION, groups);
		const char *text = made_report(made, "json", false);
		char wanted[200];

		snprintf(wanted, sizeof(wanted), "{\"name\":\"%s\",\"self\":{", texts[i][1]);
		if (!strstr(text, wanted))
			fail_msg("no %s in:\n%s", wanted, text);
	}
}

TEST(numbers_reach_to_limits_of_64_bits)
{
	static struct view_group_row groups[2] = {{.name = "a",
		.self = {{UINT64_MAX, INT64_MAX, 7}, {UINT64_MAX, 0, 7}},
		.total = {.now = {0, INT64_MAX, 0}}}};

	struct made *made = made_grouped(GROUP_FUNCTION, groups);
	const char *text = made_report(made, "json", false);
	has(text, "'self':{'old':{'bytes':9223372036854775807,'blocks':18446744073709551615,"
		  "'overhead':7},'new':{'bytes':0,'blocks':18446744073709551615,'overhead':7},"
		  "'growth':{'bytes':-9223372036854775807,'blocks':0,'overhead':0}}");
	has(text, "'growth':{'bytes':9223372036854775807,'blocks':0,'overhead':0}}}");
}
