#include "tests/unit/scratch.h"

#include <zlib.h>

#include "core/dump/dump.h"
#include "core/dump/dump_head.h"

#define OURS "// hsnap: dump format=1 tool=0.1.0 time=2026-11-20T10:25:48.123Z\r\n"
#define PROCESS                                                                                    \
	"// hsnap: process id=208 start=2026-11-20T10:00:00.009Z bits=64 image=\"C:\\\\a "         \
	"b.exe\"\r\n"
#define BANNER "// UMDH: version 6.1.7650.0: Logtime 2010-05-04 10:11 - Machine=BOX - PID=4711\r\n"
#define MODULES                                                                                    \
	"// Loaded modules: \r\n//     Base Size Module\r\n//       400000     1000 C:\\a.exe\r\n"

/* These times are from "date -u -d TIME +%s". */
#define TIME_MS INT64_C(1795170348123)
#define START_MS INT64_C(1795168800009)
#define LOGTIME_MS INT64_C(1272967860000)

static char path[340];

static void check_head(bool is_ours, uint32_t pid, int64_t time_ms, int64_t start_ms)
{
	struct dump_head head = {.pid = 77};
	struct err err;

	assert_int_equal(dump_head_read(path, &head, &err), 0);
	assert_int_equal(head.is_ours, is_ours);
	assert_int_equal(head.pid, pid);
	assert_int_equal(head.time_ms, time_ms);
	assert_int_equal(head.start_ms, start_ms);
	assert_int_equal(dump_head_read(path, &head, NULL), 0);
}

static void check_text(
	const char *text, bool is_ours, uint32_t pid, int64_t time_ms, int64_t start_ms)
{
	file_write(path, text, strlen(text));
	check_head(is_ours, pid, time_ms, start_ms);
}

static void check_error(const void *text, size_t len, enum err_code code)
{
	struct dump_head head = {.pid = 77};
	struct err err = {0};

	file_write(path, text, len);
	assert_int_equal(dump_head_read(path, &head, &err), -(int)code);
	assert_int_equal(err.code, code);
	assert_memory_equal(err.place, path, strlen(path));
	assert_int_equal(head.pid, 77);
	assert_int_equal(dump_head_read(path, &head, NULL), -(int)code);
}

TEST(notes_of_hsnap_have_all_facts)
{
	check_text(OURS PROCESS, true, 208, TIME_MS, START_MS);
	check_text(OURS PROCESS MODULES "what comes \1 behind is anything", true, 208, TIME_MS,
		START_MS);
	check_text("// a comment\n\n" PROCESS "// hsnap: warning text=\"x\"\n" OURS, true, 208,
		TIME_MS, START_MS);
	check_text("// hsnap: dump format=1\n// hsnap: process id=1\n", true, 1, 0, 0);
	check_text("\xef\xbb\xbf" OURS PROCESS, true, 208, TIME_MS, START_MS);
}

TEST(head_ends_where_modules_and_heaps_begin)
{
	check_text(OURS MODULES PROCESS, true, 0, TIME_MS, 0);
	check_text(OURS "*- - - Start of data for heap @ 10 - - -\n" PROCESS, true, 0, TIME_MS, 0);
	check_text("10 bytes + 8 at 1000 by BackTrace1\n\t401000\n\n" OURS PROCESS, false, 0, 0, 0);
}

static void check_banner(const char *banner, uint32_t pid, int64_t time_ms)
{
	struct dump_head head = {0};
	struct err err;

	file_write(path, banner, strlen(banner));
	assert_int_equal(dump_head_read(path, &head, &err), 0);
	assert_int_equal(head.banner_pid, pid);
	assert_int_equal(head.banner_time_ms, time_ms);
	assert_false(head.is_ours || head.pid || head.time_ms);
}

TEST(banners_of_umdh_give_pid_and_time)
{
	check_banner("// \r\n" BANNER "// \r\n" MODULES, 4711, LOGTIME_MS);
	check_banner("// UMDH: version 6: Logtime 2010-05-04x10:11 - PID=0x10\n" MODULES, 0, 0);
	check_banner("// UMDH: version 6: Logtime 2010-05-04 10:1\n" MODULES, 0, 0);
	check_banner("// UMDH: version 6: Logtime 2010-13-04 10:11 - PID=1\n" MODULES, 0, 0);
	check_banner(
		"// UMDH: version 6: Logtime 2010-05-04 10:11 - PID=4294967296\n" MODULES, 0, 0);
	check_banner(MODULES, 0, 0);
}

