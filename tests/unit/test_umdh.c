#include "tests/unit/test_dump.h"

static const char umdh_log[] =
	"// \n"
	"// UMDH: version 6.1.7650.0: Logtime 2010-05-04 10:11 - Machine=BOX - PID=4711\n"
	"// \n"
	"\n"
	"// Debug privilege has been enabled.\n"
	"// Connecting to process 4711 ...\n"
	"// Loaded modules: \n"
	"//     Base Size Module\n"
	"//              400000    24000 C:\\Program Files\\app.exe\n"
	"//        7FFE82340000   1F8000 C:\\Windows\\SYSTEM32\\ntdll.dll\n"
	"//\n"
	"// Process modules enumerated.\n"
	"// Debug library initialized ...\n"
	"DBGHELP: app - private symbols & lines \n"
	"         C:\\Program Files\\app.pdb\n"
	"\n"
	"*- - - - - - - - - - Start of data for heap @ 650000 - - - - - - - - - -\n"
	"\n"
	"REQUESTED bytes + OVERHEAD at ADDRESS by BackTraceID\n"
	"     STACK if not already dumped.\n"
	"\n"
	"*- - - - - - - - - - Heap 650000 Hogs - - - - - - - - - -\n"
	"\n"
	"\n"
	"64 bytes + 1C at 6512D0 by BackTrace18D0A0D0\n"
	"\t7FFE82352933\n"
	"\t401234\n"
	"\t\n"
	"\t401490\n"
	"\n"
	"10 bytes + 20 at 651400 by BackTrace18D0A0D0\n"
	"20 bytes + 10 at 651500 by BackTraceF076263\n"
	"\n"
	"30 bytes + 10 at 651600 by BackTrace94C4\n"
	"\t7FFE82352933\n"
	"\tAlias\n"
	"\t7FFE82352933\n"
	"\t401234\n"
	"\tAlias\n"
	"\t401235\n"
	"\n"
	"\n"
	"*- - - - - - - - - - End of data for heap @ 650000 - - - - - - - - - -\n"
	"\n"
	"*- - - - - - - - - - Start of data for heap @ 10000 - - - - - - - - - -\n"
	"*- - - - - - - - - - Heap 10000 Hogs - - - - - - - - - -\n"
	"00000001 bytes + 00000000 at 00010100 by BackTrace18D0A0D0\n"
	"*- - - - - - - - - - End of data for heap @ 10000 - - - - - - - - - -\n"
	"// Memory={\"WorkingSet\":123}\n";

#define STACK " 7FFE82352933 401234 401490\n"
static const char umdh_told[] =
	/* the banner's time is local time */
	"note umdh time=[2010-05-04T10:11:00Z] id=[4711] host=[BOX]\n"
	"module 400000 24000 C:\\Program Files\\app.exe\n"
	"module 7FFE82340000 1F8000 C:\\Windows\\SYSTEM32\\ntdll.dll\n"
	"heap 650000\n"
	"heap 650000\n"
	"entry 1 64 1C 6512D0 18D0A0D0" STACK "entry 1 10 20 651400 18D0A0D0\n"
	"entry 1 20 10 651500 F076263\n"
	"entry 1 30 10 651600 94C4 7FFE82352933 7FFE82352933 401234 401235 @1 @3\n"
	"heap 10000\n"
	"heap 10000\n"
	"entry 1 1 0 10100 18D0A0D0\n";

/* Returns the log with other line ends; the caller frees the text. */
static char *with_line_ends(const char *log, const char *eol)
{
	struct buf text;

	buf_init(&text);
	for (; *log; log++)
		*log == '\n' ? buf_add_text(&text, eol) : buf_add(&text, log, 1);
	return text.data;
}

TEST(reads_log_of_umdh)
{
	static const size_t steps[] = {1, 2, 3, 7, 100, SIZE_MAX};
	static const char *const ends[] = {"\n", "\r\n"};

	for (size_t i = 0; i < COUNT(ends); i++) {
		char *log = with_line_ends(umdh_log, ends[i]);

		for (size_t k = 0; k < COUNT(steps); k++) {
			struct scan_log told;
			struct err err = {0};

			assert_int_equal(load(&told, log, strlen(log), steps[k], &err), 0);
			assert_string_equal(told.text.data, umdh_told);
			buf_release(&told.text);
		}
		free(log);
	}
}

static int blocks_of(const char *dump)
{
	struct scan_log log;
	struct err err = {0};
	int rc = load(&log, dump, strlen(dump), SIZE_MAX, &err);

	if (rc)
		fail_msg("%d %s %s", rc, err.place, err.detail);
	buf_release(&log.text);
	return log.entries;
}

