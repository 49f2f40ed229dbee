#include "tests/unit/data.h"
#include "tests/unit/test_scan_log.h"

/* ---------------------------------------------------------------- sums of several blocks */

TEST(sums_are_read)
{
	/* 14h blocks of 428h bytes each; 14h x 8 = A0h bytes of overhead. */
	expect_log("00005320 bytes in 0x14 allocations (@ 0x00000428) by: BackTrace00B53\n",
		"entry 20 5320 0 0 00B53\n");
	expect_log("5320 bytes in 0x14 allocations (@ 0x428 + 0x8) by: BackTraceB53  \n",
		"entry 20 5320 A0 0 B53\n");
	expect_log("5320 bytes in 14 allocations (@ 428 + 8) by: BackTraceB53\n",
		"entry 20 5320 A0 0 B53\n");
	/* 5 is not divisible by 2; the sum is correct. */
	expect_log("5 bytes in 0x2 allocations (@ 0x2 + 0x1) by: BackTraceB53\n",
		"entry 2 5 2 0 B53\n");
	expect_log(
		"0 bytes in 0x0 allocations (@ 0x0 + 0x7) by: BackTrace1\n", "entry 0 0 0 0 1\n");
	/* (2^32 - 1) (2^32 + 1) = 2^64 - 1 */
	expect_log("FFFFFFFFFFFFFFFF bytes in 0xFFFFFFFF allocations (@ 0x1 + 0x100000001) "
		   "by: BackTrace1\n",
		"entry 4294967295 FFFFFFFFFFFFFFFF FFFFFFFFFFFFFFFF 0 1\n");
}

TEST(bad_sums_are_no_entries)
{
	static const char *const lines[] = {
		/* 2^32 x 2^32 overflows */
		"1 bytes in 0x100000000 allocations (@ 0x1 + 0x100000000) by: BackTrace1\n",
		"1 bytes in 0x10000000000000000 allocations (@ 0x1) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x10000000000000000) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x1 + 0x10000000000000000) by: BackTrace1\n",
		"10000000000000000 bytes in 0x1 allocations (@ 0x1) by: BackTrace1\n",
		"1 bytes in 0x allocations (@ 0x1) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x1 +) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x1 + ) by: BackTrace1\n",
		"1 bytes in 0x1 allocations (@ 0x1) by: BackTrace\n",
		"1 bytes in 0x1 allocations (@ 0x1)\n",
		"1 bytes in words\n",
	};

	for (size_t i = 0; i < COUNT(lines); i++) {
		char text[200];

		snprintf(text, sizeof(text), ONE "%s" ONE, lines[i]);
		expect_log(text, ONE_LOG "\n" BAD "2 bad entry\n" ONE_LOG "\n");
	}
}

TEST(sums_count_for_end_mark)
{
	expect_log(OURS "5320 bytes in 0x14 allocations (@ 0x428 + 0x8) by: BackTraceB53\n"
			"\t401000\n\tAlias\n\t402000\n" ONE
			"// hsnap: end blocks=21 requested=21281 overhead=162\n",
		"note dump 1\nentry 20 5320 A0 0 B53 401000 402000 @1\n" ONE_LOG "\nnote end 3\n");
}

#define SUM "4 bytes in 0x2 allocations (@ 0x2) by: BackTrace5\n"
#define SUM_LOG "entry 2 4 0 0 5"
#define OTHER_SUM "4 bytes in 0x2 allocations (@ 0x2) by: BackTrace6\n"
#define OTHER_LOG "entry 2 4 0 0 6"

TEST(frames_of_sums_may_be_names)
{
	expect_log(SUM "a!b+0x00000012\n\tc!operator new+0x1 \nd+0x3\n\te!f+12\n\t\ndb!x+0x1\n" ONE,
		SUM_LOG " a!b+0x00000012 c!operator new+0x1 d+0x3 e!f+12 db!x+0x1\n" ONE_LOG "\n");
	/* both line ends are accepted, as in these lines */
	expect_log(
		SUM "a!b+0x1\r\n" OTHER_SUM "a!b+0x2", SUM_LOG " a!b+0x1\n" OTHER_LOG " a!b+0x2\n");
	expect_log(SUM OTHER_SUM "1 bytes + 2 at 3 by BackTrace!+0x4\n",
		SUM_LOG "\n" OTHER_LOG "\nentry 1 1 2 3 !+0x4\n");
}

