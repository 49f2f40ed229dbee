#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#include "core/record/record.h"

#define RECORDING "more.txt" /* hdiff recognizes a recording by its head, not by its name */
#define RECORDING_AT_END "more.txt@end"

static struct recorder *recorder;

static void begin(const struct record_facts *facts)
{
	static const struct module app = {
		.base = APP_BASE, .size_bytes = 0x10000, .path = "C:\\app.exe"};

	assert_int_equal(recorder_open(&recorder, RECORDING, facts, NULL), 0);
	assert_int_equal(recorder_module(recorder, &app), 0);
	assert_int_equal(recorder_heap(recorder, 0x1E0000), 0);
}

static void end(void)
{
	assert_int_equal(recorder_end(recorder, NULL), 0);
}

/* Makes a chart, which has no rows. */
#define chart_of(...)                                                                              \
	chart_with((const char *const[]){"-fout.txt", "--no-symbols", __VA_ARGS__, RECORDING, NULL})

static const char *chart_with(const char *const *args)
{
	struct result *result = run_raw(args);

	assert_int_equal(result->status, 0);
	assert_string_equal(result->words, "");
	return result->text;
}

/* Returns the kind of allocations with this size and with a stack at this offset in the
 * application. */
static uint32_t kind_of(uint64_t bytes, uint64_t offset)
{
	struct record_frame frame = {.offset = offset};
	struct record_kind kind = {.bytes = bytes, .stack = recorder_stack(recorder, &frame, 1)};

	return recorder_kind(recorder, &kind);
}

static void alloc(uint32_t kind, unsigned count)
{
	while (count--)
		recorder_alloc(recorder, kind, 0);
}

TEST(kinds_of_one_stack_are_one_row)
{
	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(10, 0x100), 3);
	alloc(kind_of(1000, 0x100), 2);
	alloc(kind_of(0, 0x200), 4);
	end();
	struct result *result = run_rows(2, RECORDING);
	assert_int_equal(result->rows[0].new_bytes, 2030);
	assert_int_equal(result->rows[0].new_count, 5);
	assert_int_equal(result->rows[1].new_bytes, 0);
	assert_int_equal(result->rows[1].new_count, 4);
	assert_string_equal(result->rows[0].frames, "\tapp+100 : 140000100\n");
}

TEST(module_in_place_of_one_that_went_is_another_one)
{
	static const struct module later = {
		.base = APP_BASE + 0x1000, .size_bytes = 0x10000, .path = "C:\\later.dll"};
	struct record_frame frame = {.offset = 0x100};
	struct record_kind kind = {.bytes = 5};

	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(10, 0x1100), 1);
	frame.module = recorder_module(recorder, &later);
	kind.stack = recorder_stack(recorder, &frame, 1);
	alloc(recorder_kind(recorder, &kind), 1);
	end();
	struct result *result = run_rows(2, RECORDING);
	assert_non_null(strstr(result->rows[0].frames, "\tapp+1100 : "));
	assert_non_null(strstr(result->rows[1].frames, "\tlater+100 : "));
}

/* Checks the modules at a moment, sorted by address. "-" marks modules that were unloaded earlier.
 * Their bases differ from those at load time. */
static void check_modules(const char *moment, const char *wanted)
{
	const struct recording_part part = {.fate = FATE_LIVE, .moment = moment};
	struct dump_sums sums;
	char text[200] = "";

	sums_init(&sums);
	assert_int_equal(sums_read_recording(&sums, RECORDING, RECORDING, &part, NULL), 0);
	for (size_t i = 0; i < sums.module_list.count; i++) {
		const struct module *module = &sums.module_list.items[i];

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s ",
			module_path_base(module->path), module->unloaded_at ? "-" : "");
		assert_true(!module->unloaded_at || module->base != module->unloaded_at);
	}
	assert_string_equal(text, wanted);
	sums_release(&sums);
}

