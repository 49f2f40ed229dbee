/* hsym copies every byte of a dump and places the new names before the end mark. The tests cover
 * compressed, damaged, cut and old dumps. */
#include "tests/unit/scratch.h"

#include <zlib.h>

#include "core/dump/dump.h"
#include "symbolize/hsym/hsym.h"
#include "tests/unit/test_scan_log.h"

#define MODULES                                                                                    \
	"// Loaded modules: \n//     Base Size Module\n"                                           \
	"//            400000     1000 C:\\none\\a.exe\n"                                          \
	"//\n// Process modules enumerated.\n"
#define STACK "\n10 bytes + 8 at 20000 by BackTrace1\n\t400010\n\t400020\n\t7\n\n"
#define DUMP "// hsnap: dump format=1\n" MODULES STACK
#define END "// hsnap: end blocks=1 requested=16 overhead=8\n"
#define NAME_10 "// hsnap: name addr=400010 function=\"f\" offset=1\n"
#define NAME_20 "// hsnap: name addr=400020 function=\"g\" offset=2 file=\"s.c\" line=3\n"
#define NAMES NAME_10 NAME_20
#define MINE "// hsnap: name later=1 function=mine addr=400010 offset=000A\n"
#define DAMAGE "\n10 bytes + 8 at 20040 by BackTrace2\n\t400020\n\twords\n5 bytes + x\n"
#define END_2 "// hsnap: end blocks=2 requested=32 overhead=16\n"

static const struct symbol_options no_cache = {.no_cache = true};
static char in_path[340], out_path[340];

/* Makes the folder in memory if possible: hsym syncs its output to disk, and the tests run hsym
 * thousands of times. */
static int make_dir(void **state)
{
	if (!access("/dev/shm", W_OK))
		setenv("TMPDIR", "/dev/shm", 0);
	if (scratch_begin(state))
		return -1;
	snprintf(in_path, sizeof(in_path), "%s/in", dir);
	snprintf(out_path, sizeof(out_path), "%s/out", dir);
	return 0;
}

/* Reads in_path into `work`; returns the reader's error. The file stays open in `input`. */
static int read_in(struct addnames *work, struct input *input, bool accept_cut)
{
	struct err err;

	assert_int_equal(input_open(input, in_path, &err), 0);
	assert_int_equal(addnames_init(work, &no_cache, &err), 0);
	return addnames_read(work, input, accept_cut, &err);
}

static void release(struct addnames *work, struct input *input)
{
	addnames_release(work);
	input_close(input);
}

/* Sets names for the first two addresses, as a backend would. */
static void name_by_hand(struct addnames *work)
{
	static const struct symbol f = {.function = "f", .offset_bytes = 1};
	static const struct symbol g = {
		.function = "g", .offset_bytes = 2, .file = "s.c", .line = 3};

	for (size_t i = 0; i < work->count; i++) {
		struct symbol_query *query = &work->queries[i];

		if (query->found.count)
			continue;
		if (query->addr == 0x400010)
			query->found = (struct symbols){&f, 1};
		if (query->addr == 0x400020)
			query->found = (struct symbols){&g, 1};
	}
}

static int add_names(bool accept_cut)
{
	struct addnames work;
	struct input input;
	struct out out;
	struct err err;
	int rc = read_in(&work, &input, accept_cut);

	if (!rc) {
		addnames_resolve(&work);
		name_by_hand(&work);
		assert_int_equal(input_rewind(&input, &err), 0);
		assert_int_equal(out_open(&out, out_path, &err), 0);
		assert_int_equal(addnames_copy(&work, &input, &out, false, &err), 0);
		assert_int_equal(out_commit(&out, &err), 0);
	}
	release(&work, &input);
	return rc;
}

static void expect_bytes(const char *wanted, size_t len)
{
	size_t got;
	char *text = file_get(out_path, &got);

	assert_int_equal(got, len);
	assert_memory_equal(text, wanted, len);
	free(text);
}

/* Checks the output. Naming the output again must not change it. */
static void expect(const char *in, const char *wanted)
{
	file_write(in_path, in, strlen(in));
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
	file_write(in_path, wanted, strlen(wanted));
	assert_int_equal(add_names(false), 0);
	expect_bytes(wanted, strlen(wanted));
}

static char *with_crlf(const char *text)
{
	char *copy = malloc(2 * strlen(text) + 1), *to = copy;

	assert_non_null(copy);
	for (; *text; text++) {
		if (*text == '\n')
			*to++ = '\r';
		*to++ = *text;
	}
	*to = '\0';
	return copy;
}

TEST(test_names_stand_before_end_mark)
{
	expect(DUMP END, DUMP NAMES END);
}

TEST(test_line_ends_are_those_of_dump)
{
	char *in = with_crlf(DUMP END), *wanted = with_crlf(DUMP NAMES END);

	expect(in, wanted);
	free(in);
	free(wanted);
}

TEST(test_names_that_are_there_stay)
{
	expect(DUMP MINE END "// more\n", DUMP MINE NAME_20 END "// more\n");
}