/* Counts lines that were not read and look like data; keeps the first line's place and text. */
#define UNREAD(line, text) BAD line " 1 line that looks like data; the first: \"" text "\"\n"
#define UNREAD_2(line, text) BAD line " 2 lines that look like data; the first: \"" text "\"\n"

TEST(names_end_at_first_other_line)
{
	expect_log(SUM "a!b+0x1\n\na!b+0x2\n", SUM_LOG " a!b+0x1\n" UNREAD("4", "a!b+0x2"));
	expect_log(SUM "a!b+0x1\n*- Heap 10 Hogs\na!b+0x2\n",
		SUM_LOG " a!b+0x1\nheap 10\n" UNREAD("4", "a!b+0x2"));
	expect_log(
		SUM "a!b+0x1\n//a!b+0x2\na!b+0x2\n", SUM_LOG " a!b+0x1\n" UNREAD("4", "a!b+0x2"));
	expect_log(SUM "a!b+0x1\nwords\na!b+0x2\n", SUM_LOG " a!b+0x1\n" UNREAD("4", "a!b+0x2"));
	expect_log(SUM "!b+0x1\na!b+0x2\n", SUM_LOG "\n" UNREAD_2("2", "!b+0x1"));
	expect_log(SUM "a!+0x1\n", SUM_LOG "\n" UNREAD("2", "a!+0x1"));
	expect_log(SUM "a!b\n", SUM_LOG "\n" UNREAD("2", "a!b"));
	expect_log(SUM "a!b+0x\n", SUM_LOG "\n" UNREAD("2", "a!b+0x"));
	expect_log(SUM "a!b+0x1 x\n", SUM_LOG "\n" UNREAD("2", "a!b+0x1 x"));
	expect_log(SUM "a+12\n", SUM_LOG "\n" UNREAD("2", "a+12"));
	expect_log(SUM "+0x12\n", SUM_LOG "\n" UNREAD("2", "+0x12"));
	expect_log(SUM "words\na b c\n", SUM_LOG "\n");
}

TEST(names_are_for_sums_and_not_beside_addresses)
{
	expect_log(ONE "a!b+0x1\n", ONE_LOG "\n" UNREAD("2", "a!b+0x1"));
	expect_log(ONE "\ta!b+0x1\n", BAD "2 bad stack line\n" ONE_LOG "\n");
	expect_log(SUM "\t401000\na!b+0x1\n", SUM_LOG " 401000\n" UNREAD("3", "a!b+0x1"));
	expect_log(SUM "\t401000\n\ta!b+0x1\n", BAD "3 bad stack line\n" SUM_LOG "\n");
	expect_log(SUM "a!b+0x1\n\t401000\na!b+0x2\n" ONE,
		BAD "3 bad stack line\n" SUM_LOG "\n" ONE_LOG "\n");
}

TEST(names_have_limits)
{
	char *text = many(SUM, "a!b+0x1\n", DUMP_FRAMES_MAX, ONE);
	char *wanted = many(SUM_LOG, " a!b+0x1", DUMP_FRAMES_MAX, "\n" ONE_LOG "\n");

	expect_log(text, wanted);
	free(text);
	free(wanted);
	text = many(SUM, "a!b+0x1\n", DUMP_FRAMES_MAX + 3, ONE);
	expect_log(text, BAD "1026 a stack is too deep\n" SUM_LOG "\n" ONE_LOG "\n");
	free(text);
	text = many(SUM "a!b+0x1\na!", "b", 4096, "+0x1\na!c+0x1\n" ONE);
	expect_log(text, BAD "3 the name of a function is too long\n" SUM_LOG "\n" ONE_LOG "\n");
	free(text);
}