TEST(modules_of_moment_are_those_that_were_there_or_are_needed)
{
	struct module dll = {.base = APP_BASE + 0x100000, .size_bytes = 0x10000};
	struct record_frame frame = {.offset = 0x100};
	struct record_kind kind = {.bytes = 5};
	uint32_t old, first, second, third;

	begin(&(struct record_facts){.pid = 7});
	dll.path = "C:\\old.dll";
	old = recorder_module(recorder, &dll);
	dll.path = "C:\\first.dll";
	first = recorder_module(recorder, &dll);
	dll.path = "C:\\second.dll";
	second = recorder_module(recorder, &dll);
	dll.path = "C:\\third.dll";
	dll.base += 0x100000;
	third = recorder_module(recorder, &dll);
	recorder_time(recorder, 10);
	recorder_module_is(recorder, old, false);
	recorder_module_is(recorder, first, true);
	frame.module = first;
	kind.stack = recorder_stack(recorder, &frame, 1);
	alloc(recorder_kind(recorder, &kind), 1);
	recorder_time(recorder, 20);
	recorder_module_is(recorder, first, false);
	recorder_module_is(recorder, second, true);
	recorder_module_is(recorder, third, true);
	recorder_time(recorder, 30);
	recorder_module_is(recorder, second, false);
	recorder_time(recorder, 40);
	recorder_module_is(recorder, first, true);
	end();
	check_modules("9ms", "app.exe old.dll ");
	check_modules("10ms", "app.exe first.dll ");
	check_modules("20ms", "app.exe second.dll third.dll first.dll- ");
	check_modules("39ms", "app.exe third.dll first.dll- ");
	check_modules("end", "app.exe first.dll third.dll ");
}

TEST(modules_that_go_with_process_are_counted)
{
	static const char *const paths[] = {"C:\\late.dll", "C:\\first.dll", "C:\\last.dll"};
	const char *text;
	uint32_t number;

	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(8, 0x100), 1);
	for (uint32_t i = 0; i < 3; i++) {
		number = recorder_module(
			recorder, &(struct module){.base = 0x7FF000000000 + 0x10000 * i,
					  .size_bytes = 0x10000,
					  .path = paths[i]});
		assert_int_equal(number, i + 1);
	}
	recorder_time(recorder, 901);
	recorder_module_is(recorder, 3, false);
	recorder_module_is(recorder, 3, true);
	recorder_time(recorder, 1000);
	recorder_module_is(recorder, 2, false);
	recorder_time(recorder, 1001);
	recorder_module_is(recorder, 1, false);
	recorder_module_is(recorder, 3, false);
	recorder_time(recorder, 1100);
	end();
	text = chart_of("--list");
	assert_non_null(strstr(text,
		"\nunloaded   0.901 s C:\\last.dll\nloaded     0.901 s C:\\last.dll\n"
		"unloaded   1.000 s C:\\first.dll\nunloaded   2 modules at the end\n"));
	assert_null(strstr(text, "late"));
	assert_int_equal(times(chart_of("--list", "-ojson"), "\"loaded\":false"), 4);
}

TEST(modules_at_end_of_address_space_are_read)
{
	static const struct module last = {
		.base = UINT64_MAX - 0xfff, .size_bytes = 0x1000, .path = "C:\\last.dll"};
	static const struct module wide = {
		.base = APP_BASE + 1, .size_bytes = UINT64_MAX, .path = "C:\\wide.dll"};
	struct record_frame frames[] = {{.offset = 0x10}, {.offset = UINT64_MAX}};
	struct record_kind kind = {.bytes = 5};

	begin(&(struct record_facts){.pid = 7});
	frames[0].module = recorder_module(recorder, &last);
	frames[1].module = recorder_module(recorder, &wide);
	kind.stack = recorder_stack(recorder, frames, 2);
	alloc(recorder_kind(recorder, &kind), 1);
	end();
	struct result *result = run_rows(1, RECORDING);
	assert_int_equal(result->rows[0].new_bytes, 5);
}