TEST(test_umdh_logs_get_them_at_end)
{
	expect(MODULES STACK, MODULES STACK NAMES);
	expect(MODULES STACK "last words", MODULES STACK "last words\n" NAMES);
}

TEST(test_bad_lines_are_copied_as_they_are)
{
	expect(DUMP DAMAGE END_2, DUMP DAMAGE NAMES END_2);
}

/* The addresses in a sum's stack get names. Entries that already have names in the log need
 * none. */
TEST(test_sums_and_names_are_copied_as_they_are)
{
#define SUMS                                                                                       \
	MODULES "20 bytes in 0x2 allocations (@ 0x10 + 0x8) by: BackTrace1\n"                      \
		"\t400010\n\t400020\n"                                                             \
		"00000010 bytes in 0x1 allocations (@ 0x00000010) by: BackTrace00B53\n"            \
		"a!main+0x00000012\n"
	expect(SUMS, SUMS NAMES);
}

TEST(test_utf16_becomes_utf8)
{
	static const char dump[] = DUMP END;
	char wide[2 * sizeof(dump)] = "\xff\xfe";

	for (size_t i = 0; i < sizeof(dump) - 1; i++)
		wide[2 + 2 * i] = dump[i];
	file_write(in_path, wide, sizeof(wide));
	assert_int_equal(add_names(false), 0);
	expect_bytes(DUMP NAMES END, strlen(DUMP NAMES END));
}

/* Only the bytes after the compressed text are missing, so --force copies the whole text. */
TEST(test_gzip_becomes_plain_and_cut_gzip_by_force_alone)
{
	gzFile packed = gzopen(in_path, "wb");
	struct stat st;

	assert_non_null(packed);
	assert_int_equal(gzwrite(packed, DUMP END, strlen(DUMP END)), strlen(DUMP END));
	assert_int_equal(gzclose(packed), Z_OK);
	assert_int_equal(add_names(false), 0);
	expect_bytes(DUMP NAMES END, strlen(DUMP NAMES END));
	assert_int_equal(stat(in_path, &st), 0);
	assert_int_equal(truncate(in_path, st.st_size - 1), 0);
	assert_int_equal(add_names(false), -ERR_CUT);
	assert_int_equal(add_names(true), 0);
	expect_bytes(DUMP NAMES END, strlen(DUMP NAMES END));
}

/* ---------------------------------------------------------------- cut dumps */

TEST(test_cut_dump_is_refused_unless_asked_for)
{
	static const char cut[] = DUMP "10 byt", wanted[] = DUMP NAMES "10 byt";

	file_write(in_path, cut, strlen(cut));
	unlink(out_path);
	assert_int_equal(add_names(false), -ERR_CUT);
	assert_int_equal(access(out_path, F_OK), -1);
	assert_int_equal(add_names(true), 0);
	expect_bytes(wanted, strlen(wanted));
	file_write(in_path, DUMP, strlen(DUMP));
	assert_int_equal(add_names(true), 0);
	expect_bytes(DUMP NAMES, strlen(DUMP NAMES));
}

static int log_dump(const char *path, struct scan_log *log)
{
	struct dump_sink sink = log_sink(log);
	struct err err;

	sink.note = NULL;
	sink.skipped = NULL;
	buf_add_text(&log->text, "");
	return dump_scan_file(path, &sink, &err);
}

/* Checks that two dumps have equal modules, heaps, blocks and stacks, and are equally complete.
 * Returns the number of blocks. */
static int check_same_meaning(const char *a_path, const char *b_path)
{
	struct scan_log a, b;

	assert_int_equal(log_dump(a_path, &a), log_dump(b_path, &b));
	assert_string_equal(a.text.data, b.text.data);
	buf_release(&a.text);
	buf_release(&b.text);
	return a.entries;
}

/* Runs hsym --force twice on a cut dump. The first run must keep the meaning, and the second must
 * not change a byte. `is_refused`: hsym must fail without --force. Returns the number of remaining
 * blocks. */
static int check_cut(const char *text, size_t len, bool is_refused)
{
	size_t once_len;
	char *once;
	int rc, count;

	file_write(in_path, text, len);
	if (is_refused)
		assert_true(add_names(false) < 0);
	rc = add_names(true);
	if (rc) {
		assert_true(rc == -ERR_NOT_DUMP || rc == -ERR_EMPTY);
		return 0;
	}
	count = check_same_meaning(in_path, out_path);
	once = file_get(out_path, &once_len);
	file_write(in_path, once, once_len);
	assert_int_equal(add_names(true), 0);
	expect_bytes(once, once_len);
	free(once);
	return count;
}

#define STACKS                                                                                     \
	"10 bytes + 8 at 20000 by BackTrace1\n\t400010\n\t7\n\n"                                   \
	"10 bytes + 8 at 20040 by BackTrace2\n\t400020\n\tAlias\n\n"

/* Cuts two logs after every byte: a dump by hsnap, and a log by UMDH with one line of each kind and
 * two stacks. Logs with two-byte line ends are cut only near line ends. hsym accepts hsnap's dump
 * without the last line end, but not without the end mark. */
