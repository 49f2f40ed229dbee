/* Judging many series of one axis: by several threads, each with a judge of its own. */
#ifndef DIFF_JUDGES_H
#define DIFF_JUDGES_H

#include <stddef.h>

#include "diff/trend/trend.h"

/* Calls judge_one for 0..count, in no order and several at once. 0 or -ERR_NOMEM. */
int judges_run(const struct trend_axis *axis, size_t count,
	void (*judge_one)(void *ctx, size_t index, struct trend_judge *by), void *ctx);

#endif
