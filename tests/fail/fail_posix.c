/* Makes one call of hsnap to the system or to the C library fail without performing it, like
 * fail_windows.c. LD_PRELOAD loads this library into the program. Calls that other libraries make
 * are counted too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fail/fail.h"

/* X(name, result, parameters, arguments, value returned on failure, errno on failure) */
#define FUNCTIONS(X)                                                                               \
	X(malloc, void *, (size_t a), (a), NULL, ENOMEM)                                           \
	X(calloc, void *, (size_t a, size_t b), (a, b), NULL, ENOMEM)                              \
	X(realloc, void *, (void *a, size_t b), (a, b), NULL, ENOMEM)                              \
	X(fstat, int, (int a, struct stat *b), (a, b), -1, EIO)                                    \
	X(stat, int, (const char *a, struct stat *b), (a, b), -1, EACCES)                          \
	X(lstat, int, (const char *a, struct stat *b), (a, b), -1, EACCES)                         \
	X(read, ssize_t, (int a, void *b, size_t c), (a, b, c), -1, EIO)                           \
	X(pread, ssize_t, (int a, void *b, size_t c, off_t d), (a, b, c, d), -1, EIO)              \
	X(write, ssize_t, (int a, const void *b, size_t c), (a, b, c), -1, ENOSPC)                 \
	X(mmap, void *, (void *a, size_t b, int c, int d, int e, off_t f), (a, b, c, d, e, f),     \
		MAP_FAILED, ENOMEM)                                                                \
	X(fsync, int, (int a), (a), -1, EIO)                                                       \
	X(fchmod, int, (int a, mode_t b), (a, b), -1, EPERM)                                       \
	X(rename, int, (const char *a, const char *b), (a, b), -1, EACCES)                         \
	X(unlink, int, (const char *a), (a), -1, EACCES)                                           \
	X(realpath, char *, (const char *a, char *b), (a, b), NULL, EACCES)                        \
	X(getcwd, char *, (char *a, size_t b), (a, b), NULL, ENOENT)                               \
	X(sigaction, int, (int a, const struct sigaction *b, struct sigaction *c), (a, b, c), -1,  \
		EINVAL)

enum {
#define X(name, ...) INDEX_##name,
	FUNCTIONS(X)
#undef X
		INDEX_open,
	INDEX_close,
};

static struct fail_file *shared;

/* Records the callers that lie in the program. */
static void remember(void)
{
	void *frames[FAIL_FRAMES];
	int count = backtrace(frames, FAIL_FRAMES);
	Dl_info info;

	for (int i = 0; i < count; i++) {
		if (dladdr(frames[i], &info) && !strcmp(info.dli_fname, program_invocation_name))
			shared->frames[shared->frame_count++] =
				(uint64_t)((char *)frames[i] - (char *)info.dli_fbase);
	}
}

static bool fails(unsigned index, int code)
{
	if (!shared || !fail_now(shared, index))
		return false;
	remember();
	errno = code;
	return true;
}

/* Parameters have no names of their own in a table, and a type takes no parentheses.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,bugprone-macro-parentheses) */
#define X(name, result, parameters, arguments, failed, code)                                       \
	result name parameters                                                                     \
	{                                                                                          \
		static result(*real) parameters;                                                   \
                                                                                                   \
		if (fails(INDEX_##name, code))                                                     \
			return failed;                                                             \
		if (!real)                                                                         \
			real = dlsym(RTLD_NEXT, #name);                                            \
		return real arguments;                                                             \
	}
FUNCTIONS(X)
#undef X

int open(const char *path, int flags, ...)
{
	static int (*real)(const char *, int, ...);
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (fails(INDEX_open, EACCES))
		return -1;
	if (!real)
		real = dlsym(RTLD_NEXT, "open");
	return real(path, flags, mode);
}

/* Closes the file even if the call must fail, as the system does when it could not store earlier
 * writes. */
int close(int file)
{
	static int (*real)(int);

	if (!real)
		real = dlsym(RTLD_NEXT, "close");
	if (real(file))
		return -1;
	return fails(INDEX_close, EIO) ? -1 : 0;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name,bugprone-macro-parentheses) */

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("HSNAP_FAIL");
	int file = path ? open(path, O_RDWR) : -1;
	void *frame, *mapped;
	struct fail_file *found;

	if (file < 0)
		return;
	backtrace(&frame, 1); /* the first call allocates memory */
	mapped = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	found = mapped;
	if (mapped == MAP_FAILED || !fail_own(found, (uint32_t)getpid()))
		return;
#define X(which, ...) strcpy(found->functions[INDEX_##which].name, #which);
	FUNCTIONS(X)
	X(open)
	X(close)
#undef X
	shared = found;
}