TEST(blocks_of_more_than_8_EiB_are_refused)
{
	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(INT64_MAX, 0x100), 1);
	recorder_mark(recorder, "full");
	alloc(kind_of(1, 0x100), 1);
	recorder_mark(recorder, "over");
	alloc(kind_of(UINT64_MAX, 0x300), 1);
	alloc(kind_of(UINT64_C(1) << 60, 0x300), 17);
	end();
	struct result *result = run_rows(1, RECORDING "@full");
	assert_int_equal(result->rows[0].new_bytes, INT64_MAX);
	refused("the recording is damaged", RECORDING "@over");
	refused("the recording is damaged", RECORDING);
}

TEST(address_space_is_no_memory)
{
	struct record_kind kind = {.bytes = 1 << 20,
		.stack = RECORD_NO_STACK,
		.heap = RECORD_NO_HEAP,
		.memory = RECORD_RESERVED};

	begin(&(struct record_facts){.pid = 7});
	alloc(recorder_kind(recorder, &kind), 3);
	alloc(kind_of(10, 0x100), 1);
	end();
	struct result *result = run_rows(1, RECORDING);
	assert_int_equal(result->requested, 10);
	assert_non_null(strstr(result->text, "not counted here: +3145728 ( 3145728 - 0)"));
	result = run_rows(1, "--heap", "reserved", RECORDING);
	assert_int_equal(result->rows[0].new_bytes, 3 << 20);
}

TEST(who_freed_has_its_module_when_that_is_gone_and_nothing_was_allocated_by_it)
{
	struct module dll = {.base = APP_BASE + 0x100000, .size_bytes = 0x10000};
	struct record_frame frame = {.offset = 0x123};
	uint32_t number;

	begin(&(struct record_facts){.pid = 7});
	dll.path = "C:\\gone.dll";
	frame.module = recorder_module(recorder, &dll);
	alloc(kind_of(1000, 0x100), 3);
	for (number = 0; number < 3; number++)
		recorder_free_by(recorder, kind_of(1000, 0x100), number,
			number ? recorder_stack(recorder, &frame, 1) : RECORD_NO_STACK);
	recorder_time(recorder, 10);
	recorder_module_is(recorder, frame.module, false);
	dll.path = "C:\\came.dll";
	recorder_module_is(recorder, recorder_module(recorder, &dll), true);
	end();
	struct result *result = run_rows(1, "--transient", RECORDING);
	assert_int_equal(result->rows[0].new_count, 3);
	assert_non_null(
		strstr(result->text, "//     freed by (2000 in 2):\n//         gone+123 : "));
}

TEST(what_was_there_before_is_not_allocated_in_it)
{
	struct record_kind kind = {.bytes = 100, .stack = RECORD_NO_STACK};
	uint32_t before;

	begin(&(struct record_facts){.pid = 7, .is_attached = true});
	before = recorder_kind(recorder, &kind);
	alloc(before, 5);
	recorder_start(recorder);
	alloc(before, 1);
	recorder_free(recorder, before, 2);
	recorder_free(recorder, before, 5);
	alloc(kind_of(10, 0x100), 1);
	end();
	struct result *result = run_rows(1, RECORDING);
	assert_int_equal(result->requested, 10);
	assert_non_null(strstr(result->text, "5 older blocks of 500 bytes have no stack"));
	assert_int_equal(run_rows(1, "--transient", RECORDING)->requested, 100);
	assert_int_equal(run_rows(1, "--class", "aofi", RECORDING)->requested, 100);
	assert_int_equal(run_rows(1, "--class", "aofo", RECORDING)->requested, 400);
	run_status(1, "--max-growth", "399", "--class", "aofo", RECORDING);
	run_status(0, "--max-growth", "400", "--class", "aofo", RECORDING);
	assert_int_equal(run_rows(2, RECORDING "@end")->requested, 410);
	assert_int_equal(run_rows(2, "--sum", RECORDING)->requested, 410);
}

