#include "tests/unit/t.h"

#include <inttypes.h>

#include "core/base/err.h"
#include "core/base/parse.h"
#include "diff/series_list.h"

#define DUMPS 12

/* Returns the order as text. In "0:2,1 1:3x" process 0 has dumps 2 and 1, and process 1 has dump 3,
 * which is unused. The letter is the reason: d(ouble), w(arm-up), o(utside), t(imeless). */
static const char *order_text(
	const struct dump_sums *dumps, size_t count, struct order_filter wishes)
{
	static char text[400];
	struct timed_dump order[DUMPS];
	size_t len = 0;

	dumps_order(order, dumps, count, &wishes);
	for (size_t i = 0; i < count; i++) {
		bool goes_on = i && order[i - 1].process == order[i].process;

		if (goes_on)
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, ",%zu", order[i].number);
		else
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%zu:%zu",
				i ? " " : "", order[i].process, order[i].number);
		if (order[i].use)
			text[len++] = "?dwotlhm"[order[i].use];
		text[len] = '\0';
		assert_ptr_equal(order[i].dump, &dumps[order[i].number]);
	}
	return text;
}

static struct dump_sums made(uint32_t pid, int64_t start_ms, int64_t time_ms)
{
	return (struct dump_sums){.id.pid = pid,
		.id.start_ms = start_ms,
		.id.time_ms = time_ms,
		.id.image = "C:\\a\\app.exe"};
}

TEST(time_of_dump_decides)
{
	struct dump_sums dumps[] = {made(1, 5000, 9000), made(1, 5000, 7000), made(1, 5000, 8000)};

	assert_string_equal(order_text(dumps, 3, (struct order_filter){0}), "0:1,2,0");
	dumps[0].id.time_ms = 0;
	assert_string_equal(order_text(dumps, 3, (struct order_filter){0}), "0:1,2,0l");
	assert_string_equal(order_text(dumps, 2, (struct order_filter){0}), "0:1,0l");
	dumps[2].id.time_ms = 0; /* most dumps have no time */
	assert_string_equal(order_text(dumps, 3, (struct order_filter){0}), "0:0,2,1h");
	dumps[1].id.time_ms = 0; /* no dump has a time: the order of the arguments stays */
	assert_string_equal(order_text(dumps, 3, (struct order_filter){0}), "0:0,1,2");
}

TEST(process_is_pid_second_of_start_and_image)
{
	struct dump_sums dumps[] = {made(1, 5999, 9000), made(1, 5000, 7000), made(1, 6000, 8000),
		made(2, 5000, 6000), made(1, 5000, 9500), made(1, 0, 1000)};

	dumps[4].id.image = "D:\\APP.EXE"; /* an image is the same program in any folder */
	assert_string_equal(order_text(dumps, 6, (struct order_filter){0}), "0:5 1:3 2:1,0,4 3:2");
	dumps[4].id.image = "C:\\a\\other.exe";
	assert_string_equal(
		order_text(dumps, 6, (struct order_filter){0}), "0:5 1:3 2:1,0 3:2 4:4");
}

TEST(snapshot_counts_once)
{
	struct dump_sums dumps[] = {made(1, 5000, 9000), made(1, 5000, 9000), made(2, 5000, 9000),
		made(1, 5000, 9001), made(1, 5000, 9000)};

	assert_string_equal(order_text(dumps, 5, (struct order_filter){0}), "0:0,1d,4d,3 1:2");
	dumps[0].quality.is_cut = true; /* the whole dump is kept */
	assert_string_equal(order_text(dumps, 5, (struct order_filter){0}), "0:0d,1,4d,3 1:2");
	for (int i = 0; i < 5; i++) { /* one minute may contain several dumps */
		dumps[i].id.has_wall_time = true;
		dumps[i].id.start_ms = 0;
	}
	assert_string_equal(order_text(dumps, 5, (struct order_filter){0}), "0:0,1,4,3 1:2");
}