TEST(markers_may_be_missing)
{
	/* The log as HeapProfiler passes it to umdh: no Start, no End, and no newline at the
	 * end. */
	assert_int_equal(blocks_of("// Loaded modules:\n//     Base Size Module\n"
				   "//   400000  1000 a.exe\n//\n// Process modules enumerated.\n"
				   "*- - - Heap 0 Hogs - - -\n"
				   "00000001 bytes + 00000000 at 00000001 by BackTrace1\n\t401000\n"
				   "00000001 bytes + 00000000 at 00000002 by BackTrace2\n\t401000"),
		2);
	/* Only entries, even a single one. */
	assert_int_equal(blocks_of("1 bytes + 2 at 3 by BackTrace4"), 1);
	assert_int_equal(blocks_of("1 bytes + 2 at 3 by BackTrace4  \n\t5  \n\n\n\n"), 1);
	assert_int_equal(blocks_of("chatter\n\nDBGHELP: x\n1 bytes + 2 at 3 by BackTrace4\n"), 1);
	/* Lower case, arbitrary ids, and a stack in every entry. */
	assert_int_equal(blocks_of("a bytes + b at c by BackTrace-x y!\n\td\n"
				   "a bytes + b at d by BackTrace-x y!\n\td\n"),
		2);
	/* Only modules: the log is a dump without blocks. */
	assert_int_equal(blocks_of("// Loaded modules:\n// Process modules enumerated.\n"), 0);
	/* A module line at another place has no meaning. */
	assert_int_equal(blocks_of("// Loaded modules:\n// Process modules enumerated.\n"
				   "//   ffffffffffffffff ffffffffffffffff x.dll\n"),
		0);
}