/* Checks the chart of the blocks in windows_that_several_threads_count_are_as_if_one_did. */
static void check_use(uint64_t lag, uint64_t total_ms)
{
	const char *at = next_text(chart_of("--over-time", "-ocsv"));
	uint64_t before = 0, ms = 0;
	char row[200];

	for (at = next_text(at); *at; at = next_text(at)) {
		uint64_t made, freed, bytes, highest;

		ms = strtoull(at, NULL, 10);
		made = 1000 * (ms + 1 < total_ms ? ms + 1 : total_ms);
		freed = made > lag ? made - lag : 0;
		bytes = made - freed;
		/* The next block is allocated before an old block is freed. */
		highest = bytes + (made > lag) + 3000000;
		snprintf(row, sizeof(row), "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", ms,
			bytes + 3000000, bytes + 3, highest);
		assert_memory_equal(at, row, strlen(row));
		snprintf(row, sizeof(row), ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
			made - before + (before ? 0 : 3000000), made - before + (before ? 0 : 3),
			freed - (before > lag ? before - lag : 0),
			freed - (before > lag ? before - lag : 0));
		assert_non_null(strstr(at, row));
		assert_true(strstr(at, row) < next_text(at));
		before = made;
	}
	assert_int_equal(ms, total_ms - 1);
}

/* Every millisecond, the test allocates EACH_MS blocks and frees the EACH_MS blocks that were
 * allocated LAG allocations earlier. Therefore, the result for every window is known. */
TEST(windows_that_several_threads_count_are_as_if_one_did)
{
	enum { EACH_MS = 1000, LAG = 300000, TOTAL_MS = 1800, FROM_MS = 400, TO_MS = 1700 };
	uint32_t kind, kept;

	begin(&(struct record_facts){.pid = 7});
	kind = kind_of(1, 0x100);
	kept = kind_of(1000000, 0x200);
	alloc(kept, 3);
	for (uint64_t i = 0; i < EACH_MS * TOTAL_MS; i++) {
		recorder_time(recorder, i / EACH_MS);
		recorder_alloc(recorder, kind, 0);
		if (i >= LAG)
			recorder_free(recorder, kind, i - LAG);
	}
	end();
	const struct {
		const char *fate;
		int64_t requested;
	} truths[] = {
		{"aifo", LAG},
		{"aifi", EACH_MS * (TO_MS - FROM_MS) - LAG},
		{"aofi", LAG},
		{"aofo", 3000000},
	};
	for (size_t i = 0; i < sizeof(truths) / sizeof(*truths); i++)
		assert_int_equal(run_hdiff("--class", truths[i].fate, "--from", "400ms", "--to",
					 "1700ms", RECORDING)
					 ->requested,
			truths[i].requested);
	check_use(LAG, TOTAL_MS);
}

TEST(heap_that_is_not_known_is_read)
{
	struct record_kind kind = {.bytes = 7, .stack = RECORD_NO_STACK, .heap = RECORD_NO_HEAP};

	begin(&(struct record_facts){.pid = 7});
	alloc(recorder_kind(recorder, &kind), 3);
	end();
	assert_int_equal(run_rows(1, RECORDING)->requested, 21);
	assert_non_null(strstr(chart_of("--histogram", "-ocsv"), "heap,7,7,21,3,21,3\r\n"));
}

static uint64_t csv_number(const char *line, unsigned column)
{
	while (column--)
		line = strchr(line, ',') + 1;
	return strtoull(line, NULL, 10);
}

/* In a sample of 100000 a block of 1000 bytes represents 1 / (1 - exp(-1000 / 100000)) = 100.50083
 * blocks. */
TEST(charts_of_sample_are_estimates_as_reports_are)
{
	const char *text;
	uint64_t all, left;
	uint32_t kind;

	begin(&(struct record_facts){.pid = 7, .sample_bytes = 100000});
	kind = kind_of(1000, 0x100);
	alloc(kind, 1000);
	recorder_time(recorder, 5);
	for (uint64_t i = 0; i < 400; i++)
		recorder_free(recorder, kind, i);
	end();
	left = (uint64_t)run_rows(1, RECORDING "@end")->requested / 1000;
	assert_in_range(left, 60300, 60301);
	text = strstr(chart_of("--over-time", "-ocsv"), "\r\n1,");
	all = csv_number(text, 2);
	assert_in_range(all, 100500, 100501);
	assert_true(strstr(text, ",100000\r\n") > text);
	assert_int_equal(csv_number(strstr(text, "\r\n5,"), 1), 1000 * left);
	text = next_text(chart_of("--histogram", "-ocsv"));
	assert_int_equal(strncmp(text, "heap,896,1023,", strlen("heap,896,1023,")), 0);
	assert_in_range(csv_number(text, 4), 100500, 100501);
	assert_in_range(csv_number(text, 6), 60300, 60301);
	assert_int_equal(csv_number(text, 7), 100000);
	assert_non_null(strstr(chart_of("--over-time"), "ESTIMATES"));
	assert_non_null(strstr(chart_of("--over-time", "-osvg"), "ESTIMATES"));
}