TEST(some_are_left_out_as_asked_for)
{
	struct dump_sums dumps[] = {made(1, 5000, 10000), made(1, 5000, 20000),
		made(1, 5000, 30000), made(2, 5000, 15000), made(2, 5000, 25000), made(3, 5000, 0)};
	struct order_filter warm = {.warm_up = 2}, since = {.since = {MOMENT_AT, 20000}},
			    last = {.since = {MOMENT_BEFORE_NEWEST, 5000}},
			    both = {.warm_up = 1, .until = {MOMENT_AT, 24999}};

	assert_string_equal(order_text(dumps, 5, warm), "0:0w,1w,2 1:3w,4w");
	assert_string_equal(order_text(dumps, 5, since), "0:0o,1,2 1:3o,4");
	assert_string_equal(order_text(dumps, 5, last), "0:0o,1o,2 1:3o,4");
	assert_string_equal(order_text(dumps, 5, both), "0:0w,1,2o 1:3w,4o");
	assert_string_equal(order_text(dumps, 6, since), "0:0o,1,2 1:3o,4 2:5t");
	dumps[0].id.stated_ms = 20000; /* only its own date is within the window */
	assert_string_equal(order_text(dumps, 3, since), "0:0m,1,2");
	dumps[0].id.stated_ms = 19000;
	assert_string_equal(order_text(dumps, 3, since), "0:0o,1,2");
	dumps[1].id.time_ms = 10000; /* a duplicate is not a warm-up */
	assert_string_equal(order_text(dumps, 3, warm), "0:0w,1d,2w");
}

TEST(order_does_not_depend_on_how_they_are_given)
{
	struct dump_sums dumps[DUMPS];
	uint64_t random = 1;

	for (size_t i = 0; i < DUMPS; i++)
		dumps[i] = made((uint32_t)(i % 3), 5000, 10000 + (int64_t)(i * 7 % DUMPS));
	for (int round = 0; round < 100; round++) {
		struct timed_dump order[DUMPS];
		struct order_filter none = {0};

		for (size_t i = DUMPS; i > 1; i--) {
			struct dump_sums swap = dumps[i - 1];
			size_t pick =
				(size_t)((random = random * 6364136223846793005 + 1) >> 33) % i;

			dumps[i - 1] = dumps[pick];
			dumps[pick] = swap;
		}
		dumps_order(order, dumps, DUMPS, &none);
		for (size_t i = 1; i < DUMPS; i++) {
			const struct dump_sums *a = order[i - 1].dump, *b = order[i].dump;

			assert_int_equal(
				order[i - 1].process == order[i].process, a->id.pid == b->id.pid);
			if (a->id.pid == b->id.pid)
				assert_true(a->id.time_ms < b->id.time_ms);
		}
	}
}

/* ---------------------------------------------------------------- filters */

static int64_t ms_of(const char *text)
{
	int64_t ms;

	assert_int_equal(date_parse(text, &ms), 0);
	return ms;
}

TEST(times_are_read)
{
	static const struct {
		const char *text, *first, *last;
	} good[] = {
		{"2026-11-20", "2026-11-20T00:00:00Z", "2026-11-20T23:59:59.999Z"},
		{"2024-02-29Z", "2024-02-29T00:00:00Z", "2024-02-29T23:59:59.999Z"},
		{"2026-11-20T10:05", "2026-11-20T10:05:00Z", "2026-11-20T10:05:59.999Z"},
		{"2026-11-20T10:05Z", "2026-11-20T10:05:00Z", "2026-11-20T10:05:59.999Z"},
		{"2026-11-20T10:05:07", "2026-11-20T10:05:07Z", "2026-11-20T10:05:07.999Z"},
		{"2026-11-20T10:05:07Z", "2026-11-20T10:05:07Z", "2026-11-20T10:05:07.999Z"},
		{"2026-11-20T10:05:07.250Z", "2026-11-20T10:05:07.250Z",
			"2026-11-20T10:05:07.250Z"},
	};
	static const char *const bad[] = {"", "Z", "yesterday", "2026-11-31", "2026-13-01",
		"2026-11-20 10:05", "2026-11-20T24:00", "2026-11", "20261120", "-1h", "6", "h",
		"2026-11-20T10:05:07.2", "2026-11-20T10:05:07.250ZZ"};
	struct moment moment;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(moment_parse(good[i].text, false, &moment), 0);
		assert_int_equal(moment_ms(&moment, 0), ms_of(good[i].first));
		assert_int_equal(moment_parse(good[i].text, true, &moment), 0);
		assert_int_equal(moment_ms(&moment, 0), ms_of(good[i].last));
	}
	moment = (struct moment){MOMENT_AT, 77};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(moment_parse(bad[i], false, &moment), -ERR_USAGE);
		assert_int_equal(moment.ms, 77);
	}
	assert_int_equal(moment_parse("1h30m", false, &moment), 0);
	assert_int_equal(moment_ms(&moment, 10000000), 10000000 - 5400000);
	moment.ms = INT64_MAX;
	assert_int_equal(moment_ms(&moment, -5), INT64_MIN);
}
