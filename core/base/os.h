/*
 * The operating-system floor: the few things C11 does not give, the same on every platform.
 *
 * Paths, arguments and environment values are UTF-8. Files are binary. os_posix.c or os_windows.c.
 */
#ifndef CORE_BASE_OS_H
#define CORE_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Makes argv UTF-8 and standard streams binary; call first in main(). *argc and *argv stay valid
 * until the program ends. */
void os_start(int *argc, char ***argv);

/* A UTF-8 copy of an environment variable, to be freed by the caller; NULL when unset. */
char *os_env(const char *name);

bool os_is_terminal(FILE *stream);

/* Milliseconds since 1970-01-01 UTC. */
int64_t os_time_ms(void);

void os_sleep_ms(unsigned ms);

/* The machine's memory in bytes; 0: not known. */
uint64_t os_memory_bytes(void);

struct os_file {
	intptr_t handle;
	bool is_temporary; /* the system removes it when it is closed (Windows) */
};

/* Opens path ("-" is standard input) for reading: 0, -ERR_OPEN (also for a folder). */
int os_open(struct os_file *file, const char *path, struct err *err);

/* Reads up to len bytes: how many (0 at the end) or -ERR_READ. */
int64_t os_read(struct os_file *file, void *bytes, size_t len, const char *path, struct err *err);

/* Reads exactly len bytes at offset: 0 or -ERR_READ. */
int os_read_at(struct os_file *file, uint64_t offset, void *bytes, size_t len);

/* The size in bytes, or 0 when it cannot be known. */
uint64_t os_size(struct os_file *file);

void os_close(struct os_file *file);

/* A file's bytes, where they lie: the system reads them when they are looked at. */
struct os_map {
	const unsigned char *bytes;
	size_t len; /* > 0 */
};

/* Maps a regular file read-only: 0, -ERR_OPEN, -ERR_EMPTY, -ERR_READ. Whoever reads what is no longer
 * there, because somebody has cut the file short or its disk is gone, ends this process. */
int os_map(struct os_map *map, const char *path, struct err *err);
void os_unmap(struct os_map *map);

/* From now on such an end is an orderly one: handler is called as by os_on_interrupt(), line (copied;
 * up to OS_LINE_BYTES of it) is written to standard error as it is, and the exit status is 2. One map
 * at a time. */
#define OS_LINE_BYTES 1500
void os_guard_map(const struct os_map *map, const char *line, void (*handler)(void));

/* True when anything has that name: a file, a folder, a link that leads nowhere. */
bool os_is_there(const char *path);

/* True when path is there and is neither a regular file nor a folder (a device, a pipe). */
bool os_is_special(const char *path);

/* True when both are there and are one file, by whatever names. */
bool os_same_file(const char *a, const char *b);

/* Where a write to path goes: behind a symbolic link its target. The caller frees it. */
char *os_final_path(const char *path);

/* path from the root on, whether anything is there or not; links stay. The caller frees it; NULL: the folder
 * we are in is gone. */
char *os_full_path(const char *path);

/* Gives file the access rights that the file at path has, if there is one. */
void os_keep_rights(struct os_file *file, const char *path);

/* Opens path for writing: a new file that must not exist yet (fresh), or an existing special one.
 * Where the system can, a fresh file that was not put in its place by os_put() goes when it is closed or
 * the process ends.
 * 0 or -ERR_CREATE. */
int os_create(struct os_file *file, const char *path, bool fresh, struct err *err);

void os_stdout(struct os_file *file);

/* Writes all of it: 0 or -ERR_WRITE. */
int os_write(
	struct os_file *file, const void *bytes, size_t len, const char *path, struct err *err);

/* Puts what was written on the disk, to stay, where the file system can: 0 or -ERR_WRITE. */
int os_sync(struct os_file *file, const char *path, struct err *err);

/* Puts a fresh file, which is open still, in its place: from, as it was called up to now, gets the name to
 * in the same folder, at once; in the place of what has it or, of a new one, only if nothing has. Where what
 * has the name cannot be replaced, as somebody reads it, that is tried for a second or two. 0, -ERR_EXISTS or
 * -ERR_CREATE: then nothing has changed. Of two processes that put a new one at once one gets the name. */
int os_put(struct os_file *file, const char *from, const char *to, bool is_new, struct err *err);

/* Moves a file over another in the same folder, at once: 0 or -ERR_CREATE. */
int os_replace(const char *from, const char *to, struct err *err);

void os_remove(const char *path);

/* Makes a folder that is not there, for this user alone: 0 or -1. On Windows it has the rights of the one that it is in. */
int os_make_private_folder(const char *path);
/* Removes one that is empty. */
void os_remove_folder(const char *path);

/* A number that differs between the processes that run now. */
unsigned long os_pid(void);

/* Calls handler once when the user or the system asks this process to end (Ctrl-C, SIGTERM,
 * closing the console); then the process ends with exit status 2. The handler may run on any
 * thread or inside a signal handler: it may only do what is safe there. */
void os_on_interrupt(void (*handler)(void));

/* Ends this process in the same way, at once. */
_Noreturn void os_end(void);

/* Calls last once behind that handler, where it may do whatever it wants: on a thread of its own on Windows,
 * and never on POSIX. */
void os_on_end(void (*last)(void));

/* While held, the first Ctrl-C of a process that called os_on_interrupt() does not end it but is told by
 * os_was_interrupted(), from then on; and so is Ctrl-Break on Windows, which is the one that a program can
 * send to others. A second one ends it, and so does everything else; on Windows what comes within 0.3 s of
 * the first is no second one. */
void os_hold_interrupt(bool is_held);
bool os_was_interrupted(void);

/* Calls told when that happens, as os_on_end() does. */
void os_on_held(void (*told)(void));

/* Milliseconds of a clock that never jumps, and goes on while the machine sleeps. Its zero means
 * nothing. */
int64_t os_clock_ms(void);

/* Waits until that clock says until_ms, or an interrupt was held back (from then on for good), or one of
 * the handles (of processes and the like on Windows, what poll() calls readable on POSIX) tells something.
 * It may return earlier: waits are cut in pieces, for a machine that sleeps may leave that time out. */
#define OS_WAIT_MAX 32 /* handles */
#define OS_WAIT_MS 10000 /* a piece */
void os_wait(int64_t until_ms, const intptr_t *handles, size_t count);

/* Asks for memory that was just allocated to come in large pages, where the system has them: then it is there in less
 * than half of the time. */
void os_large_pages(void *start, size_t bytes);

/*
 * Threads, as few as do: the same work several times at once, and a lock.
 */

/* How many threads can run at once on this machine; at least 1. */
unsigned thread_cores(void);

/* Calls work(ctx, number) for each number below count, at once where that can be, and returns when
 * all are done. Number 0 is the caller's own thread. Where the system refuses a thread its number is
 * not called: work must be such that number 0 alone gets everything done. */
void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx);

struct thread_lock;
struct thread_lock *thread_lock_new(void);
void thread_lock_free(struct thread_lock *lock);
void thread_lock_take(struct thread_lock *lock);
void thread_lock_leave(struct thread_lock *lock);

#endif
