#include <fcntl.h>
#include <sys/file.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/name_cache_scene.h"

#define BYTES NAME_CACHE_BYTES

static int begin(void **state)
{
	int rc = scene_begin(state);

	unsetenv("HSYM_CACHE");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	return rc;
}

static const char *in_folder(const char *name)
{
	static char path[4][1000];
	static unsigned turn;
	char *text = path[turn++ % 4];

	snprintf(text, 1000, "%s/%s", dir, name);
	return text;
}

static void use(const char *path)
{
	struct name_cache *cache = name_cache_open(path, BYTES);
	struct arena arena;

	assert_non_null(cache);
	arena_init(&arena);
	scene_add(cache, &arena, 1, 1);
	name_cache_close(cache);
	arena_release(&arena);
}

static bool is_used(const char *path)
{
	struct name_cache *cache = name_cache_open(path, BYTES);
	bool is_found;

	assert_non_null(cache);
	is_found = scene_find(cache, 1, 1);
	name_cache_close(cache);
	return is_found;
}

static unsigned mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

/* Checks that the cache at path is used, and that its new folders are private to the user. made:
 * the new folders and the file, in this order. */
static void check_place(const char *path, const char *const made[3])
{
	use(path);
	assert_true(is_used(path));
	for (size_t i = 3; i-- > 0;) {
		assert_int_equal(mode_of(in_folder(made[i])), i == 2 ? 0600 : 0700);
		assert_int_equal(remove(in_folder(made[i])), 0);
	}
}

#undef TEST_AROUND
#define TEST_AROUND begin, scene_end

TEST(test_it_is_in_user_s_folder_for_caches)
{
	static const char *const xdg[] = {"x", "x/hsnap", "x/hsnap/names"};
	static const char *const home[] = {".cache", ".cache/hsnap", ".cache/hsnap/names"};

	setenv("HOME", dir, 1);
	check_place(NULL, home);
	setenv("XDG_CACHE_HOME", "relative", 1);
	check_place(NULL, home);
	setenv("XDG_CACHE_HOME", in_folder("x"), 1);
	check_place(NULL, xdg);
}

TEST(test_hsym_cache_sets_place)
{
	static const char *const said[] = {"a b", "a b/c", "a b/c/d"};

	setenv("HOME", dir, 1);
	setenv("HSYM_CACHE", in_folder("a b/c/d"), 1);
	check_place(NULL, said);
	setenv("HSYM_CACHE", "off", 1);
	assert_null(name_cache_open(NULL, BYTES));
	/* A path that the user specified is used unchanged. */
	check_place(in_folder("a b//c/d"), said);
	setenv("HSYM_CACHE", "", 1);
	assert_null(name_cache_open(NULL, BYTES));
}

TEST(test_without_home_there_is_none)
{
	assert_null(name_cache_open(NULL, BYTES));
	setenv("HOME", "", 1);
	assert_null(name_cache_open(NULL, BYTES));
	setenv("HOME", "relative", 1);
	assert_null(name_cache_open(NULL, BYTES));
	setenv("HOME", in_folder("nonexistent"), 1); /* a daemon's home must not be created */
	assert_null(name_cache_open(NULL, BYTES));
}

/* sudo may leave HOME set to another user's folder. */
TEST(test_home_of_someone_else_s_is_left_alone)
{
	struct stat st;

	if (geteuid())
		skip(); /* only root can change the owner of a folder */
	assert_int_equal(chown(dir, 12345, 12345), 0);
	setenv("HOME", dir, 1);
	assert_null(name_cache_open(NULL, BYTES));
	assert_int_equal(stat(in_folder(".cache"), &st), -1);
	assert_int_equal(chown(dir, 0, 0), 0);
}