TEST(test_every_cut_means_same_with_names)
{
	static const char ours[] =
		"// hsnap: dump format=1\n// Loaded modules: \n// 400000 1000 C:\\a.exe\n//\n"
		"// Process modules enumerated.\n// hsnap: heap addr=10000 kind=wine\n"
		"*- - - Heap 10000 Hogs\n\n" STACKS NAME_20 END_2;
	static const char umdh[] = "// Loaded modules: \n// 400000 1000 C:\\a.exe\n//\n"
				   "*- - - - Start of data for heap @ 10000\n\n" STACKS
				   "*- - - - End of data for heap @ 10000\n\n";
	static const char *const dumps[] = {ours, umdh};

	for (size_t i = 0; i < 4; i++) {
		const char *plain = dumps[i / 2];
		char *text = i % 2 ? with_crlf(plain) : strdup(plain);
		size_t whole = strlen(text);
		int blocks = 0;

		for (size_t len = 1; len <= whole; len++) {
			bool is_new = i % 2 == 0 || text[len - 1] == '\r' || len == whole ||
				      strchr("\r\n", text[len]);

			if (is_new)
				blocks = check_cut(text, len, i == 0 && len + 1 < whole);
		}
		assert_int_equal(blocks, 2);
		free(text);
	}
}

/* The lines are longer than any window. In one of the cases, each byte of the end mark is at the
 * edge of a window. */
TEST(test_long_comments_are_copied_whole)
{
	size_t window = (size_t)1 << 20, fill;
	char *in = malloc(4 * window), *wanted = malloc(4 * window);

	assert_non_null(in);
	assert_non_null(wanted);
	for (size_t shift = 0; shift < 64; shift += 3) {
		fill = 2 * window - strlen(DUMP) - 40 + shift;
		strcpy(in, DUMP "//");
		memset(in + strlen(DUMP "//"), 'x', fill);
		strcpy(in + strlen(DUMP "//") + fill, "\n");
		strcpy(wanted, in);
		strcat(in, END);
		strcat(wanted, NAMES END);
		file_write(in_path, in, strlen(in));
		assert_int_equal(add_names(false), 0);
		expect_bytes(wanted, strlen(wanted));
	}
	free(in);
	free(wanted);
}

/* ---------------------------------------------------------------- summary */

static void check_summary(const char *dump, bool is_named, const char *wanted)
{
	struct addnames work;
	struct input input;
	char text[2000] = "";
	FILE *to = tmpfile();

	assert_non_null(to);
	file_write(in_path, dump, strlen(dump));
	assert_int_equal(read_in(&work, &input, false), 0);
	addnames_resolve(&work);
	if (is_named)
		name_by_hand(&work);
	addnames_summary(&work, to, "hsym");
	rewind(to);
	assert_true(fread(text, 1, sizeof(text) - 1, to) > 0);
	if (!strstr(text, wanted))
		assert_string_equal(text, wanted);
	(void)fclose(to);
	release(&work, &input);
}

TEST(test_summary_names_what_is_missing)
{
	check_summary(DUMP END, false,
		"hsym: 0 of 3 addresses named; no names: 2 in a.exe, 1 outside all modules\n");
	check_summary(
		DUMP END, true, "hsym: 2 of 3 addresses named; no names: 1 outside all modules\n");
	check_summary(DUMP DAMAGE END_2, false, "; 2 bad lines skipped, the first is ");
	check_summary(DUMP DAMAGE END_2, false, "/in:16 (bad stack line)\n");
}

TEST(test_full_standard_output_is_error)
{
	static const char script[] = "for option in --help --version; do "
				     "said=$(build/linux/hsym $option 2>&1 >/dev/full); "
				     "[ $? = 2 ] && expr \"$said\" : '.*cannot write' || exit 1; "
				     "done >/dev/null";

	if (access("build/linux/hsym", X_OK) != 0 || access("/dev/full", W_OK) != 0) {
		print_message("# no build/linux/hsym or no /dev/full here\n");
		skip();
	}
	assert_int_equal(system(script), 0);
}

/* Reads a file with the size limit for pipes, max_bytes; returns the error. */
static int read_kept(const char *path, size_t max_bytes, size_t *memory_bytes)
{
	struct addnames work;
	struct input input;
	struct err err;
	int rc;

	assert_int_equal(input_open(&input, path, &err), 0);
	input.is_pipe = true;
	if (max_bytes)
		input.max_bytes = max_bytes;
	assert_int_equal(addnames_init(&work, &no_cache, &err), 0);
	rc = addnames_read(&work, &input, false, &err);
	*memory_bytes = input.text.cap;
	release(&work, &input);
	return rc;
}

TEST(test_what_cannot_be_read_again_is_kept_within_bounds)
{
	size_t memory_bytes;

	assert_true(read_kept("/dev/zero", 0, &memory_bytes) < 0);
	assert_true(memory_bytes < (size_t)64 << 20);
	file_write(in_path, DUMP END, strlen(DUMP END));
	assert_int_equal(read_kept(in_path, strlen(DUMP END), &memory_bytes), 0);
	assert_int_equal(read_kept(in_path, strlen(DUMP END) - 1, &memory_bytes), -ERR_USAGE);
}

GROUP(make_dir, scratch_end)
