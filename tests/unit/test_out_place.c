/* core/out: how a finished file gets its name. The system calls are replaced and logged. */
#include "tests/unit/test_out.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "core/io/out.h"
#include "core/io/temp.h"

static char calls[100]; /* log of the calls in order, for example "flush name " */
static int flush_fails; /* errno of a failing flush; 0: flushes succeed */

static void note(const char *call)
{
	size_t len = strlen(calls);

	snprintf(calls + len, sizeof(calls) - len, "%s ", call);
}

int fsync(int fd)
{
	note("flush");
	errno = flush_fails;
	return flush_fails ? -1 : (int)syscall(SYS_fsync, fd);
}

int rename(const char *old, const char *now)
{
	note("name");
	return (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, now, 0);
}

int link(const char *from, const char *to)
{
	note("name");
	return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int write_file(unsigned flags)
{
	struct out out;
	int rc = out_open_as(&out, path, flags, NULL);

	calls[0] = '\0';
	if (!rc) {
		out_text(&out, "new\n");
		assert_string_equal(calls, "");
		rc = out_commit(&out, NULL);
	}
	return rc;
}

/* Without the flush, a power failure could leave an empty or partial file under the name. */
TEST(bytes_are_on_disk_before_they_have_their_name)
{
	static const unsigned flags[] = {0, OUT_NEW, OUT_GZIP, OUT_NEW | OUT_GZIP};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		assert_int_equal(write_file(flags[i]), 0);
		assert_string_equal(calls, "flush name ");
		assert_int_equal(unlink(path), 0);
	}
}

TEST(what_cannot_be_flushed_has_no_name)
{
	static const struct {
		int code, rc;
	} cases[] = {{EIO, -ERR_WRITE}, {ENOSPC, -ERR_WRITE}, {EINVAL, 0}, {EROFS, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		flush_fails = cases[i].code;
		assert_int_equal(write_file(OUT_NEW), cases[i].rc);
		assert_string_equal(calls, cases[i].rc ? "flush " : "flush name ");
		assert_int_equal(count_files(), !cases[i].rc);
		unlink(path);
	}
	flush_fails = 0;
}

/* Generates `count` names, OUT.1, OUT.2 and so on. */
struct made_names {
	unsigned given, count;
	char path[400];
};

static int next_name(void *ctx, const char **next, struct err *err)
{
	struct made_names *names = ctx;

	if (names->given == names->count)
		return err_set(err, ERR_EXISTS, "the last", NULL);
	snprintf(names->path, sizeof(names->path), "%s.%u", path, ++names->given);
	*next = names->path;
	return 0;
}

static void in_folder(char name[400], unsigned number)
{
	snprintf(name, 400, "%s.%u", path, number);
}

/* Other processes take the first names during the write. The data must be written only once. */
TEST(finished_file_gets_first_name_that_is_free)
{
	struct made_names names = {.count = 5};
	const struct out_names others = {next_name, &names};
	char name[400];
	struct err err = {0};
	struct out out;

	assert_int_equal(out_open_as(&out, path, OUT_NEW, &err), 0);
	out_text(&out, "new\n");
	spew("somebody's\n");
	for (unsigned i = 1; i <= 2; i++) {
		in_folder(name, i);
		file_write(name, "somebody's\n", 11);
	}
	calls[0] = '\0';
	assert_int_equal(out_commit_as(&out, &others, &err), 0);
	assert_string_equal(calls, "flush name name name name ");
	assert_int_equal(names.given, 3);
	assert_int_equal(count_files(), 4);
	assert_file_is("somebody's\n");
	in_folder(name, 3);
	assert_int_equal(rename(name, path), 0);
	assert_file_is("new\n");
	for (unsigned i = 1; i <= 2; i++) {
		in_folder(name, i);
		assert_int_equal(unlink(name), 0);
	}
}

TEST(without_free_name_nothing_is_left)
{
	struct made_names names = {.count = 0};
	const struct out_names others = {next_name, &names};
	struct err err = {0};
	struct out out;

	assert_int_equal(out_open_as(&out, path, OUT_NEW, &err), 0);
	out_text(&out, "new\n");
	spew("somebody's\n");
	assert_int_equal(out_commit_as(&out, &others, &err), -ERR_EXISTS);
	assert_string_equal(err.place, "the last");
	assert_file_is("somebody's\n");
	assert_int_equal(count_files(), 1);
}

TEST(names_that_are_not_needed_are_not_asked_for)
{
	struct made_names names = {.count = 1};
	const struct out_names others = {next_name, &names};
	struct out out;

	assert_int_equal(out_open_as(&out, path, OUT_NEW, NULL), 0);
	assert_int_equal(out_commit_as(&out, &others, NULL), 0);
	assert_int_equal(names.given, 0);
	assert_int_equal(count_files(), 1);
}

TEST(temporary_files_are_for_nobody_else)
{
	const char *one, *other;
	char folder[4096];
	struct stat st;

	assert_int_equal(temp_path(&one, ".a", NULL), 0);
	assert_int_equal(temp_path(&other, ".b", NULL), 0);
	snprintf(folder, sizeof(folder), "%s", one);
	*strrchr(folder, '/') = '\0';
	assert_int_equal(strncmp(other, folder, strlen(folder)), 0);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
	assert_true(access(one, F_OK) && access(other, F_OK)); /* no files exist under the names */
	assert_int_equal(fclose(fopen(one, "w")), 0);
	temp_remove_all();
	assert_int_equal(stat(folder, &st), -1);
}