static int count_of(const char *text, char what)
{
	int count = 0;

	for (; *text; text++)
		count += *text == what;
	return count;
}

/* Microsoft's own example, without the comparison that precedes it. */
TEST(published_sample_is_read)
{
	static char bytes[4000];
	FILE *in = fopen(data_file("umdh/legacy_msdocs_dhcmp_and_hogs_fragment.txt"), "rb");
	struct scan_log log;
	const char *hogs;

	assert_non_null(in);
	bytes[fread(bytes, 1, sizeof(bytes) - 1, in)] = '\0';
	(void)fclose(in);
	hogs = strstr(bytes, "00005320");
	assert_non_null(hogs);
	assert_int_equal(scan(&log, hogs, NULL), 0);
	assert_int_equal(log.entries, 1);
	assert_int_equal(log.skips, 0);
	assert_true(log.sums.block_count == 0x14 && log.sums.requested_bytes == 0x14 * 0x428);
	assert_int_equal(count_of(log.text.data, '!'), count_of(hogs, '!'));
	assert_non_null(strstr(log.text.data, " MyApp!operator new+0x0000000E "));
	assert_non_null(strstr(log.text.data, " KERNEL32!BaseProcessStart+0x0000003D\n"));
	buf_release(&log.text);
}

TEST(names_may_lie_in_several_parts)
{
	static const char text[] = SUM "a!b+0x1\na!b+0x2\na!b+0x3\n" ONE;
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);

	assert_int_equal(scan_in_parts(text, sizeof(text) - 1, 1, &sink, NULL), 0);
	assert_string_equal(log.text.data, SUM_LOG " a!b+0x1 a!b+0x2 a!b+0x3\n" ONE_LOG "\n");
	buf_release(&log.text);
}

/* ---------------------------------------------------------------- parts read by the sink */

#define PLAIN "5 bytes + 6 at 7 by BackTrace8\n"

/* Reads lines that are equal to PLAIN, unless they have a stack, and empty lines. */
static const char *take_plain(
	void *ctx, const char *at, const char *end, struct dump_progress *progress)
{
	size_t len = strlen(PLAIN);
	struct scan_log *log = ctx;

	for (size_t i = 0; i < 64; i++)
		assert_int_equal(end[i], 0);
	for (;;) {
		bool is_empty = at < end && *at == '\n';

		if (!is_empty && ((size_t)(end - at) <= len || memcmp(at, PLAIN, len) != 0 ||
					 at[len] == '\t'))
			return at;
		progress->line_count++;
		progress->seen.block_count += !is_empty;
		progress->seen.requested_bytes += is_empty ? 0 : 5;
		progress->seen.overhead_bytes += is_empty ? 0 : 6;
		buf_add_text(&log->text, is_empty ? "empty\n" : "plain\n");
		at += is_empty ? 1 : len;
	}
}

static void expect_with_plain(const char *text, int rc, const char *wanted)
{
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);
	struct err err = {0};

	sink.plain = take_plain;
	assert_int_equal(scan_in_parts(text, strlen(text), strlen(text), &sink, &err), rc);
	assert_string_equal(log.text.data, wanted);
	buf_release(&log.text);
}

TEST(sink_may_read_plain_entries_itself)
{
	expect_with_plain(
		ONE "\n" PLAIN PLAIN ONE "\t401000\n\n" PLAIN "\t402000\n" PLAIN "words\n", 0,
		ONE_LOG "\nempty\nplain\nplain\n" ONE_LOG
			" 401000\nempty\nentry 1 5 6 7 8 402000\nplain\n");
	/* The end mark counts the lines' sums, and places count the lines. */
	expect_with_plain(OURS PLAIN PLAIN "// hsnap: end blocks=2 requested=10 overhead=12\n", 0,
		"note dump 1\nplain\nplain\nnote end 3\n");
	expect_with_plain(
		ONE PLAIN "\n5 bytes + x\n", 0, ONE_LOG "\nplain\nempty\n" BAD "4 bad entry\n");
}