TEST(what_has_no_sound_head_is_error)
{
	static const char binary[] = "MDMP\x93\xa7\0\0\n" OURS PROCESS;
	static const char comparison[] =
		"+     100 (    200 -    100)      2 allocs\tBackTrace12\n" MODULES;

#define CHECK(text, code) check_error(text, strlen(text), code)
	CHECK("", ERR_EMPTY);
	CHECK("some words\nand more\n", ERR_NOT_DUMP);
	CHECK("// only comments\n", ERR_NOT_DUMP);
	CHECK(comparison, ERR_NOT_DUMP);
	check_error(binary, sizeof(binary) - 1, ERR_NOT_DUMP);
	CHECK("// hsnap: dump format=999999\n" PROCESS, ERR_VERSION);
	CHECK("// hsnap: dump format=1 time=yesterday\n" PROCESS, ERR_BAD_LINE);
	CHECK(OURS "// hsnap: process id=-1\n", ERR_BAD_LINE);
	CHECK(OURS "// hsnap: process id=4294967296\n", ERR_BAD_LINE);
	CHECK(OURS "// hsnap: process id=1 start=2026-11-20\n", ERR_BAD_LINE);
	CHECK("// hsnap: dump format=1 time=2026-11-20T10:25", ERR_CUT);
	CHECK(OURS, ERR_CUT);
	CHECK(OURS "// hsnap: process id=2", ERR_CUT);
#undef CHECK
}

/* Inserts len bytes of comments before the notes. */
static void write_behind(size_t len)
{
	size_t size = len + strlen(OURS PROCESS MODULES);
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, 'x', len);
	for (size_t i = 0; i + 100 < len; i += 100)
		text[i] = '\n', text[i + 1] = text[i + 2] = '/';
	text[len - 1] = '\n';
	memcpy(text + len, OURS PROCESS MODULES, size - len + 1);
	file_write(path, text, size);
	free(text);
}

TEST(only_beginning_is_read)
{
	struct dump_head head;
	struct err err;

	write_behind(DUMP_HEAD_BYTES - strlen(OURS PROCESS));
	check_head(true, 208, TIME_MS, START_MS);
	write_behind(DUMP_HEAD_BYTES - strlen(OURS));
	check_head(true, 0, TIME_MS, 0);
	write_behind(DUMP_HEAD_BYTES - strlen(OURS) + 1);
	assert_int_equal(dump_head_read(path, &head, &err), -ERR_NOT_DUMP);
	write_behind(DUMP_HEAD_BYTES);
	assert_int_equal(dump_head_read(path, &head, &err), -ERR_NOT_DUMP);
}

TEST(one_line_without_end_is_no_dump)
{
	char *text = malloc(2 * DUMP_HEAD_BYTES);

	assert_non_null(text);
	memset(text, '/', 2 * DUMP_HEAD_BYTES);
	check_error(text, 2 * DUMP_HEAD_BYTES, ERR_NOT_DUMP);
	memset(text, '\t', 2 * DUMP_HEAD_BYTES);
	check_error(text, 2 * DUMP_HEAD_BYTES, ERR_NOT_DUMP);
	memset(text, 0, 2 * DUMP_HEAD_BYTES);
	check_error(text, 2 * DUMP_HEAD_BYTES, ERR_NOT_DUMP);
	free(text);
}

static size_t pack(const char *text, unsigned char *to, size_t size)
{
	z_stream stream = {.next_in = (unsigned char *)(uintptr_t)text,
		.avail_in = (uInt)strlen(text),
		.next_out = to,
		.avail_out = (uInt)size};

	assert_int_equal(deflateInit2(&stream, Z_NO_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
				 Z_DEFAULT_STRATEGY),
		Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&stream), Z_OK);
	return stream.total_out;
}

TEST(packed_heads_are_read_too)
{
	unsigned char packed[1000];
	size_t len = pack(OURS PROCESS MODULES, packed, sizeof(packed));

	file_write(path, packed, len);
	check_head(true, 208, TIME_MS, START_MS);
	file_write(path, packed, len - 20); /* without its end mark and the modules */
	check_head(true, 208, TIME_MS, START_MS);
	/* the header of gzip has 10 bytes, the header of a stored block has 5 */
	check_error(packed, 15 + strlen(OURS) + 10, ERR_CUT);
	memset(packed + 10, 0xff, 5);
	check_error(packed, len, ERR_READ);
}

TEST(what_is_no_file_is_not_waited_for)
{
	struct dump_head head;
	struct err err;

	assert_int_equal(remove(path), 0);
	assert_int_equal(dump_head_read(path, &head, &err), -ERR_OPEN);
	assert_int_equal(dump_head_read("build", &head, &err), -ERR_OPEN);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(dump_head_read(path, &head, &err), -ERR_NOT_FILE);
	assert_int_equal(remove(path), 0);
}

TEST(written_dumps_identify_themselves)
{
	struct snapshot snapshot;
	struct out out;

	snapshot_init(&snapshot);
	snapshot.pid = UINT32_MAX;
	snapshot.time_ms = TIME_MS;
	snapshot.start_ms = START_MS;
	snapshot_warn(&snapshot, "one");
	assert_int_equal(out_open(&out, path, NULL), 0);
	dump_write(&out, &snapshot);
	assert_int_equal(out_commit(&out, NULL), 0);
	snapshot_release(&snapshot);
	check_head(true, UINT32_MAX, TIME_MS, START_MS);
}

static int begin(void **state)
{
	int rc = scratch_begin(state);

	snprintf(path, sizeof(path), "%s/dump.txt", dir);
	return rc;
}

GROUP(begin, scratch_end)
