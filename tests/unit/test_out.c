#include "tests/unit/test_out.h"

#include <inttypes.h>

#include "core/io/out.h"

TEST(commit_replaces_old_file_at_once)
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

TEST(number_of_any_length_has_its_digits)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		uint64_t power = UINT64_C(1) << bits;

		assert_digits(power - 1);
		assert_digits(power);
		assert_digits(power + 1);
		assert_digits(UINT64_C(0xfedcba9876543210) >> bits);
	}
}

TEST(dash_is_standard_output)
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

TEST(interrupt_leaves_nothing)
{
	struct out out;

	out_interrupted(); /* no effect without an open output */
	assert_int_equal(out_open(&out, path, NULL), 0);
	out_text(&out, "new");
	assert_int_equal(count_files(), 1);
	out_interrupted();
	assert_int_equal(count_files(), 0);
	out_abort(&out);
	out_interrupted();
	assert_int_equal(count_files(), 0);
}

TEST(long_printf_is_whole)
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

TEST(missing_folder_is_named)
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

TEST(folder_is_no_file)
{
	char sub[400];
	struct err err = {0};
	struct out out;

	snprintf(sub, sizeof(sub), "%s/sub", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(out_open(&out, sub, &err), 0);
	out_text(&out, "x");
	assert_int_equal(out_commit(&out, &err), -ERR_CREATE);
	assert_string_equal(err.place, sub);
	assert_int_equal(count_files(), 1);
	assert_int_equal(rmdir(sub), 0); /* the folder still exists and is empty */
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
	assert_int_equal(access("/dev/full", F_OK), 0); /* the device was not removed */
	assert_int_equal(out_open(&out, "/dev/full", &err), 0);
	out_text(&out, "no room");
	out_abort(&out);
	assert_int_equal(access("/dev/full", F_OK), 0);
}