TEST(sink_is_asked_only_where_entries_may_come)
{
	/* The other reader is called only when the text is known to be a dump. */
	expect_with_plain("\n" PLAIN PLAIN "x\n", 0, "entry 1 5 6 7 8\nplain\n");
	expect_with_plain(ONE SUM PLAIN PLAIN SUM "a!b+0x1\n" PLAIN "a!b+0x1\n", 0,
		ONE_LOG "\n" SUM_LOG "\nplain\nplain\n" SUM_LOG
			" a!b+0x1\nplain\n" UNREAD("8", "a!b+0x1"));
	/* sums in files of other programs are checked for repetitions */
	expect_with_plain(SUM PLAIN OTHER_SUM PLAIN, 0,
		SUM_LOG "\nentry 1 5 6 7 8\n" OTHER_LOG "\nentry 1 5 6 7 8\n");
	expect_with_plain(SUM PLAIN SUM, -ERR_SECOND, SUM_LOG "\nentry 1 5 6 7 8\n");
	expect_with_plain("// Loaded modules:\n" PLAIN "// Process modules enumerated.\n" PLAIN
			  "x\n",
		0, "entry 1 5 6 7 8\nplain\n");
	expect_with_plain(OURS "// hsnap: end blocks=0 requested=0 overhead=0\n\n" PLAIN "\n",
		-ERR_BAD_LINE, "note dump 1\nnote end 3\n");
}

/* Feeds text, then skips a part that another reader has read, then feeds more text. */
static int scan_around(struct scan_log *log, const char *before, const struct dump_progress *passed,
	const char *after, struct err *err)
{
	struct dump_sink sink = log_sink(log);
	struct dump_scanner *scanner = dump_scanner_new("made", &sink, err);
	int rc;

	assert_non_null(scanner);
	rc = feed(scanner, before, strlen(before), false);
	if (!rc)
		rc = dump_scanner_pass(scanner, passed);
	if (!rc)
		rc = feed(scanner, after, strlen(after), true);
	if (!rc)
		rc = dump_scanner_end(scanner);
	dump_scanner_free(scanner);
	return rc;
}

static const struct dump_progress passed = {1000, {3, 30, 300}}, empty_lines = {5, {0, 0, 0}};

TEST(parts_that_others_read_count)
{
	struct err err = {0};
	struct scan_log log;

	assert_int_equal(scan_around(&log, OURS ONE "\t401000\n", &passed,
				 "// hsnap: end blocks=4 requested=31 overhead=302\nwords\n", &err),
		0);
	assert_string_equal(log.text.data, "note dump 1\n" ONE_LOG " 401000\nnote end 3\n");
	buf_release(&log.text);
	/* The third line of this text is number 1003. */
	assert_int_equal(scan_around(&log, OURS "\n", &passed, "5 bytes + x\n", &err), -ERR_CUT);
	assert_string_equal(log.first_skip.place, "made:1003");
	buf_release(&log.text);
	/* the skipped part shows that this is a dump */
	assert_int_equal(scan_around(&log, "\n", &passed, "\n", &err), 0);
	/* The skipped part ends a stack of names. */
	assert_int_equal(scan_around(&log, SUM "a!b+0x1\n", &passed, "a!b+0x2\n", &err), 0);
	assert_string_equal(log.text.data, SUM_LOG " a!b+0x1\n" UNREAD("1003", "a!b+0x2"));
	buf_release(&log.text);
}

TEST(parts_behind_end_mark_may_have_no_entries)
{
	static const char before[] = OURS "// hsnap: end blocks=0 requested=0 overhead=0\n";
	struct err err = {0};
	struct scan_log log;

	assert_int_equal(scan_around(&log, before, &empty_lines, "", &err), 0);
	buf_release(&log.text);
	assert_int_equal(scan_around(&log, before, &passed, "", &err), -ERR_BAD_LINE);
	assert_string_equal(err.detail, "an entry after the end mark");
	buf_release(&log.text);
}
