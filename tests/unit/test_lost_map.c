/* Another process truncates a minidump that hsnap has mapped. hsnap must end with one line and
 * status 2, and must leave no temporary file. */
#include "tests/unit/t.h"

#include "tests/unit/test_minidump.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/io/out.h"

static char folder[200], dump_path[300], out_path[300];

static void write_dump(void)
{
	FILE *file = fopen(dump_path, "wb");

	assert_non_null(file);
	dmp_make_full();
	assert_int_equal(fwrite(dmp.bytes, 1, dmp.len, file), dmp.len);
	assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/lost_map-XXXXXX", base ? base : "build");
	if (!mkdtemp(folder))
		return -1;
	snprintf(dump_path, sizeof(dump_path), "%s/a.dmp", folder);
	snprintf(out_path, sizeof(out_path), "%s/a.txt", folder);
	write_dump();
	return 0;
}

static unsigned count_files(void)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(dump_path);
	return rmdir(folder); /* fails if the folder contains a file */
}

/* Runs child() in a process whose stderr goes to `text`; returns the wait status. */
static int run_child(void (*child)(void), char *text, size_t size)
{
	const struct rlimit no_core = {0, 0};
	size_t len = 0;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setrlimit(RLIMIT_CORE, &no_core);
		child();
		_exit(77);
	}
	close(ends[1]);
	while (len < size - 1 && (got = read(ends[0], text + len, size - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void read_what_was_cut_off(void)
{
	struct target target;
	struct out out;
	struct err err;
	unsigned char bytes[8];

	if (target_open_minidump(&target, dump_path, &err) || out_open(&out, out_path, &err))
		_exit(78);
	out_text(&out, "half of it");
	if (count_files() != 2 || truncate(dump_path, 0))
		_exit(79);
	target_read(&target, DMP_PEB, bytes, sizeof(bytes));
}

TEST(file_cut_short_ends_hsnap_in_order)
{
	char text[2000], expected[700];
	int status = run_child(read_what_was_cut_off, text, sizeof(text));

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	snprintf(expected, sizeof(expected),
		"hsnap: %s: changed while it was read; try again when no program is writing to "
		"it\n",
		dump_path);
	assert_string_equal(text, expected);
	assert_int_equal(count_files(), 1);
}

static void read_beyond_another_file(void)
{
	const volatile unsigned char *bytes;
	struct target target;
	struct err err;
	int fd = open(dump_path, O_RDONLY);

	signal(SIGBUS, SIG_DFL);
	if (target_open_minidump(&target, dump_path, &err))
		_exit(78);
	bytes = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 1 << 20);
	if (bytes == MAP_FAILED)
		_exit(79);
	_exit(bytes[0]);
}

static void read_beyond_a_file_that_was_closed(void)
{
	const volatile unsigned char *bytes;
	struct os_map map;
	struct err err;
	int fd = open(dump_path, O_RDONLY);

	signal(SIGBUS, SIG_DFL);
	if (os_map(&map, dump_path, &err))
		_exit(78);
	os_guard_map(&map, "not this\n", out_interrupted);
	bytes = map.bytes;
	os_unmap(&map);
	if (mmap((void *)(uintptr_t)bytes, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 1 << 20) ==
		MAP_FAILED)
		_exit(79);
	_exit(bytes[0]);
}

static void be_sent_the_signal(void)
{
	struct target target;
	struct err err;

	signal(SIGBUS, SIG_DFL);
	if (target_open_minidump(&target, dump_path, &err))
		_exit(78);
	kill(getpid(), SIGBUS);
}

TEST(other_failures_are_as_they_were)
{
	static void (*const children[])(void) = {
		read_beyond_another_file, read_beyond_a_file_that_was_closed, be_sent_the_signal};
	char text[2000];
	int status;

	write_dump();
	for (size_t i = 0; i < sizeof(children) / sizeof(*children); i++) {
		status = run_child(children[i], text, sizeof(text));
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGBUS);
		assert_string_equal(text, "");
	}
}

GROUP(make_folder, remove_folder)
