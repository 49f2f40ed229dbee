/* JSON and CSV of a trend, exactly as in the man pages. The judgements are set by hand.
 * tests/e2e_trend_formats.t uses real judgements and reads the reports with parsers. */
#include "tests/unit/t.h"

#include <math.h>

#include "tests/unit/test_report.h"

/* Three snapshots of two stacks, at half past 3, 4 and 5 o'clock. The last snapshot is of another
 * process. */
static struct {
	struct dump_sums dumps[3];
	int64_t times_ms[3];
	uint32_t parts[3];
	struct trend_axis axis;
	struct comparison comparison;
	struct view view;
	struct block_totals series[3];
} scene;

static void write_snapshot(unsigned number, unsigned process)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: dump format=1 time=2026-01-02T0%u:30:00.000Z", 3 + number);
	put(&maker, "// hsnap: process id=%u start=2026-01-0%uT00:00:00.000Z image=app.exe",
		70 + process, process);
	write_function(&maker, 1, "leak");
	for (unsigned i = 0; i <= number; i++)
		put_block(&maker, 500, 8, "B1", 1);
	if (number != 1)
		put_block(&maker, 64, 8, "B2", 2);
	dump_end(&maker, "more.txt");
}

static int scene_begin(void **state)
{
	static const struct trend leak = {TREND_GROWS, 500.25, 499.9996, 1e16, 0.5, 500, 1},
				  other = {TREND_RETURNS, -0.0004, -1.5, 2, -1, -64, -1};
	struct match_request request = {.axis = &scene.axis};

	if (enter_folder(state))
		return -1;
	memset(&scene, 0, sizeof(scene));
	scene.parts[2] = 1;
	for (unsigned i = 0; i < 3; i++) {
		write_snapshot(i, i < 2 ? 1 : 2);
		assert_int_equal(read_sums(&scene.dumps[i], "more.txt"), 0);
		scene.dumps[i].id.path = (const char *[]){"0.txt", "1.txt", "a,\n2"}[i];
		scene.times_ms[i] = scene.dumps[i].id.time_ms;
		scene.series[i] = scene.dumps[i].total;
	}
	scene.axis = (struct trend_axis){scene.times_ms, scene.parts, 3};
	comparison_make(&scene.comparison, scene.dumps, 3, &request);
	view_make(&scene.view, &scene.comparison, true);
	assert_int_equal(scene.view.row_count, 2);
	naming_find(&scene.view.naming, scene.view.rows, 2);
	for (unsigned i = 0; i < 2; i++) {
		scene.comparison.trends[i] =
			strcmp(scene.comparison.rows[i].ids[0], "B1") ? other : leak;
	}
	if (strcmp(scene.comparison.rows[0].ids[0], "B1") != 0)
		scene.view.rows[0] = 1, scene.view.rows[1] = 0;
	memcpy(scene.view.series, scene.series, sizeof(scene.series));
	scene.view.series_number = scene.view.series_count = 1;
	scene.view.trend = leak;
	return 0;
}

static int scene_end(void **state)
{
	view_release(&scene.view);
	comparison_release(&scene.comparison);
	for (size_t i = 0; i < 3; i++)
		sums_release(&scene.dumps[i]);
	return leave_folder(state);
}

#undef TEST_AROUND
#define TEST_AROUND scene_begin, scene_end

/* Returns the report of `count` copies of the scene's series, valid until the next call. */
static const char *scene_report(size_t count, void (*write)(struct out *, const struct report *))
{
	struct view views[] = {scene.view, scene.view};
	static char *text;
	struct report report = {.views = views, .view_count = count};
	struct out out;

	views[1].series_number = 2;
	assert_int_equal(out_open(&out, "out.txt", NULL), 0);
	write(&out, &report);
	assert_int_equal(out_commit(&out, NULL), 0);
	free(text);
	return text = read_text("out.txt");
}

TEST(json_is_as_in_man_page)
{
	const char *text = scene_report(1, report_json);
	has(text, "{'schema':'hdiff-trend/1',\n"
		  "'tool':'hdiff " HSNAP_VERSION "',\n"
		  "'group':'stack',\n"
		  "'frame_order':'innermost_first',\n"
		  "'left_out_file_count':0,'left_out_files':[],\n"
		  "'series_count':1,\n"
		  "'series':[\n"
		  "{'number':1,\n"
		  "'parts':[\n"
		  "{'image':'app.exe','pid':71,'start':'2026-01-01T00:00:00.000Z','first':0,'count'"
		  ":2},"
		  "\n{'image':'app.exe','pid':72,'start':'2026-01-02T00:00:00.000Z','first':2,'"
		  "count':1}"
		  "],\n'snapshots':[\n"
		  "{'path':'0.txt','time':'2026-01-02T03:30:00.000Z',"
		  "'selected':{'bytes':564,'blocks':2,'overhead':16},"
		  "'cut':false,'warning_count':0,'warnings':[]},\n");
	/* OLD is the sum over all processes of their first snapshots, and NEW that of their last
	 * snapshots. */
	has(text, "'filtered':false,\n'totals':{\n"
		  "'all':{'old':{'bytes':2128,'blocks':6,'overhead':48},"
		  "'new':{'bytes':2564,'blocks':6,'overhead':48},"
		  "'growth':{'bytes':436,'blocks':0,'overhead':0}},\n");
	has(text, "},\n'trend':{'verdict':'grows','net_bytes':500,'net_blocks':1,"
		  "'bytes_per_hour':500.25,'low_bytes_per_hour':500,"
		  "'high_bytes_per_hour':10000000000000000,'blocks_per_hour':0.5},\n"
		  "'row_count':2,\n'suppressed_count':0,\n'shown_count':2,\n'rows':[\n"
		  "{'kind':'stack','ids':['B1'],'trend':{'verdict':'grows',");
	has(text, "},'bytes':[500,1000,1500],'blocks':[1,2,3],"
		  "'frames':[{'module':'app','function':'leak','offset':'2F',"
		  "'address':'140001010'},");
	has(text, "\n{'kind':'stack','ids':['B2'],"
		  "'trend':{'verdict':'returns','net_bytes':-64,'net_blocks':-1,"
		  "'bytes_per_hour':0,'low_bytes_per_hour':-1.5,"
		  "'high_bytes_per_hour':2,'blocks_per_hour':-1},"
		  "'bytes':[64,0,64],'blocks':[1,0,1],'frames':[");
}

