/* What the text report says of a trend in numbers and words, and the limits per hour: what a series
 * says is set here by hand. */
#include "tests/unit/t.h"

#include <math.h>

#include "diff/hdiff.h"
#include "diff/report/report_parts.h"
#include "tests/unit/test_report.h"

/* ---------------------------------------------------------------- rates */

static void check_rate(double rate, bool has_sign, unsigned width, const char *wanted)
{
	struct err err;
	struct out out;
	char *text;

	assert_int_equal(out_open(&out, "out.txt", &err), 0);
	text_rate(&out, rate, has_sign, width);
	assert_int_equal(out_commit(&out, &err), 0);
	text = read_text("out.txt");
	assert_string_equal(text, wanted);
	free(text);
}

#undef TEST_AROUND
#define TEST_AROUND enter_folder, leave_folder

TEST(a_rate_has_no_more_digits_than_say_something)
{
	check_rate(12345.678, true, 0, "+12346");
	check_rate(-12345.4, true, 0, "-12345");
	check_rate(100, true, 0, "+100");
	check_rate(99.94, true, 0, "+99.9");
	check_rate(99.96, false, 0, "100");
	check_rate(3.25, true, 0, "+3.3");
	check_rate(-0.06, true, 0, "-0.1");
	check_rate(3, false, 0, "3");
	check_rate(1e15, false, 0, "1000000000000000");
}

TEST(what_rounds_to_nothing_is_nothing)
{
	check_rate(-0.04, true, 0, "+0");
	check_rate(-0.04, false, 0, "0");
	check_rate(0, true, 0, "+0");
}

TEST(what_is_no_number_does_not_look_like_one)
{
	check_rate(INFINITY, true, 0, "inf");
	check_rate(-INFINITY, true, 0, "-inf");
	check_rate(NAN, true, 0, "?");
	check_rate(1e300, true, 0, "+1e+300");
	check_rate(-12345e18, false, 13, "   -1.234e+22");
}

TEST(rates_are_in_columns)
{
	check_rate(1234, true, 8, "   +1234");
	check_rate(12.5, true, 8, "   +12.5");
	check_rate(NAN, true, 8, "       ?");
}

/* ---------------------------------------------------------------- limits */

/* Three snapshots of two stacks: "leak", and blocks without one. */
struct scene {
	struct dump_sums dumps[3];
	int64_t times_ms[3];
	uint32_t parts[3];
	struct trend_axis axis;
	struct comparison comparison;
	struct view view;
	struct strip strip;
	struct options options;
	struct growth_limits limits;
	FILE *said;
};

static void scene_begin(struct scene *scene)
{
	struct match_request request = {.axis = &scene->axis};
	struct err err;

	*scene = (struct scene){.options = {.growth_max_bytes = UINT64_MAX,
					.growth_max_blocks = UINT64_MAX,
					.rate_max_bytes = 1000,
					.rate_max_hours = 1}};
	for (unsigned i = 0; i < 3; i++) {
		struct maker maker;

		dump_begin(&maker, (struct maker){.is_ours = true});
		put_function(&maker, 1, "leak");
		for (unsigned k = 0; k <= i; k++) {
			put_block(&maker, 500, 8, "B1", 1);
			put_entry(&maker, 700, 8, "0");
		}
		dump_end(&maker, "more.txt");
		sums_init(&scene->dumps[i]);
		assert_int_equal(read_sums(&scene->dumps[i], "more.txt", &err), 0);
		scene->times_ms[i] = 3600000 * i;
	}
	scene->axis = (struct trend_axis){scene->times_ms, NULL, 3};
	comparison_make(&scene->comparison, scene->dumps, 3, &request);
	assert_int_equal(scene->comparison.row_count, 2);
	view_make(&scene->view, &scene->comparison, true);
	strip_init(&scene->strip);
	scene->said = fopen("said.txt", "w+");
	assert_non_null(scene->said);
	scene->limits = (struct growth_limits){
		.options = &scene->options, .strip = &scene->strip, .say = scene->said};
}

/* The row with a stack, or the one without, is judged like this. */
static void judged(struct scene *scene, enum row_kind kind, struct trend trend)
{
	for (size_t i = 0; i < 2; i++) {
		struct row *row = &scene->comparison.rows[i];

		if (row->kind == kind)
			row->trend = trend;
	}
}

static void check_said(struct scene *scene, bool is_over, const char *words)
{
	char said[1000], wanted[1000];
	size_t len;

	rewind(scene->said);
	assert_int_equal(ftruncate(fileno(scene->said), 0), 0);
	scene->limits.is_over = false;
	growth_check(&scene->limits, &scene->view);
	assert_int_equal(scene->limits.is_over, is_over);
	rewind(scene->said);
	len = fread(said, 1, sizeof(said) - 1, scene->said);
	said[len] = '\0';
	snprintf(wanted, sizeof(wanted), "%s%s", *words ? "hdiff: " : "", words);
	assert_string_equal(said, wanted);
}

static void scene_end(struct scene *scene)
{
	assert_int_equal(fclose(scene->said), 0);
	remove("said.txt");
	strip_release(&scene->strip);
	view_release(&scene->view);
	comparison_release(&scene->comparison);
	for (size_t i = 0; i < 3; i++)
		sums_release(&scene->dumps[i]);
}

