/* core/out: output is there completely or not at all. */
#include "tests/unit/test_out.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/io/out.h"

TEST(commit_replaces_the_old_file_at_once)
{
	struct err err;
	struct out out;

	spew("old\n");
	assert_int_equal(out_open(&out, path, &err), 0);
	out_text(&out, "new ");
	out_hex(&out, 0);
	out_text(&out, " ");
	out_hex(&out, UINT64_MAX);
	out_printf(&out, " %s %d%%\r\n", "words", 7);
	assert_file_is("old\n");
	assert_int_equal(out_commit(&out, &err), 0);
	assert_file_is("new 0 FFFFFFFFFFFFFFFF words 7%\r\n");
	assert_int_equal(out.bytes, strlen("new 0 FFFFFFFFFFFFFFFF words 7%\r\n"));
	assert_int_equal(count_files(), 1);
}

static void assert_digits(uint64_t value)
{
	char digits[16], expected[17];
	int len = snprintf(expected, sizeof(expected), "%" PRIX64, value);

	assert_int_equal(out_hex_digits(digits, value), len);
	assert_memory_equal(digits, expected, (size_t)len);
}

TEST(a_number_of_any_length_has_its_digits)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		uint64_t power = UINT64_C(1) << bits;

		assert_digits(power - 1);
		assert_digits(power);
		assert_digits(power + 1);
		assert_digits(UINT64_C(0xfedcba9876543210) >> bits);
	}
}

TEST(a_dash_is_standard_output)
{
	struct out out;

	assert_int_equal(out_open(&out, "-", NULL), 0);
	assert_null(out.path);
	out_abort(&out);
	assert_int_equal(count_files(), 0);
}

TEST(rights_and_links_stay)
{
	char link[400];
	struct stat st;
	struct out out;

	snprintf(link, sizeof(link), "%s/link", dir);
	spew("old\n");
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(symlink("out.txt", link), 0);
	assert_int_equal(out_open(&out, link, NULL), 0);
	out_text(&out, "new");
	assert_int_equal(out_commit(&out, NULL), 0);
	assert_file_is("new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_true(os_same_file(path, link));
	assert_false(os_same_file(path, dir));
	assert_false(os_same_file(path, "nowhere/at/all"));
	assert_int_equal(unlink(link), 0);
}

TEST(abort_leaves_the_old_file)
{
	struct out out;

	spew("old\n");
	assert_int_equal(out_open(&out, path, NULL), 0);
	out_text(&out, "new");
	out_abort(&out);
	assert_file_is("old\n");
	assert_int_equal(count_files(), 1);
}

TEST(an_interrupt_leaves_nothing)
{
	struct out out;

	out_interrupted(); /* nothing is open: nothing happens */
	assert_int_equal(out_open(&out, path, NULL), 0);
	out_text(&out, "new");
	assert_int_equal(count_files(), 1);
	out_interrupted();
	assert_int_equal(count_files(), 0);
	out_abort(&out);
	out_interrupted();
	assert_int_equal(count_files(), 0);
}

/* Pieces of many sizes, so that buffer ends fall everywhere. */
TEST(much_is_written_whole)
{
	enum { BYTES = 3000000 };
	unsigned char *bytes = malloc(BYTES);
	struct out out;
	size_t len;
	char *text;

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(i * 7 + i / 251);
	assert_int_equal(out_open(&out, path, NULL), 0);
	for (size_t at = 0, part = 1; at < BYTES; part = part * 3 % 1000003) {
		size_t now = BYTES - at < part ? BYTES - at : part;

		out_write(&out, bytes + at, now);
		at += now;
	}
	assert_int_equal(out_commit(&out, NULL), 0);
	assert_int_equal(out.bytes, BYTES);
	text = file_get(path, &len);
	assert_int_equal(len, BYTES);
	assert_memory_equal(text, bytes, BYTES);
	free(text);
	free(bytes);
}

TEST(a_long_printf_is_whole)
{
	enum { LEN = 600000 };
	char *word = malloc(LEN + 1);
	struct out out;

	memset(word, 'w', LEN);
	word[LEN] = '\0';
	assert_int_equal(out_open(&out, path, NULL), 0);
	out_printf(&out, "%s", word);
	assert_int_equal(out_commit(&out, NULL), 0);
	assert_file_is(word);
	free(word);
}

TEST(a_missing_folder_is_named)
{
	char missing[400];
	struct err err = {0};
	struct out out;

	snprintf(missing, sizeof(missing), "%s/none/out.txt", dir);
	assert_int_equal(out_open(&out, missing, &err), -ERR_CREATE);
	assert_int_equal(err.code, ERR_CREATE);
	assert_string_equal(err.place, missing);
	assert_true(err.detail[0]);
	assert_int_equal(out_open(&out, missing, NULL), -ERR_CREATE);
}

TEST(a_folder_is_no_file)
{
	char sub[400];
	struct err err = {0};
	struct out out;
	int rc;

	snprintf(sub, sizeof(sub), "%s/sub", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	rc = out_open(&out, sub, &err);
	if (!rc) {
		out_text(&out, "x");
		rc = out_commit(&out, &err);
	}
	assert_int_equal(rc, -ERR_CREATE);
	assert_string_equal(err.place, sub);
	assert_int_equal(count_files(), 1);
	assert_int_equal(rmdir(sub), 0); /* it is still there, and empty */
}

TEST(devices_are_written_to_straight)
{
	struct err err = {0};
	struct out out;

	assert_int_equal(out_open(&out, "/dev/null", &err), 0);
	assert_null(out.temp);
	out_text(&out, "gone");
	assert_int_equal(out_commit(&out, &err), 0);
	assert_int_equal(out_open(&out, "/dev/full", &err), 0);
	out_text(&out, "no room");
	assert_int_equal(out_commit(&out, &err), -ERR_WRITE);
	assert_string_equal(err.place, "/dev/full");
	assert_int_equal(access("/dev/full", F_OK), 0); /* not removed */
	assert_int_equal(out_open(&out, "/dev/full", &err), 0);
	out_text(&out, "no room");
	out_abort(&out);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

TEST(a_full_standard_output_is_an_error)
{
	int full = open("/dev/full", O_WRONLY), kept = dup(STDOUT_FILENO);
	struct err err = {0};
	struct out out;
	int rc;

	fflush(stdout);
	dup2(full, STDOUT_FILENO);
	rc = out_open(&out, NULL, &err);
	if (!rc) {
		out_text(&out, "no room");
		rc = out_commit(&out, &err);
	}
	dup2(kept, STDOUT_FILENO);
	close(full);
	close(kept);
	assert_int_equal(rc, -ERR_WRITE);
	assert_string_equal(err.place, "standard output");
}

/* The first failure counts, however much is written after it; the old file stays. */
TEST(a_limit_on_size_leaves_the_old_file)
{
	struct rlimit kept, limit;
	struct err err = {0};
	struct out out;
	int rc;

	spew("old\n");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &kept), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(out_open(&out, path, &err), 0);
	limit = kept;
	limit.rlim_cur = 500000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 200000; i++)
		out_text(&out, "many words");
	rc = out_commit(&out, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &kept), 0);
	assert_int_equal(rc, -ERR_WRITE);
	assert_string_equal(err.place, path);
	assert_file_is("old\n");
	assert_int_equal(count_files(), 1);
}