TEST(what_is_no_dump_is_refused)
{
	static const struct {
		int rc;
		const char *text;
	} cases[] = {
		{-ERR_EMPTY, ""},
		{-ERR_NOT_DUMP, "\n"},
		{-ERR_NOT_DUMP, "\r\n\r\n"},
		{-ERR_NOT_DUMP, "words\nand words"},
		{-ERR_NOT_DUMP, "// a comment\n"},
		{-ERR_NOT_DUMP, "\t401000\n"},
		{-ERR_NOT_DUMP, "+ 10 ( 20 - 10) 2 allocs\tBackTrace1\n+ 1 ( 2 - "
				"1)\tBackTrace1\tallocations\n"},
		{-ERR_NOT_DUMP, "10 bytes + \n"},
		{-ERR_BAD_LINE, "10 bytes + 10 at xyz by BackTrace1\n"},
		{-ERR_BAD_LINE, "10 bytes + 1 at 10000000000000000 by BackTrace1\n"},
		{-ERR_BAD_LINE, "10 bytes + 1 at 1 by BackTrace1\n\t10000000000000000\n"},
		{-ERR_BAD_LINE, "10 bytes + 1 at 1 by BackTrace1\n\t1 2\n"},
		{-ERR_BAD_LINE, "10 bytes + 1 at 1 by BackTrace1\n\tmain\n"},
		{-ERR_BAD_LINE,
			"*- - Start of data for heap @ xyz - -\n1 bytes + 2 at 3 by BackTrace4\n"},
		{-ERR_BAD_LINE, "// Loaded modules:\n//  FFFFFFFFFFFFF000 2000 a.exe\n"},
		{-ERR_BAD_LINE, "// hsnap: dump\n"},
		{-ERR_BAD_LINE, "// hsnap: dump format=0\n"},
		{-ERR_BAD_LINE, "// hsnap: dump format=one\n"},
		{-ERR_BAD_LINE, "// hsnap: dump format=1 time=yesterday\n"},
		{-ERR_VERSION, "// hsnap: dump format=2\nwhatever\n"},
		{-ERR_VERSION, "// hsnap: dump format=18446744073709551615\n"},
		{-ERR_CUT, "// hsnap: dump format=1\n"},
		{-ERR_CUT, "\xef\xbb\xbf// hsnap: dump format=1\n"},
		{-ERR_BAD_LINE, "// hsnap: dump format=1\n// hsnap: process id=4294967296\n"},
		{-ERR_CUT, "// Loaded modules:\n//  400000 8000 C:\\win"},
		{-ERR_CUT, "// hsnap: dump format=1\n1 bytes + 2 at 3 by BackTrace4\n"},
		{-ERR_CUT, "*- - Start of data for heap @ 1 - -\n1 bytes + 2 at 3 by BackTrace4\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int rc = verdict(cases[i].text);

		if (rc != cases[i].rc)
			fail_msg("%d, not %d: %s", rc, cases[i].rc, cases[i].text);
	}
}

#define ENTRIES "10 bytes + 8 at 100 by BackTrace1\n\t401000\n20 bytes + 8 at 200 by BackTrace1\n"
#define HEAPNOTE                                                                                   \
	"// hsnap: heap addr=1 stackless-blocks=3 stackless-requested=100 stackless-overhead=9\n"

TEST(end_mark_is_checked)
{
#define END "// hsnap: end blocks=2 requested=48 overhead=16"
	static const struct {
		int rc;
		const char *text;
	} cases[] = {
		{0, OURS ENTRIES END "\n"},
		{0, OURS HEAPNOTE ENTRIES "// hsnap: end blocks=5 requested=148 overhead=25\n"},
		{-ERR_BAD_LINE, OURS ENTRIES "// hsnap: end blocks=3 requested=48 overhead=16\n"},
		{-ERR_BAD_LINE, OURS ENTRIES "// hsnap: end blocks=2 requested=49 overhead=16\n"},
		{-ERR_BAD_LINE, OURS ENTRIES "// hsnap: end blocks=2 requested=48 overhead=0\n"},
		{-ERR_BAD_LINE, OURS ENTRIES "// hsnap: end blocks=2 requested=48\n"},
		{-ERR_BAD_LINE, OURS "// hsnap: end\n"},
		{0, OURS "// hsnap: end blocks=0 requested=0 overhead=0\n"},
		{-ERR_BAD_LINE, OURS HEAPNOTE ENTRIES END "\n"},
		/* Text after the end mark is ignored, but blocks are an error. */
		{0, OURS ENTRIES END "\n// Memory={}\nwords\n"},
		{-ERR_BAD_LINE, OURS ENTRIES END "\n" ENTRIES},
		/* notes of later versions are ignored */
		{0, OURS "// hsnap: future what=\"is this\" colour=blue\n" ENTRIES END
			 " crc=FFFF\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (verdict(cases[i].text) != cases[i].rc)
			fail_msg("not %d: %s", cases[i].rc, cases[i].text);
	}
}

TEST(long_lines_have_limit)
{
	static const size_t lens[] = {DUMP_LINE_MAX - 40, DUMP_LINE_MAX - 2, DUMP_LINE_MAX - 1,
		DUMP_LINE_MAX, DUMP_LINE_MAX + 1, 2 * DUMP_LINE_MAX, 1 << 20, 5000000};

	for (size_t i = 0; i < COUNT(lens); i++) {
		char *comment = many(ONE "//", "x", lens[i], "\n" ONE);
		char *last = many(ONE "//", "x", lens[i], "");
		char *other = many(ONE, "x", lens[i], "\n");
		char *first = many("", "x", lens[i], "");
		bool too_long = lens[i] > DUMP_LINE_MAX;

		assert_int_equal(blocks_of(comment), 2);
		assert_int_equal(blocks_of(last), 1);
		assert_int_equal(verdict(other), too_long ? -ERR_BAD_LINE : 0);
		assert_int_equal(verdict(first), -ERR_NOT_DUMP);
		free(comment);
		free(last);
		free(other);
		free(first);
	}
}

TEST(stacks_have_limit)
{
	for (unsigned count = DUMP_FRAMES_MAX; count <= DUMP_FRAMES_MAX + 1; count++) {
		for (int alias = 0; alias < 2; alias++) {
			char *dump = many(ONE, alias ? "\tAlias\n\t1\n" : "\t1\n", count, "");

			assert_int_equal(
				verdict(dump), count > DUMP_FRAMES_MAX ? -ERR_BAD_LINE : 0);
			free(dump);
		}
	}
}

TEST(bytes_that_are_no_text)
{
	static const char nul[] = "1 bytes + 2 at 3 by BackTrace4\n\t40\0001\n";
	static const char nul_first[] = "\0\0\0\0MZ";
	static const char utf16[] = "\xff\xfe/\0/\0 \0\r\0\n\0";

	assert_int_equal(verdict_of(nul, sizeof(nul) - 1), -ERR_BAD_LINE);
	assert_int_equal(verdict_of(nul_first, sizeof(nul_first) - 1), -ERR_NOT_DUMP);
	assert_int_equal(verdict_of(utf16, sizeof(utf16) - 1), -ERR_NOT_DUMP);
}

TEST(read_error_is_passed_on)
{
	struct memory memory = {umdh_log, sizeof(umdh_log) - 1, 0, 100, true};
	struct dump_source source = {.read = read_memory, .ctx = &memory, .name = "made"};
	struct dump_sink sink = {0};
	struct err err = {0};

	assert_int_equal(dump_scan(&source, &sink, &err), -ERR_READ);
	assert_string_equal(err.detail, "the disk says so");
}

TEST(byte_order_mark_hides_nothing)
{
	expect_log("\xef\xbb\xbf// Loaded modules:\n//  400000 8000 C:\\a.exe\n"
		   "// Process modules enumerated.\n",
		"module 400000 8000 C:\\a.exe\n");
}

TEST(line_without_end_is_refused_at_once)
{
	struct dump_sink sink = {0};
	struct err err;

	assert_int_equal(dump_scan_file("/dev/zero", &sink, &err), -ERR_NOT_DUMP);
}

static int stop(void *ctx, const struct dump_entry *entry)
{
	(void)entry;
	++*(int *)ctx;
	return -ERR_INTERRUPTED;
}

TEST(sink_can_stop_it)
{
	int calls = 0;
	struct memory memory = {umdh_log, sizeof(umdh_log) - 1, 0, 100, false};
	struct dump_source source = {.read = read_memory, .ctx = &memory, .name = "made"};
	struct dump_sink sink = {.ctx = &calls, .entry = stop};

	assert_int_equal(dump_scan(&source, &sink, NULL), -ERR_INTERRUPTED);
	assert_int_equal(calls, 1);
}