TEST(what_is_not_known_is_null)
{
	scene.view.trend = (struct trend){.verdict = TREND_STEADY,
		.net_bytes = INT64_MIN,
		.net_blocks = INT64_MAX,
		.bytes_per_hour = NAN,
		.low_bytes_per_hour = -INFINITY,
		.high_bytes_per_hour = INFINITY};
	const char *text = scene_report(1, report_json);
	has(text, "'net_bytes':-9223372036854775808,'net_blocks':9223372036854775807,"
		  "'bytes_per_hour':null,'low_bytes_per_hour':null,"
		  "'high_bytes_per_hour':null,'blocks_per_hour':0},\n");
	scene.axis.times_ms = NULL;
	scene.dumps[1].id.time_ms = scene.dumps[1].id.pid = 0;
	text = scene_report(1, report_json);
	has(text, "{'path':'1.txt','selected':");
	assert_int_equal(times(text, "_per_hour\":null"), 3 * 4);
	/* Each snapshot is of another process, so no growth rate is known. */
	scene.axis.times_ms = scene.times_ms;
	scene.parts[1] = 1;
	scene.parts[2] = 2;
	text = scene_report(1, report_json);
	assert_int_equal(times(text, "_per_hour\":null"), 3 * 4);
}

TEST(csv_has_snapshots_side_by_side)
{
	const char *text = scene_report(1, report_csv);
	assert_string_equal(text,
		"series,image,pid,start,verdict,bytes_per_hour,low_bytes_per_hour,"
		"high_bytes_per_hour,blocks_per_hour,net_bytes,net_blocks,"
		"growth_bytes,new_bytes,old_bytes,growth_count,new_count,old_count,"
		"growth_overhead,new_overhead,old_overhead,"
		"kind,heap,ids,module,function,file,line,stack,"
		"bytes 2026-01-02T03:30:00.000Z,bytes 2026-01-02T04:30:00.000Z,"
		"bytes 2026-01-02T05:30:00.000Z,blocks 2026-01-02T03:30:00.000Z,"
		"blocks 2026-01-02T04:30:00.000Z,blocks 2026-01-02T05:30:00.000Z\r\n"
		"1,app.exe,71,2026-01-01T00:00:00.000Z,grows,500.25,500,10000000000000000,0.5,500,"
		"1,"
		"500,2500,2000,1,5,4,8,40,32,stack,,BackTraceB1,app,leak,,,"
		"app!leak <- lib+501 <- app+800,500,1000,1500,1,2,3\r\n"
		"1,app.exe,71,2026-01-01T00:00:00.000Z,returns,0,-1.5,2,-1,-64,-1,"
		"-64,64,128,-1,1,2,-8,8,16,stack,,BackTraceB2,app,,,,"
		"app+1020 <- lib+502 <- app+800,64,0,64,1,0,1\r\n");
}

TEST(csv_of_several_series_has_columns_of_all)
{
	scene.axis.times_ms = NULL;
	for (unsigned i = 0; i < 3; i++)
		scene.dumps[i].id.time_ms = 0;
	scene.dumps[0].id.pid = 0;
	scene.dumps[0].id.start_ms = 0;
	scene.dumps[0].id.image = NULL;
	scene.view.shown_count = 1;
	const char *text = scene_report(2, report_csv);
	has(text, ",stack,bytes 0.txt,bytes 1.txt,'bytes a,?2',bytes 0.txt,bytes 1.txt,"
		  "'bytes a,?2',blocks 0.txt,blocks 1.txt,'blocks a,?2',"
		  "blocks 0.txt,blocks 1.txt,'blocks a,?2'\r\n1,,,,grows,,,,,500,1,");
	has(text, " <- app+800,500,1000,1500,,,,1,2,3,,,\r\n2,,,,grows,");
	has(text, " <- app+800,,,,500,1000,1500,,,,1,2,3\r\n");
}
