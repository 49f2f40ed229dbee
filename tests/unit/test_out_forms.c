#include "tests/unit/test_out.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/io/out.h"

/* Simulates a file system without hard links, such as FAT. */
static bool has_no_links;

int link(const char *from, const char *to)
{
	if (!has_no_links)
		return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
	errno = EPERM;
	return -1;
}

/* Returns len bytes. They compress well, or hardly at all if is_noise is set. */
static char *made_bytes(size_t len, bool is_noise)
{
	char *bytes = malloc(len);
	uint64_t state = 88172645463325252;

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bytes[i] = is_noise ? (char)state : "0123456789ABCDEF"[state % 3];
	}
	return bytes;
}

/* Writes pieces of many sizes, so that buffers end at any position. */
static void write_and_compare(size_t len, bool is_noise, unsigned flags)
{
	char *bytes = made_bytes(len, is_noise), *text, command[800];
	struct out out;
	struct stat st;
	size_t got;

	assert_int_equal(out_open_as(&out, path, flags, NULL), 0);
	for (size_t at = 0, part = 1; at < len; at += part, part = part * 3 % 1000003) {
		part = len - at < part ? len - at : part;
		out_write(&out, bytes + at, part);
	}
	assert_int_equal(out_commit(&out, NULL), 0);
	assert_int_equal(out.bytes, len);
	assert_int_equal(stat(path, &st), 0);
	if (flags && len > 1000 && !is_noise) /* three letters need log2(3) of 8 bits each */
		assert_true((size_t)st.st_size < len / 3);
	snprintf(command, sizeof(command), "cd '%s' && gzip -dc <out.txt >out && mv out out.txt",
		dir);
	if (flags)
		assert_int_equal(system(command), 0);
	text = file_get(path, &got);
	assert_int_equal(got, len);
	assert_memory_equal(text, bytes, len);
	free(text);
	free(bytes);
}

/* The lengths include those that exactly fill the buffers of this module and of zlib. */
TEST(much_is_written_whole_and_what_is_packed_gzip_unpacks)
{
	static const size_t lens[] = {
		0, 1, OUT_BUFFER_BYTES - 1, OUT_BUFFER_BYTES, OUT_BUFFER_BYTES + 1, 2000000};

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		write_and_compare(lens[i], false, OUT_GZIP);
		write_and_compare(lens[i], true, OUT_GZIP);
		write_and_compare(lens[i], true, 0);
	}
}

TEST(name_determines_if_file_is_packed)
{
	static const struct {
		const char *name;
		bool is_packed;
	} cases[] = {{"a.txt.gz", true}, {"A.TXT.GZ", true}, {".gz", true}, {"a.gz.txt", false},
		{"agz", false}, {"a.g", false}, {"gz", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char named[800], *bytes;
		struct out out;
		size_t len;

		snprintf(named, sizeof(named), "%s/%s", dir, cases[i].name);
		assert_int_equal(out_open(&out, named, NULL), 0);
		out_text(&out, "text");
		assert_int_equal(out_commit(&out, NULL), 0);
		bytes = file_get(named, &len);
		assert_int_equal(len >= 2 && !memcmp(bytes, "\x1f\x8b", 2), cases[i].is_packed);
		free(bytes);
		os_remove(named);
	}
}

TEST(what_is_aborted_leaves_old_file)
{
	struct out out;

	spew("old\n");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(out_open_as(&out, path, i ? OUT_GZIP : 0, NULL), 0);
		out_text(&out, "new");
		out_abort(&out);
		assert_file_is("old\n");
		assert_int_equal(count_files(), 1);
	}
}

/* Fails the write of pending bytes, and the write of the bytes that zlib keeps until the end. */
TEST(full_disk_is_error_of_what_is_packed)
{
	struct err err = {0};
	struct out out;

	assert_int_equal(out_open_as(&out, "/dev/full", OUT_GZIP, &err), 0);
	out_text(&out, "little");
	assert_int_equal(out_commit(&out, &err), -ERR_WRITE);
	assert_string_equal(err.place, "/dev/full");
}

static void limit_size(rlim_t bytes, unsigned flags, size_t len)
{
	char *bytes_made = made_bytes(len, true);
	struct rlimit kept, limit;
	struct err err = {0};
	struct out out;
	int rc;

	if (!(flags & OUT_NEW))
		spew("old\n");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &kept), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(out_open_as(&out, path, flags, &err), 0);
	limit = kept;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (size_t at = 0; at < len; at += 1000) /* the error of the first failure is reported */
		out_write(&out, bytes_made + at, 1000);
	rc = out_commit(&out, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &kept), 0);
	assert_int_equal(rc, -ERR_WRITE);
	assert_string_equal(err.place, path);
	assert_int_equal(count_files(), !(flags & OUT_NEW));
	if (!(flags & OUT_NEW))
		assert_file_is("old\n");
	free(bytes_made);
}

TEST(limit_on_size_leaves_old_file_and_nothing_of_new_one)
{
	limit_size(100000, 0, 1000000);
	unlink(path);
	limit_size(100000, OUT_NEW, 1000000);
	limit_size(100000, OUT_NEW | OUT_GZIP, 1000000);
	limit_size(5, OUT_NEW | OUT_GZIP, 1000); /* zlib writes all bytes at the end */
}

static void assert_taken(int rc, const struct err *err)
{
	assert_int_equal(rc, -ERR_EXISTS);
	assert_int_equal(err->code, ERR_EXISTS);
	assert_string_equal(err->place, path);
}

TEST(new_file_is_not_opened_where_something_is)
{
	struct err err = {0};
	struct out out;

	spew("old\n");
	assert_taken(out_open_as(&out, path, OUT_NEW, &err), &err);
	assert_file_is("old\n");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_taken(out_open_as(&out, path, OUT_NEW, &err), &err);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_taken(out_open_as(&out, path, OUT_NEW | OUT_GZIP, &err), &err);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(out_open_as(&out, "/dev/full", OUT_NEW, &err), -ERR_EXISTS);
	assert_int_equal(count_files(), 0);
}

static void commit_new(bool is_taken, unsigned flags)
{
	struct err err = {0};
	struct out out;
	int rc;

	assert_int_equal(out_open_as(&out, path, OUT_NEW | flags, &err), 0);
	out_text(&out, "new\n");
	if (is_taken)
		spew("somebody's\n");
	rc = out_commit(&out, &err);
	assert_int_equal(count_files(), 1);
	if (is_taken) {
		assert_taken(rc, &err);
		assert_file_is("somebody's\n");
	} else {
		assert_int_equal(rc, 0);
	}
	if (!is_taken && !flags)
		assert_file_is("new\n");
	assert_int_equal(unlink(path), 0);
}

TEST(new_file_takes_nobodys_place)
{
	for (int i = 0; i < 8; i++) {
		has_no_links = i & 1;
		commit_new(i & 2, i & 4 ? OUT_GZIP : 0);
	}
	has_no_links = false;
}
