/*
 * The operating system: the few services missing from C11, with the same interface on every
 * platform.
 *
 * Paths, arguments and environment values are UTF-8. Files are binary. The functions are
 * implemented in os_posix.c, os_windows.c, path_windows.c and core/io/interrupt_*.c.
 */
#ifndef CORE_BASE_OS_H
#define CORE_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Converts the arguments to UTF-8 and makes the standard streams binary. Call this first in main().
 * *argc and *argv stay valid until the program ends. */
void os_start(int *argc, char ***argv);

/* Returns a UTF-8 copy of an environment variable, or NULL if the variable is unset. The caller
 * frees the copy. */
char *os_env(const char *name);

bool os_is_terminal(FILE *stream);

/* Returns milliseconds since 1970-01-01 UTC. */
int64_t os_time_ms(void);

void os_sleep_ms(unsigned ms);

/* Returns the machine's memory in bytes; 0: unknown. */
uint64_t os_memory_bytes(void);

struct os_file {
	intptr_t handle;
	bool is_temporary; /* Windows: the system deletes the file when it is closed */
};

/* Opens `path` for reading; "-" is standard input. Returns 0 or -ERR_OPEN (also for a folder). */
int os_open(struct os_file *file, const char *path, struct err *err);

/* Reads up to `len` bytes. Returns the number of bytes read (0 at the end) or -ERR_READ. */
int64_t os_read(struct os_file *file, void *bytes, size_t len, const char *path, struct err *err);

/* Reads exactly `len` bytes at `offset`. Returns 0 or -ERR_READ. */
int os_read_at(struct os_file *file, uint64_t offset, void *bytes, size_t len);

/* Returns the size in bytes, or 0 if it is unknown. */
uint64_t os_size(struct os_file *file);

void os_close(struct os_file *file);

struct os_map {
	const unsigned char *bytes;
	size_t len; /* > 0 */
};

/* Maps a regular file read-only. Returns 0, -ERR_OPEN, -ERR_EMPTY or -ERR_READ. Reading bytes that
 * have become unavailable (the file was truncated, the disk was removed) ends this process. */
int os_map(struct os_map *map, const char *path, struct err *err);
void os_unmap(struct os_map *map);

/* Prepares for a failed read of the map. After a failed read, the process calls `handler`, writes
 * `line` unchanged to standard error, and exits with status 2. The handler has the same
 * restrictions as that of os_on_interrupt(). At most OS_LINE_BYTES of `line` are copied. Only one
 * map at a time can be guarded. */
#define OS_LINE_BYTES 1500
void os_guard_map(const struct os_map *map, const char *line, void (*handler)(void));

/* Returns true if `path` exists. It may be a file, a folder, or even a dangling link. */
bool os_exists(const char *path);

/* Returns true if `path` exists and is neither a regular file nor a folder (a device, a pipe). */
bool os_is_special(const char *path);

/* Returns true if both paths exist and lead to the same file. */
bool os_same_file(const char *a, const char *b);

/* Returns the path of the file that a write to `path` would change. If `path` is a symbolic link,
 * this is the target. The caller frees the result. */
char *os_final_path(const char *path);

/* Returns the absolute form of path, without resolving links. The path need not exist. The caller
 * frees the result. Returns NULL if the current folder no longer exists. */
char *os_full_path(const char *path);

/* Copies the access rights of the file at `path` to `file`. Does nothing if there is no file at
 * `path`. */
void os_copy_rights(struct os_file *file, const char *path);

/* Opens `path` for writing. If `fresh` is set, creates a file that must not exist yet; otherwise
 * opens an existing special file. If the system supports it, a fresh file is deleted when it is
 * closed or the process ends, unless os_put() has renamed it. Returns 0 or -ERR_CREATE. */
int os_create(struct os_file *file, const char *path, bool fresh, struct err *err);

void os_stdout(struct os_file *file);

/* Writes all `len` bytes. Returns 0 or -ERR_WRITE. */
int os_write(
	struct os_file *file, const void *bytes, size_t len, const char *path, struct err *err);

