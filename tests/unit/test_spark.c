#include "tests/unit/t.h"

#include <unistd.h>

#include "core/base/terminal.h"
#include "diff/report/report.h"

#define SNAPSHOTS_MAX 1000

static struct {
	uint32_t parts[SNAPSHOTS_MAX];
	struct block_totals of[SNAPSHOTS_MAX];
	struct trend_axis axis;
} scene;

/* Returns the line of the scene, valid until the next call. */
static const char *draw(enum spark_style style, size_t width)
{
	static char line[4 * SPARK_WIDTH + 1];
	char path[] = "sparkXXXXXX";
	int file = mkstemp(path);
	struct spark spark;
	struct out out;
	FILE *written;

	assert_true(file >= 0);
	assert_int_equal(out_open(&out, path, NULL), 0);
	spark_make(&spark, &scene.axis, style, width);
	assert_true(spark.count <= width);
	spark_print(&out, &spark, scene.of);
	assert_int_equal(out_commit(&out, NULL), 0);
	close(file);
	written = fopen(path, "rb");
	assert_non_null(written);
	line[fread(line, 1, sizeof(line) - 1, written)] = '\0';
	assert_int_equal(fclose(written), 0);
	assert_int_equal(remove(path), 0);
	return line;
}

static void scene_of(const uint64_t *bytes, size_t count)
{
	memset(&scene, 0, sizeof(scene));
	scene.axis.count = count;
	for (size_t i = 0; i < count; i++)
		scene.of[i].requested_bytes = bytes ? bytes[i] : i;
}

TEST(bars_go_from_lowest_to_highest)
{
	static const uint64_t bytes[] = {1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700};
	static const uint64_t wild[] = {UINT64_MAX / 2, 0, UINT64_MAX / 4, 0};

	scene_of(bytes, 8);
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), ".:-=+*#@");
	assert_string_equal(draw(SPARK_UTF8, SPARK_WIDTH), "▁▂▃▄▅▆▇█");
	assert_string_equal(draw(SPARK_NONE, SPARK_WIDTH), "");
	scene_of(wild, 4);
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), "@.+.");
}

TEST(where_bytes_stay_same_blocks_are_drawn)
{
	static const uint64_t bytes[] = {70, 70, 70, 70};

	scene_of(bytes, 4);
	/* A flat series is drawn low. */
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), "....");
	for (size_t i = 0; i < 4; i++)
		scene.of[i].block_count = 10 + i;
	/* Heights in eighths: 0, 8/3, 16/3, 8. */
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), ".-*@");
	scene.of[3].requested_bytes = 71;
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), "...@");
}

/* 16 values in 8 columns, each the mean of a pair. The highest pair stands out in either order. */
TEST(more_than_fit_are_put_together_by_their_mean)
{
	static const uint64_t bytes[] = {0, 0, 0, 0, 0, 80, 0, 0, 40, 40, 0, 0, 0, 0, 10, 10};
	const char *line;

	scene_of(bytes, 16);
	assert_string_equal(draw(SPARK_ASCII, 8), "..@.@..-"); /* 10 of 40 are two eighths */
	scene_of(NULL, SNAPSHOTS_MAX);
	line = draw(SPARK_ASCII, SPARK_WIDTH);
	/* 17 values per column, because 16 would need 63 columns. */
	assert_int_equal(strlen(line), 59);
	for (size_t i = 1; line[i]; i++)
		assert_true(strchr(".:-=+*#@", line[i]) >= strchr(".:-=+*#@", line[i - 1]));
}

TEST(parts_have_mark_between_them)
{
	static const uint64_t bytes[] = {0, 70, 0, 70, 0};

	scene_of(bytes, 5);
	scene.axis.parts = scene.parts;
	scene.parts[2] = scene.parts[3] = 1;
	scene.parts[4] = 2;
	assert_string_equal(draw(SPARK_ASCII, SPARK_WIDTH), ".@|.@|.");
	assert_string_equal(draw(SPARK_ASCII, 5), "@|@|."); /* two values per column */
	assert_string_equal(
		draw(SPARK_ASCII, 3), "@@."); /* no room for marks: (0 + 70) / 2 twice, then 0 */
}

TEST(thousand_restarts_fit)
{
	const char *line;

	scene_of(NULL, SNAPSHOTS_MAX);
	scene.axis.parts = scene.parts;
	for (uint32_t i = 0; i < SNAPSHOTS_MAX; i++)
		scene.parts[i] = i;
	line = draw(SPARK_UTF8, SPARK_WIDTH);
	assert_null(strchr(line, '|'));
	assert_int_equal(strlen(line), 59 * strlen("▁"));
}

TEST(locale_names_utf_8_in_many_ways)
{
	static const char *const yes[] = {
		"en_US.UTF-8", "C.UTF-8", "C.utf8", "de_DE.utf-8@euro", "x.Utf8"};
	static const char *const no[] = {"", "C", "POSIX", "en_US", "en_US.ISO-8859-1", "UTF-8",
		"en_US.UTF-16", "en_US.UTF-8X", "en_US.UTF", "en_US."};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		assert_true(os_is_utf8(yes[i]));
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		assert_false(os_is_utf8(no[i]));
	assert_false(os_is_utf8(NULL));
}
