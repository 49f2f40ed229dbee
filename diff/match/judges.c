#include "diff/match/judges.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "core/err.h"
#include "core/thread.h"

#define THREADS_MAX 8
#define SERIES_AT_ONCE 256

struct judging {
	const struct trend_axis *axis;
	size_t count;
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *by);
	void *ctx;
	atomic_size_t next;
	atomic_bool is_short; /* of memory: number 0 had none */
};

static void judge_some(void *ctx, unsigned number)
{
	struct judging *judging = ctx;
	struct trend_judge *by = trend_judge_new(judging->axis);
	size_t from;

	if (!by && !number)
		atomic_store(&judging->is_short, true);
	while (by && (from = atomic_fetch_add(&judging->next, SERIES_AT_ONCE)) < judging->count) {
		for (size_t i = from; i < from + SERIES_AT_ONCE && i < judging->count; i++)
			judging->judge_one(judging->ctx, i, by);
	}
	trend_judge_free(by);
}

int judges_run(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *by), void *ctx)
{
	struct judging judging = {.axis = axis, .count = count, .judge_one = judge_one, .ctx = ctx};
	size_t pieces = count / SERIES_AT_ONCE + 1;
	unsigned threads = thread_cores();

	threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	threads = threads < pieces ? threads : (unsigned)pieces;
	thread_run(threads, judge_some, &judging);
	return atomic_load(&judging.is_short) ? -ERR_NOMEM : 0;
}