TEST(test_file_of_someone_else_s_is_not_used)
{
	use(scene_path);
	assert_int_equal(chmod(scene_path, 0620), 0);
	assert_false(is_used(scene_path));
	assert_int_equal(chmod(scene_path, 0602), 0);
	assert_false(is_used(scene_path));
	assert_int_equal(chmod(scene_path, 0644), 0);
	assert_true(is_used(scene_path));
	if (geteuid())
		return; /* only root can change the owner of a file */
	assert_int_equal(chown(scene_path, 12345, 12345), 0);
	assert_false(is_used(scene_path));
}

static const char foreign[] = "a letter to my aunt, much longer than any header of a cache\n";

static void check_untouched(const void *bytes, size_t len)
{
	size_t len_after;
	char *after = file_get(scene_path, &len_after);

	assert_int_equal(len, len_after);
	assert_memory_equal(bytes, after, len);
	free(after);
}

TEST(test_symbolic_link_is_not_followed)
{
	char *bytes;
	size_t len;

	use(scene_path);
	bytes = file_get(scene_path, &len);
	assert_int_equal(symlink("names", in_folder("link")), 0);
	assert_false(is_used(in_folder("link")));
	use(in_folder("link"));
	check_untouched(bytes, len);
	unlink(in_folder("link"));
	assert_int_equal(symlink("nothing", in_folder("link")), 0);
	use(in_folder("link"));
	assert_int_equal(access(in_folder("nothing"), F_OK), -1);
	unlink(in_folder("link"));
	free(bytes);
}

TEST(test_what_is_no_file_and_no_cache_is_not_touched)
{
	assert_int_equal(mkfifo(scene_path, 0600), 0);
	use(scene_path); /* opening the file must not block */
	assert_false(is_used(scene_path));
	unlink(scene_path);
	use(dir);
	assert_false(is_used(dir));
	use("/dev/null");
	assert_false(is_used("/dev/null"));
	use("/dev/full");
	use(in_folder("")); /* the path ends with a slash */
	use(scene_path);
	use(in_folder("names/below a file"));
	assert_false(is_used(in_folder("names/below a file")));
	scene_put(foreign, sizeof(foreign));
	use(scene_path);
	check_untouched(foreign, sizeof(foreign));
}

/* In the cache's own folder the file can only be a damaged cache, for example after a power
 * failure. */
TEST(test_in_its_own_folder_it_is_written_anew)
{
	setenv("XDG_CACHE_HOME", dir, 1);
	scene_put(foreign, sizeof(foreign));
	assert_int_equal(mkdir(in_folder("hsnap"), 0700), 0);
	assert_int_equal(rename(scene_path, in_folder("hsnap/names")), 0);
	assert_false(is_used(NULL));
	use(NULL);
	assert_true(is_used(NULL));
	assert_int_equal(unlink(in_folder("hsnap/names")), 0);
	assert_int_equal(rmdir(in_folder("hsnap")), 0);
}

