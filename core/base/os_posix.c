/*
 * Implements os.h on POSIX, except for interrupts (core/io/interrupt_posix.c): files, file names,
 * terminals and threads.
 */
#define _DEFAULT_SOURCE /* for madvise() */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"

void os_start(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	/* lets write() fail with an error when a file exceeds its size limit */
	signal(SIGXFSZ, SIG_IGN);
	/* Makes free() return large blocks to the system at once; by default glibc keeps up to 32
	 * MB. */
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

char *os_env(const char *name)
{
	const char *value = getenv(name);

	return value ? xstrdup(value) : NULL;
}

bool os_is_terminal(FILE *stream)
{
	return isatty(fileno(stream));
}

int64_t os_time_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t os_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}

void os_sleep_ms(unsigned ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

int os_open(struct os_file *file, const char *path, struct err *err)
{
	struct stat st;
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

	if (fd < 0)
		return err_set(err, ERR_OPEN, path, "%s", strerror(errno));
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		return err_set(err, ERR_OPEN, path, "is a folder");
	}
	file->handle = fd;
	return 0;
}

int64_t os_read(struct os_file *file, void *bytes, size_t len, const char *path, struct err *err)
{
	ssize_t got;

	do
		got = read((int)file->handle, bytes, len);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_set(err, ERR_READ, path, "%s", strerror(errno));
	return got;
}

int os_read_at(struct os_file *file, uint64_t offset, void *bytes, size_t len)
{
	char *to = bytes;

	while (len) {
		ssize_t got = pread((int)file->handle, to, len, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -ERR_READ;
		to += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return 0;
}

uint64_t os_size(struct os_file *file)
{
	struct stat st;

	if (fstat((int)file->handle, &st) || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

void os_close(struct os_file *file)
{
	if (file->handle != STDIN_FILENO)
		close((int)file->handle);
}

int os_map(struct os_map *map, const char *path, struct err *err)
{
	struct os_file file = {.handle = -1};
	struct stat st;
	void *bytes = MAP_FAILED;
	int rc;

	if (os_is_special(path)) /* opening it could block */
		return err_set(err, ERR_NOT_FILE, path, NULL);
	rc = os_open(&file, path, err);
	if (rc)
		return rc;
	if (fstat((int)file.handle, &st) || !S_ISREG(st.st_mode)) {
		rc = err_set(err, ERR_NOT_FILE, path, NULL);
	} else if (!st.st_size) {
		rc = err_set(err, ERR_EMPTY, path, NULL);
	} else {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, (int)file.handle, 0);
		if (bytes == MAP_FAILED)
			rc = err_set(err, ERR_READ, path, "%s", strerror(errno));
		else
			*map = (struct os_map){bytes, (size_t)st.st_size};
	}
	os_close(&file);
	return rc;
}

/* The guarded map; len is 0 if no map is guarded. */
static struct {
	struct os_map map;
	char line[OS_LINE_BYTES];
	size_t line_len;
	void (*handler)(void);
} guarded;

/* Handles a SIGBUS caused by the guarded map. Any other SIGBUS ends the process as if this handler
 * were not installed. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr, start = (uintptr_t)guarded.map.bytes;

	(void)context;
	if (info->si_code <= 0 || !guarded.map.len || addr < start ||
		addr - start >= guarded.map.len) {
		signal(number, SIG_DFL);
		raise(number); /* takes effect when this handler returns */
		return;
	}
	guarded.handler();
	if (write(STDERR_FILENO, guarded.line, guarded.line_len) < 0)
		_exit(2); /* writing to stderr failed too; only the exit status is left */
	_exit(2);
}

void os_guard_map(const struct os_map *map, const char *line, void (*handler)(void))
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

	guarded.line_len = strnlen(line, sizeof(guarded.line));
	memcpy(guarded.line, line, guarded.line_len);
	guarded.handler = handler;
	guarded.map = *map;
	sigfillset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

void os_unmap(struct os_map *map)
{
	if (guarded.map.bytes == map->bytes)
		guarded.map = (struct os_map){0};
	munmap((void *)(uintptr_t)map->bytes, map->len);
	*map = (struct os_map){0};
}

bool os_exists(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

bool os_is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

bool os_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *os_final_path(const char *path)
{
	struct stat st;
	char *real = !lstat(path, &st) && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;

	return real ? real : xstrdup(path);
}

char *os_full_path(const char *path)
{
	char *dir = path[0] == '/' ? NULL : getcwd(NULL, 0), *full;
	size_t size = (dir ? strlen(dir) : 0) + strlen(path) + 2;

	if (path[0] == '/')
		return xstrdup(path);
	full = dir ? xmalloc(size) : NULL;
	if (full)
		snprintf(full, size, "%s%s%s", dir, strcmp(dir, "/") ? "/" : "", path);
	free(dir);
	return full;
}

void os_copy_rights(struct os_file *file, const char *path)
{
	struct stat st;

	if (!stat(path, &st))
		fchmod((int)file->handle, st.st_mode & 0777);
}

int os_create(struct os_file *file, const char *path, bool fresh, struct err *err)
{
	int flags = O_WRONLY | O_CLOEXEC | (fresh ? O_CREAT | O_EXCL : 0);
	int fd = open(path, flags, 0666);

	if (fd < 0)
		return err_set(err, ERR_CREATE, path, "%s", strerror(errno));
	file->handle = fd;
	return 0;
}

void os_stdout(struct os_file *file)
{
	file->handle = STDOUT_FILENO;
}

int os_write(struct os_file *file, const void *bytes, size_t len, const char *path, struct err *err)
{
	const char *from = bytes;

	while (len) {
		ssize_t put = write((int)file->handle, from, len);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_set(err, ERR_WRITE, path, "%s", strerror(errno));
		from += put;
		len -= (size_t)put;
	}
	return 0;
}

int os_sync(struct os_file *file, const char *path, struct err *err)
{
	/* EINVAL or EROFS: the file system has no flush, so no data is lost. */
	if (fsync((int)file->handle) && errno != EINVAL && errno != EROFS)
		return err_set(err, ERR_WRITE, path, "%s", strerror(errno));
	return 0;
}

int os_replace(const char *from, const char *to, struct err *err)
{
	if (rename(from, to))
		return err_set(err, ERR_CREATE, to, "%s", strerror(errno));
	return 0;
}

/* Renames on a file system without hard links, such as FAT. Creates an empty file to claim the
 * name, and then replaces that file. A race remains: a reader may see the empty file, and data that
 * another writer stores in the empty file is lost. If this process is killed between the two steps,
 * the empty file remains. */
static int claim_and_move(const char *from, const char *to)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), code;

	if (fd < 0)
		return errno;
	close(fd);
	if (!rename(from, to))
		return 0;
	code = errno;
	unlink(to);
	return code;
}

