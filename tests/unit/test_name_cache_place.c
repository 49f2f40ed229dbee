/* Where the cache of names is, and what is not taken for it. */
#include <fcntl.h>
#include <sys/file.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/name_cache_scene.h"

#define BYTES NAME_CACHE_BYTES

static char *folder; /* the scene's, as a full path */

static int begin(void **state)
{
	int rc = scene_begin(state);

	folder = realpath(scene_folder, NULL);
	unsetenv("HSYM_CACHE");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	return rc || !folder;
}

static int end(void **state)
{
	free(folder);
	return scene_end(state);
}

static const char *in_folder(const char *name)
{
	static char path[4][1000];
	static unsigned turn;
	char *text = path[turn++ % 4];

	snprintf(text, 1000, "%s/%s", folder, name);
	return text;
}

static void use(const char *path)
{
	struct name_cache *cache = name_cache_open(path);
	struct arena arena;

	assert_non_null(cache);
	arena_init(&arena);
	scene_add(cache, &arena, 1, 1);
	name_cache_close(cache);
	arena_release(&arena);
}

static int is_used(const char *path)
{
	struct name_cache *cache = name_cache_open(path);
	struct arena arena;
	int found;

	assert_non_null(cache);
	arena_init(&arena);
	found = scene_find(cache, &arena, 1, 1);
	name_cache_close(cache);
	arena_release(&arena);
	return found;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

/* The cache at place, with the folders from folder on, is used and made for the user alone. */
static void check_place(const char *path, const char *const *made, size_t count)
{
	use(path);
	assert_int_equal(is_used(path), 1);
	assert_int_equal(mode_of(in_folder(made[count - 1])), 0600);
	assert_int_equal(unlink(in_folder(made[count - 1])), 0);
	for (size_t i = count - 1; i-- > 0;) {
		assert_int_equal(mode_of(in_folder(made[i])), 0700);
		assert_int_equal(rmdir(in_folder(made[i])), 0);
	}
}

static void test_it_is_in_the_user_s_folder_for_caches(void **state)
{
	static const char *const xdg[] = {"x", "x/hsnap", "x/hsnap/names"};
	static const char *const home[] = {".cache", ".cache/hsnap", ".cache/hsnap/names"};

	(void)state;
	setenv("HOME", folder, 1);
	check_place(NULL, home, 3);
	setenv("XDG_CACHE_HOME", "relative", 1);
	check_place(NULL, home, 3);
	setenv("XDG_CACHE_HOME", in_folder("x"), 1);
	check_place(NULL, xdg, 3);
}

static void test_hsym_cache_says_where_it_is(void **state)
{
	static const char *const said[] = {"a b", "a b/c", "a b/c/d"};

	(void)state;
	setenv("HOME", folder, 1);
	setenv("HSYM_CACHE", in_folder("a b/c/d"), 1);
	check_place(NULL, said, 3);
	setenv("HSYM_CACHE", "off", 1);
	assert_null(name_cache_open(NULL));
	check_place(in_folder("a b//c/d"), said, 3); /* who names a place means it */
	setenv("HSYM_CACHE", "", 1);
	assert_null(name_cache_open(NULL));
}

static void test_without_a_home_there_is_none(void **state)
{
	(void)state;
	assert_null(name_cache_open(NULL));
	setenv("HOME", "", 1);
	assert_null(name_cache_open(NULL));
	setenv("HOME", "relative", 1);
	assert_null(name_cache_open(NULL));
	setenv("HOME", in_folder("nonexistent"), 1); /* that of daemons is not to be made */
	assert_null(name_cache_open(NULL));
}

/* As under sudo. */
static void test_a_home_of_someone_else_s_is_left_alone(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid())
		skip(); /* only root can give a folder away */
	assert_int_equal(chown(folder, 12345, 12345), 0);
	setenv("HOME", folder, 1);
	assert_null(name_cache_open(NULL));
	assert_int_equal(stat(in_folder(".cache"), &st), -1);
	assert_int_equal(chown(folder, 0, 0), 0);
}

static void test_a_file_of_someone_else_s_is_not_used(void **state)
{
	(void)state;
	use(scene_path);
	assert_int_equal(chmod(scene_path, 0620), 0);
	assert_int_equal(is_used(scene_path), 0);
	assert_int_equal(chmod(scene_path, 0602), 0);
	assert_int_equal(is_used(scene_path), 0);
	assert_int_equal(chmod(scene_path, 0644), 0);
	assert_int_equal(is_used(scene_path), 1);
	if (geteuid())
		return; /* only root can give a file away */
	assert_int_equal(chown(scene_path, 12345, 12345), 0);
	assert_int_equal(is_used(scene_path), 0);
}

static void test_a_pipe_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(scene_path, 0600), 0);
	use(scene_path);
	assert_int_equal(is_used(scene_path), 0);
}

static void test_a_symbolic_link_is_not_followed(void **state)
{
	char *bytes, *after;
	size_t len, len_after;

	(void)state;
	use(scene_path);
	bytes = scene_bytes(&len);
	assert_int_equal(symlink("names", in_folder("link")), 0);
	assert_int_equal(is_used(in_folder("link")), 0);
	use(in_folder("link"));
	after = scene_bytes(&len_after);
	assert_int_equal(len, len_after);
	assert_memory_equal(bytes, after, len);
	unlink(in_folder("link"));
	assert_int_equal(symlink("nothing", in_folder("link")), 0);
	use(in_folder("link"));
	assert_int_equal(access(in_folder("nothing"), F_OK), -1);
	unlink(in_folder("link"));
	free(bytes);
	free(after);
}