TEST(spike_of_millisecond_is_seen_in_day)
{
	enum { DAY_MS = 24 * 60 * 60 * 1000, SPIKE_MS = 12345678 };
	const char *forms[] = {"-otext", "-ocsv", "-osvg"};
	const char *truths[] = {"// peak: 1010 bytes at 12345.678 s\n", ",1010,12345678,",
		"; highest 1010 at 12345.678 s<"};
	uint32_t spike;

	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(10, 0x100), 1);
	recorder_time(recorder, SPIKE_MS);
	spike = kind_of(1000, 0x100);
	alloc(spike, 1);
	recorder_time(recorder, SPIKE_MS + 1);
	recorder_free(recorder, spike, 0);
	recorder_time(recorder, DAY_MS);
	alloc(kind_of(1, 0x200), 1);
	end();
	for (int i = 0; i < 3; i++) {
		const char *text = chart_of("--over-time", forms[i]);

		assert_non_null(strstr(text, truths[i]));
		assert_true(times(text, "\n") < 1600);
	}
}

TEST(charts_have_bounds_for_any_recording)
{
	enum { KINDS = 100000, MARKS = 100000 };
	static const char *const forms[] = {"-otext", "-ocsv", "-osvg"};
	char row[200];

	begin(&(struct record_facts){.pid = 7});
	for (uint32_t i = 1; i <= KINDS; i++)
		alloc(kind_of(i, i), 1);
	for (uint32_t i = 0; i < MARKS; i++) {
		recorder_time(recorder, UINT64_MAX / MARKS * i);
		recorder_mark(recorder, "again");
	}
	recorder_time(recorder, UINT64_MAX);
	alloc(kind_of((uint64_t)1 << 62, 0x100), 1);
	end();
	snprintf(row, sizeof(row), "%" PRIu64 ",%" PRIu64 ",%u,", UINT64_MAX,
		((uint64_t)1 << 62) + (uint64_t)KINDS * (KINDS + 1) / 2, KINDS + 1);
	assert_non_null(strstr(chart_of("--over-time", "-ocsv"), row));
	for (size_t i = 0; i < 3; i++) {
		const char *text = chart_of("--over-time", forms[i]);

		assert_true(times(text, "\n") < 3500);
		assert_true(i == 1 || strlen(text) < 400000);
		assert_true(times(chart_of("--histogram", forms[i]), "\n") < 1000);
	}
	/* A window may contain a single moment, even the last. */
	assert_non_null(chart_of("--over-time", "--from", "end"));
	assert_non_null(chart_of("--over-time", "--to", "start"));
	assert_non_null(chart_of("--over-time", "-osvg", "--from", "peak"));
}

static void assert_has(const struct result *result, const char *words)
{
	if (!strstr(result->text, words))
		fail_msg("'%s' is not in:\n%s", words, result->text);
}

/* Block i is allocated at i ms by its own thread. Every block except the first is freed, block i at
 * 1000 + i ms or later. The odd blocks are freed in order, then the even blocks in reverse
 * order. */