/* Flushes the file to the disk, if the file system can do that. Returns 0 or -ERR_WRITE. */
int os_sync(struct os_file *file, const char *path, struct err *err);

/* Atomically renames an open fresh file from its temporary name to its final name in the same
 * folder. Replaces an existing file unless `is_new` is set. If a reader blocks the replacement,
 * retries for one or two seconds. Returns 0, or -ERR_EXISTS or -ERR_CREATE with nothing changed. If
 * two processes create a new file of the same name at once, one of them gets -ERR_EXISTS. */
int os_put(struct os_file *file, const char *from, const char *to, bool is_new, struct err *err);

/* Atomically renames a file to the name of another file in the same folder, replacing that file.
 * Returns 0 or -ERR_CREATE. */
int os_replace(const char *from, const char *to, struct err *err);

void os_remove(const char *path);

/* Creates a folder that only this user can access. On Windows the folder inherits the access rights
 * of its parent. Returns 0 or -1. */
int os_make_private_folder(const char *path);
void os_remove_folder(const char *path);

/* Returns a number that is different for every running process. */
unsigned long os_pid(void);

/* Fills `bytes` with unpredictable numbers, if the system has a source of such numbers. */
void os_random(void *bytes, size_t len);

/* Sets the handler that is called once when the user or the system ends this process (Ctrl-C,
 * SIGTERM, closing the console). After the handler returns, the process exits with status 2. The
 * handler may run on any thread or inside a signal handler, so it may only call functions that are
 * safe there. */
void os_on_interrupt(void (*handler)(void));

/* Ends this process immediately, in the same way as an interrupt. */
_Noreturn void os_end(void);

/* Sets a function that is called once after the interrupt handler. The function runs on its own
 * thread and may call any other function. Windows only; never called on POSIX. */
void os_on_end(void (*last)(void));

/* If `is_held` is true, begins to hold back the first Ctrl-C; otherwise stops doing so. A Ctrl-C
 * that is held back does not end the process; os_was_interrupted() then returns true. The process
 * must have called os_on_interrupt(). A second Ctrl-C and all other signals end the process.
 *
 * On Windows, Ctrl-Break, which other programs can send, is also held back. Another Ctrl-C within
 * 0.3 s is treated as part of the first. */
void os_hold_interrupt(bool is_held);
bool os_was_interrupted(void);

/* Sets a function that is called when an interrupt is held back. The function runs on its own
 * thread. Windows only. */
void os_on_held(void (*told)(void));

/* Returns the time, in milliseconds, of a clock that never jumps and that keeps running while the
 * machine sleeps. The clock's zero point is arbitrary. */
int64_t os_clock_ms(void);

/* Waits until os_clock_ms() reaches `until_ms`, or until a handle is signalled (Windows) or
 * readable (POSIX). An interrupt that was held back also ends this wait and all later waits. Waits
 * at most OS_WAIT_MS, so it may return before `until_ms`. (A longer wait could end too late: the
 * system may not count the time during which the machine sleeps.) */
#define OS_WAIT_MAX 32 /* number of handles */
#define OS_WAIT_MS 10000 /* longest single wait */
void os_wait(int64_t until_ms, const intptr_t *handles, size_t count);

/* Requests large pages for memory that was just allocated, if the system has them. The first access
 * to the memory then takes less than half the time. */
void os_large_pages(void *start, size_t bytes);

/*
 * Threads: runs the same work on several threads at once, and provides a lock.
 */

/* Returns the number of threads that this machine can run at once; at least 1. */
unsigned thread_cores(void);

/* Calls work(ctx, number) for each number below `count`, concurrently if possible, and returns when
 * all calls have returned. Number 0 runs on the caller's thread. If the system refuses to create a
 * thread, the call for its number is omitted. So the call for number 0 must be able to complete the
 * work alone. */
void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx);

struct thread_lock;
struct thread_lock *thread_lock_new(void);
void thread_lock_free(struct thread_lock *lock);
void thread_lock_acquire(struct thread_lock *lock);
void thread_lock_leave(struct thread_lock *lock);

#endif