static void test_a_folder_and_a_device_are_no_cache(void **state)
{
	(void)state;
	use(folder);
	assert_int_equal(is_used(folder), 0);
	use("/dev/null");
	assert_int_equal(is_used("/dev/null"), 0);
	use("/dev/full");
	use(in_folder("")); /* ends in a slash */
	use(scene_path);
	use(in_folder("names/below a file"));
	assert_int_equal(is_used(in_folder("names/below a file")), 0);
}

static const char foreign[] = "a letter to my aunt, much longer than any header of a cache\n";

static void test_a_file_that_is_no_cache_is_not_touched(void **state)
{
	char *bytes;
	size_t len;

	(void)state;
	scene_put(foreign, sizeof(foreign));
	use(scene_path);
	bytes = scene_bytes(&len);
	assert_int_equal(len, sizeof(foreign));
	assert_memory_equal(bytes, foreign, len);
	free(bytes);
}

/* There it can be but a damaged one, as a power failure leaves it. */
static void test_in_its_own_folder_it_is_written_anew(void **state)
{
	(void)state;
	setenv("XDG_CACHE_HOME", folder, 1);
	scene_put(foreign, sizeof(foreign));
	assert_int_equal(mkdir(in_folder("hsnap"), 0700), 0);
	assert_int_equal(rename(scene_path, in_folder("hsnap/names")), 0);
	assert_int_equal(is_used(NULL), 0);
	use(NULL);
	assert_int_equal(is_used(NULL), 1);
	assert_int_equal(unlink(in_folder("hsnap/names")), 0);
	assert_int_equal(rmdir(in_folder("hsnap")), 0);
}

/* Uses the cache as somebody who is not root, whom no rights keep out. */
static void use_as_user(void)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		if (!geteuid() && setuid(12345))
			_exit(1);
		use(scene_path);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_a_folder_that_cannot_be_written_to_is_left_as_it_is(void **state)
{
	(void)state;
	if (!geteuid())
		assert_int_equal(chown(folder, 12345, 12345), 0);
	assert_int_equal(chmod(folder, 0555), 0);
	use_as_user();
	assert_int_equal(access(scene_path, F_OK), -1);
	assert_int_equal(chmod(folder, 0755), 0);
	use_as_user();
	assert_int_equal(access(scene_path, F_OK), 0);
	use("/proc/hsnap/names");
	assert_int_equal(is_used("/proc/hsnap/names"), 0);
}

/* A file may grow to so many bytes, as on a disk that has no more. */
static void set_room(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_full_disk_costs_the_new_names_alone(void **state)
{
	size_t before, rest;

	(void)state;
	signal(SIGXFSZ, SIG_IGN); /* as os_start() does */
	scene_write(BYTES, 1, 0, 10, 1);
	before = scene_size();
	scene_write(BYTES, 2, 0, 10, 1);
	rest = scene_size() - before;
	for (size_t room = 0; room < rest; room += 7) {
		assert_int_equal(truncate(scene_path, (off_t)before), 0);
		set_room(before + room);
		scene_write(BYTES, 2, 0, 10, 1);
		set_room(RLIM_INFINITY);
		assert_int_equal(scene_size(), before);
		assert_int_equal(scene_read(BYTES, 1, 0, 10, 1), 10);
	}
	for (size_t room = 0; room < 40; room++) { /* also when the file is new */
		unlink(scene_path);
		set_room(room);
		scene_write(BYTES, 2, 0, 10, 1);
		set_room(RLIM_INFINITY);
		assert_int_equal(scene_read(BYTES, 2, 0, 10, 1), 0);
		scene_write(BYTES, 2, 0, 10, 1);
		assert_int_equal(scene_read(BYTES, 2, 0, 10, 1), 10);
	}
}

static void test_a_lock_that_stays_is_given_up(void **state)
{
	int fd;

	(void)state;
	scene_write(BYTES, 1, 0, 10, 1);
	fd = open(scene_path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	scene_write(BYTES, 1, 10, 10, 1);
	assert_int_equal(scene_read(BYTES, 1, 0, 20, 1), 10); /* reading needs none */
	assert_int_equal(close(fd), 0);
	scene_write(BYTES, 1, 10, 10, 1);
	assert_int_equal(scene_read(BYTES, 1, 0, 20, 1), 20);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_it_is_in_the_user_s_folder_for_caches),
		TEST(test_hsym_cache_says_where_it_is),
		TEST(test_without_a_home_there_is_none),
		TEST(test_a_home_of_someone_else_s_is_left_alone),
		TEST(test_a_file_of_someone_else_s_is_not_used),
		TEST(test_a_pipe_is_not_waited_for),
		TEST(test_a_symbolic_link_is_not_followed),
		TEST(test_a_folder_and_a_device_are_no_cache),
		TEST(test_a_file_that_is_no_cache_is_not_touched),
		TEST(test_in_its_own_folder_it_is_written_anew),
		TEST(test_a_folder_that_cannot_be_written_to_is_left_as_it_is),
		TEST(test_a_full_disk_costs_the_new_names_alone),
		TEST(test_a_lock_that_stays_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
