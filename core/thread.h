/*
 * Threads, as few as do: the same work several times at once, and a lock.
 */
#ifndef CORE_THREAD_H
#define CORE_THREAD_H

/* How many threads can run at once on this machine; at least 1. */
unsigned thread_cores(void);

/* Calls work(ctx, number) for each number below count, at once where that can be, and returns when
 * all are done. Number 0 is the caller's own thread. Where the system refuses a thread its number is
 * not called: work must be such that number 0 alone gets everything done. */
void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx);

struct thread_lock;
struct thread_lock *thread_lock_new(void); /* NULL: out of memory */
void thread_lock_free(struct thread_lock *lock);
void thread_lock_take(struct thread_lock *lock);
void thread_lock_leave(struct thread_lock *lock);

#endif