TEST(lives_are_known_whatever_goes_first)
{
	enum { COUNT = 301, LAST = COUNT - 1 };
	uint64_t now = 0;
	uint32_t kind;

	begin(&(struct record_facts){.pid = 7});
	kind = kind_of(8, 0x100);
	for (uint32_t i = 0; i < COUNT; i++) {
		recorder_time(recorder, i);
		recorder_thread_is(recorder, recorder_thread(recorder, 4 * (i + 1)));
		recorder_alloc(recorder, kind, 0);
	}
	for (uint64_t i = 1; i < COUNT; i += 2) {
		recorder_time(recorder, now = 1000 + 2 * i);
		recorder_free(recorder, kind, i);
	}
	for (uint64_t i = LAST; i; i -= 2) {
		recorder_time(recorder, ++now);
		recorder_free(recorder, kind, i);
	}
	end();
	/* Odd block i lives for 1000 + i ms. The k-th freed even block is number 302 - 2k and is
	 * freed at 1000 + 2 * 299 + k ms. */
	assert_int_equal(now, 1000 + 2 * 299 + 150);
	struct result *result = run_rows(1, "--class", "ai", RECORDING);
	assert_has(result,
		"//     size 2408 in 301 (172.197/s); impacting 8 in 1; peak 2408 at 0.300 s\n");
	/* There are 150 lives of 1000 + 1, 3, ... 299 ms, and 150 of 1296 + 3, 6, ... 450 ms. Half
	 * of all lives last up to 1299 ms. The report shows the middle of 1280 to 1311, one of the
	 * 32 parts of 1024 to 2047. */
	assert_has(result, "; freed 1.002 s to 1.748 s; lived 1001 to 1746 ms, on average 1336.25, "
			   "median 1295; "
			   "301 threads; heap 1E0000\n");
	result = run_rows(1, "--class", "ai", "--from", "200ms", RECORDING);
	assert_has(result,
		"//     size 800 in 100 (64.599/s); impacting 0 in 0; peak 2408 at 0.300 s\n");
	assert_has(result, "//     allocated 0.201 s to 0.300 s; freed 1.002 s to 1.748 s; lived "
			   "1201 to 1446 ms, ");
}

/* In a sample of one in 1000 bytes, a block of 10 bytes represents 100.5008 blocks. The first
 * kind's numbers are rounded down. */
TEST(sample_stands_for_what_was_not_recorded)
{
	uint32_t kind;

	begin(&(struct record_facts){.pid = 7, .sample_bytes = 1000});
	kind = kind_of(10, 0x100);
	alloc(kind, 100);
	recorder_time(recorder, 30);
	for (uint64_t i = 0; i < 25; i++)
		recorder_free(recorder, kind, i);
	recorder_time(recorder, 50);
	for (uint64_t i = 25; i < 50; i++)
		recorder_free(recorder, kind, i);
	end();
	struct result *result = run_rows(1, "--class", "ai", RECORDING);
	assert_int_equal(result->rows[0].new_count, 10050);
	assert_has(result, "//     size 100500 in 10050 (201000/s); impacting 50250 in 5025; peak "
			   "100500 at 0.000 s\n");
	assert_has(result, "; lived 30 to 50 ms, on average 40, median 30; ");
	assert_int_equal(run_rows(1, "--transient", RECORDING)->requested, 50250);
}

TEST(recording_without_event_is_nothing)
{
	begin(&(struct record_facts){0});
	end();
	struct result *result = run_rows(0, RECORDING);
	assert_int_equal(result->sum, 0);
	assert_int_equal(run_rows(0, RECORDING "@peak")->sum, 0);
	assert_int_equal(run_rows(0, RECORDING "@0%", RECORDING "@100%")->sum, 0);
	assert_non_null(strstr(chart_of("--over-time"), "// peak: 0 bytes at 0.000 s\n"));
	assert_non_null(strstr(chart_of("--over-time", "-osvg"), "</svg>"));
	assert_non_null(strstr(chart_of("--histogram"), "// nothing was allocated\n"));
	assert_non_null(strstr(chart_of("--histogram", "-osvg"), "nothing was allocated"));
}

TEST(recording_is_no_limit_to_other_files)
{
	begin(&(struct record_facts){.pid = 7});
	alloc(kind_of(10, 0x100), 1);
	end();
	write_bytes("new.txt", "hsnap recording", 15);
	refused("is not a heap dump", "new.txt");
	refused("applies to one recording", "--class", "aifo", RECORDING, RECORDING_AT_END);
	refused("--from is after --to", "--from", "end", "--to", "start", RECORDING);
}