#define GROWS(rate) ((struct trend){.verdict = TREND_GROWS, .bytes_per_hour = (rate)})
#define GREW_ONCE(rate) ((struct trend){.verdict = TREND_GREW_ONCE, .bytes_per_hour = (rate)})

TEST(what_grows_is_added_up_or_taken_as_a_whole)
{
	struct scene scene;

	scene_begin(&scene);
	judged(&scene, ROW_STACK, GROWS(600));
	judged(&scene, ROW_STACKLESS, GROWS(400));
	scene.view.trend = GROWS(1000);
	check_said(&scene, false, "");
	judged(&scene, ROW_STACKLESS, GROWS(401));
	check_said(&scene, true,
		"growth of 1001 bytes/h is over the limit of 1000 bytes/h; fastest: app!leak < "
		"lib+501 < app+800, by 600\n");
	judged(&scene, ROW_STACKLESS, GREW_ONCE(1e9));
	check_said(&scene, false, "");
	scene.view.trend = GROWS(1500);
	check_said(&scene, true,
		"growth of 1500 bytes/h is over the limit of 1000 bytes/h; fastest: app!leak < "
		"lib+501 < app+800, by "
		"600\n");
	scene.view.trend = GREW_ONCE(1500);
	check_said(&scene, false, "");
	assert_false(growth_is_unknown(&scene.limits));
	scene_end(&scene);
}

TEST(of_what_has_no_stack_that_is_said)
{
	struct scene scene;

	scene_begin(&scene);
	judged(&scene, ROW_STACK, GREW_ONCE(5000));
	judged(&scene, ROW_STACKLESS, GROWS(50));
	scene.view.trend = GREW_ONCE(5000);
	scene.options.rate_max_hours = 24;
	check_said(&scene, true,
		"growth of 1200 bytes/d is over the limit of 1000 bytes/d; fastest: (no stack "
		"recorded), by 1200\n");
	judged(&scene, ROW_STACKLESS, GREW_ONCE(50));
	scene.view.trend = GROWS(70);
	check_said(&scene, true,
		"growth of 1680 bytes/d is over the limit of 1000 bytes/d; it is that of all "
		"together, "
		"and no single stack keeps growing: try --group function or --group module\n");
	scene_end(&scene);
}

TEST(what_is_not_known_is_no_kept_limit)
{
	struct scene scene;

	scene_begin(&scene);
	judged(&scene, ROW_STACK, GREW_ONCE(1e9));
	judged(&scene, ROW_STACKLESS, GREW_ONCE(1e9));
	scene.view.trend = GREW_ONCE(1e9);
	scene.axis.parts = scene.parts;
	scene.parts[2] = 1; /* two of one process, and one */
	check_said(&scene, false,
		"--max-growth cannot judge growth per hour: there are less than three snapshots "
		"of a process\n");
	assert_true(growth_is_unknown(&scene.limits));
	scene.parts[2] = 0;
	check_said(&scene, false, "");
	assert_false(growth_is_unknown(&scene.limits)); /* one could be judged */
	scene.axis.times_ms = NULL;
	check_said(&scene, false,
		"--max-growth cannot judge growth per hour: not all snapshots tell when they were "
		"taken, or all tell the same time\n");
	assert_true(growth_is_unknown(&scene.limits));
	scene_end(&scene);
}

/* ---------------------------------------------------------------- options */

static void parsed(struct options *options, const char *option, const char *value, int wanted)
{
	char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t)option,
		(char *)(uintptr_t)value, (char *)(uintptr_t) "a.txt"};
	struct err err = {0};

	assert_int_equal(options_parse(options, 4, argv, &err), wanted);
}

TEST(a_limit_per_hour_is_a_size_and_a_unit)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		unsigned hours;
	} good[] = {{"1M/h", 1 << 20, 1}, {"0/h", 0, 1}, {"1.5KiB/d", 1536, 24}, {"7/d", 7, 24}};
	static const char *const bad[] = {
		"1M/", "/h", "1M/H", "1M/hour", "1M/h,5", "1M,5/h", "-1/h", "1X/h"};
	struct options options;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		parsed(&options, "--max-growth", good[i].text, 0);
		assert_int_equal(options.rate_max_bytes, good[i].bytes);
		assert_int_equal(options.rate_max_hours, good[i].hours);
		assert_true(options.growth_max_bytes == UINT64_MAX);
		assert_string_equal(options_of_trend(&options), "--max-growth SIZE/h");
		options_release(&options);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		parsed(&options, "--max-growth", bad[i], -ERR_USAGE);
		options_release(&options);
	}
}

TEST(verdicts_are_a_list)
{
	static const char *const bad[] = {
		"", ",", "grows,", ",grows", "grow", "growsx", "grew once"};
	struct options options;

	parsed(&options, "--verdict", "grows", 0);
	assert_int_equal(options.trend_verdicts, 1u << TREND_GROWS);
	options_release(&options);
	parsed(&options, "--verdict", "shrinks,grew-once,shrinks", 0);
	assert_int_equal(options.trend_verdicts, 1u << TREND_SHRINKS | 1u << TREND_GREW_ONCE);
	options_release(&options);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		parsed(&options, "--verdict", bad[i], -ERR_USAGE);
		options_release(&options);
	}
}