/* Renames without replacing an existing file: link() fails if the name is taken. */
static int move_new(const char *from, const char *to)
{
	if (!link(from, to)) {
		unlink(from);
		return 0;
	}
	return errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK ?
		       claim_and_move(from, to) :
		       errno;
}

int os_put(struct os_file *file, const char *from, const char *to, bool is_new, struct err *err)
{
	int code;

	(void)file;
	if (!is_new)
		return os_replace(from, to, err);
	code = move_new(from, to);
	if (code == EEXIST)
		return err_set(err, ERR_EXISTS, to, NULL);
	return code ? err_set(err, ERR_CREATE, to, "%s", strerror(code)) : 0;
}

void os_remove(const char *path)
{
	unlink(path);
}

int os_make_private_folder(const char *path)
{
	return mkdir(path, 0700);
}

void os_remove_folder(const char *path)
{
	rmdir(path);
}

void os_random(void *bytes, size_t len)
{
	if (getrandom(bytes, len, 0) < 0)
		memset(bytes, 0, len);
}

unsigned long os_pid(void)
{
	return (unsigned long)getpid();
}

static bool is_letter(char c, char lower)
{
	return c == lower || (c >= 'A' && c <= 'Z' && c - 'A' + 'a' == lower);
}

/* The character set comes after a dot and before any "@". */
bool os_is_utf8(const char *name)
{
	static const char utf[] = "utf";
	const char *at = name ? strchr(name, '.') : NULL;

	if (!at)
		return false;
	for (size_t i = 0; utf[i]; i++) {
		if (!is_letter(*++at, utf[i]))
			return false;
	}
	at += at[1] == '-';
	return at[1] == '8' && (!at[2] || at[2] == '@');
}

/* Reads the environment variables instead of querying the C library: a terminal can show UTF-8 even
 * if the locale is not installed. */
static const char *locale_name(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return value;
	}
	return NULL;
}

unsigned os_terminal_columns(FILE *stream)
{
	struct winsize size;

	return ioctl(fileno(stream), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

bool terminal_shows_colour(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_is_utf8(void)
{
	return os_is_terminal(stdout) && os_is_utf8(locale_name());
}

#ifndef MADV_HUGEPAGE /* MADV_HUGEPAGE exists only on Linux */
#define MADV_HUGEPAGE MADV_NORMAL
#endif

void os_large_pages(void *start, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (uintptr_t)start % page;

	madvise((char *)start - before, (before + bytes + page - 1) / page * page, MADV_HUGEPAGE);
}

#define SPIN_COUNT 100

struct thread_lock {
	pthread_mutex_t mutex;
};

struct job {
	void (*work)(void *ctx, unsigned number);
	void *ctx;
	unsigned number;
};

unsigned thread_cores(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (unsigned)count : 1;
}

static void *start(void *job_of)
{
	struct job *job = job_of;

	job->work(job->ctx, job->number);
	return NULL;
}

void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx)
{
	struct job *jobs = xcalloc(count, sizeof(*jobs));
	pthread_t *threads = xcalloc(count, sizeof(*threads));
	unsigned started = 1;

	for (; started < count; started++) {
		jobs[started] = (struct job){work, ctx, started};
		if (pthread_create(&threads[started], NULL, start, &jobs[started]))
			break;
	}
	work(ctx, 0);
	while (--started)
		pthread_join(threads[started], NULL);
	free(threads);
	free(jobs);
}

struct thread_lock *thread_lock_new(void)
{
	struct thread_lock *lock = xmalloc(sizeof(*lock));

	if (pthread_mutex_init(&lock->mutex, NULL))
		memory_out();
	return lock;
}

void thread_lock_free(struct thread_lock *lock)
{
	if (lock)
		pthread_mutex_destroy(&lock->mutex);
	free(lock);
}

void thread_lock_acquire(struct thread_lock *lock)
{
	/* Spin first: the lock is usually released sooner than a thread can be put to sleep. */
	for (int i = 0; i < SPIN_COUNT; i++) {
		if (!pthread_mutex_trylock(&lock->mutex))
			return;
	}
	pthread_mutex_lock(&lock->mutex);
}

void thread_lock_leave(struct thread_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
