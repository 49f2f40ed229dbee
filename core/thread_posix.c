#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

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
	struct job *jobs = calloc(count, sizeof(*jobs));
	pthread_t *threads = calloc(count, sizeof(*threads));
	unsigned started = 1;

	for (; jobs && threads && started < count; started++) {
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
	struct thread_lock *lock = malloc(sizeof(*lock));

	if (lock && pthread_mutex_init(&lock->mutex, NULL)) {
		free(lock);
		return NULL;
	}
	return lock;
}

void thread_lock_free(struct thread_lock *lock)
{
	if (lock)
		pthread_mutex_destroy(&lock->mutex);
	free(lock);
}

void thread_lock_take(struct thread_lock *lock)
{
	/* What it guards takes less time than going to sleep does. */
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
