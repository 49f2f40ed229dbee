#include "core/thread.h"

#include <stdlib.h>

#include <windows.h>

#include <process.h>

#define SPIN_COUNT 1000

struct thread_lock {
	CRITICAL_SECTION section;
};

struct job {
	void (*work)(void *ctx, unsigned number);
	void *ctx;
	unsigned number;
};

unsigned thread_cores(void)
{
	SYSTEM_INFO info;

	GetSystemInfo(&info);
	return info.dwNumberOfProcessors ? info.dwNumberOfProcessors : 1;
}

static unsigned __stdcall start(void *job_of)
{
	struct job *job = job_of;

	job->work(job->ctx, job->number);
	return 0;
}

void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx)
{
	struct job *jobs = calloc(count, sizeof(*jobs));
	HANDLE *threads = calloc(count, sizeof(*threads));
	unsigned started = 1;

	for (; jobs && threads && started < count; started++) {
		jobs[started] = (struct job){work, ctx, started};
		threads[started] = (HANDLE)_beginthreadex(NULL, 0, start, &jobs[started], 0, NULL);
		if (!threads[started])
			break;
	}
	work(ctx, 0);
	while (--started) {
		WaitForSingleObject(threads[started], INFINITE);
		CloseHandle(threads[started]);
	}
	free(threads);
	free(jobs);
}

struct thread_lock *thread_lock_new(void)
{
	struct thread_lock *lock = malloc(sizeof(*lock));

	/* What it guards takes less time than going to sleep does. */
	if (lock && !InitializeCriticalSectionAndSpinCount(&lock->section, SPIN_COUNT)) {
		free(lock);
		return NULL;
	}
	return lock;
}

void thread_lock_free(struct thread_lock *lock)
{
	if (lock)
		DeleteCriticalSection(&lock->section);
	free(lock);
}

void thread_lock_take(struct thread_lock *lock)
{
	EnterCriticalSection(&lock->section);
}

void thread_lock_leave(struct thread_lock *lock)
{
	LeaveCriticalSection(&lock->section);
}