/* Uses the cache as an ordinary user, because root ignores permissions. */
static void use_as_user(void)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		if (chdir(dir) || (!geteuid() && setuid(12345)))
			_exit(1);
		use("names"); /* the user may lack access to the parent folders */
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(test_folder_that_cannot_be_written_to_is_left_as_it_is)
{
	if (!geteuid())
		assert_int_equal(chown(dir, 12345, 12345), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	use_as_user();
	assert_int_equal(access(scene_path, F_OK), -1);
	assert_int_equal(chmod(dir, 0755), 0);
	use_as_user();
	assert_int_equal(access(scene_path, F_OK), 0);
	use("/proc/hsnap/names");
	assert_false(is_used("/proc/hsnap/names"));
}

/* Limits the size of files, as a full disk would. */
static void set_room(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(test_full_disk_costs_new_names_alone)
{
	size_t before, rest;

	signal(SIGXFSZ, SIG_IGN); /* as in os_start() */
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
	/* Bytes that may be written; 0: the file stays empty. */
	for (size_t room = 0; room < 40; room++) {
		unlink(scene_path);
		set_room(room);
		scene_write(BYTES, 2, 0, 10, 1);
		set_room(RLIM_INFINITY);
		assert_int_equal(scene_read(BYTES, 2, 0, 10, 1), 0);
		scene_write(BYTES, 2, 0, 10, 1);
		assert_int_equal(scene_read(BYTES, 2, 0, 10, 1), 10);
	}
}

TEST(test_lock_that_stays_is_given_up)
{
	int fd;

	scene_write(BYTES, 1, 0, 10, 1);
	fd = open(scene_path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	scene_write(BYTES, 1, 10, 10, 1);
	assert_int_equal(scene_read(BYTES, 1, 0, 20, 1), 10); /* reads need no lock */
	assert_int_equal(close(fd), 0);
	scene_write(BYTES, 1, 10, 10, 1);
	assert_int_equal(scene_read(BYTES, 1, 0, 20, 1), 20);
}

/* ---------------------------------------------------------------- several processes */

#define BOUND ((size_t)40 << 10)

enum { WRITERS = 8, READERS = 2, ROUNDS = 25, EACH = 10, KEYS = 3 };

static pid_t children[WRITERS + READERS];

/* Forks and returns true in the child. A failed assertion ends the child. */
static bool is_child(size_t number)
{
	children[number] = fork();
	assert_true(children[number] >= 0);
	if (!children[number])
		setenv("CMOCKA_TEST_ABORT", "1", 1);
	return !children[number];
}

static uint32_t first_of(size_t writer, size_t round)
{
	return (uint32_t)(writer * 100000 + round * EACH * 2);
}

/* Several processes write, each until its names are kept, because another process may hold the lock
 * for too long. Other processes read. scene_find() asserts that every found name is correct. */
static void run(size_t limit)
{
	for (size_t i = 0; i < WRITERS + READERS; i++) {
		if (!is_child(i))
			continue;
		for (size_t round = 0; i < WRITERS && round < ROUNDS; round++) {
			uint32_t first = first_of(i, round);

			do
				scene_write(limit, round % KEYS, first, EACH, 1);
			while (limit > BOUND &&
				scene_read(limit, round % KEYS, first, EACH, 1) < EACH);
		}
		for (size_t j = 0; i >= WRITERS && j < 2 * ROUNDS * WRITERS; j++) {
			size_t round = j / WRITERS % ROUNDS;

			scene_read(limit, round % KEYS, first_of(j % WRITERS, round), EACH * 2, 1);
		}
		_exit(0);
	}
	for (size_t i = 0; i < WRITERS + READERS; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

static size_t count_written(size_t limit)
{
	size_t found = 0;

	for (size_t i = 0; i < WRITERS * ROUNDS; i++)
		found += scene_read(
			limit, i % ROUNDS % KEYS, first_of(i / ROUNDS, i % ROUNDS), EACH, 1);
	return found;
}

TEST(test_nobody_s_names_are_lost_but_oldest)
{
	run(BYTES);
	assert_int_equal(count_written(BYTES), WRITERS * ROUNDS * EACH);
	unlink(scene_path);
	run(BOUND);
	assert_true(scene_size() <= BOUND);
	assert_true(count_written(BOUND) > EACH);
}

TEST(test_writer_that_is_killed_harms_nobody)
{
	for (size_t round = 0; round < 15; round++) {
		int status;

		if (is_child(0)) {
			for (size_t i = 0;; i++)
				scene_write(BOUND, i % KEYS, first_of(0, i % ROUNDS), EACH, 1);
		}
		for (size_t i = 0; i < 10 + round * 5; i++)
			scene_read(BOUND, i % KEYS, first_of(0, i % ROUNDS), EACH * 2, 1);
		assert_int_equal(kill(children[0], SIGKILL), 0);
		assert_int_equal(waitpid(children[0], &status, 0), children[0]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		scene_write(BOUND, 9, (uint32_t)round, 1, 1);
		assert_int_equal(scene_read(BOUND, 9, (uint32_t)round, 1, 1), 1);
	}
}
