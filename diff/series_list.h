/* Sorting dumps into series, and the order of each series. */
#ifndef DIFF_SERIES_LIST_H
#define DIFF_SERIES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/inputs.h"
#include "diff/options.h"
#include "diff/read/dump_sums.h"

/*
 * Series: which dumps are compared with each other, and in which order.
 *
 * Snapshots of a process (diff/dump_identity.h) are in the order of their times. If none has a
 * time, they are in the order in which they were given. If only some have a time, the smaller
 * group, with or without a time, is left out. */

/* Reason why a snapshot is left out. */
enum dump_use {
	USE_IT,
	/* duplicate (same process and time) of another snapshot, which is used instead */
	USE_DOUBLE,
	USE_WARM_UP,
	USE_OUTSIDE, /* outside --since and --until */
	USE_TIMELESS, /* without a time, although --since or --until was given */
	/* Only some dumps of the process have a time, and this dump belongs to the smaller set. If
	 * both sets are equally large, the dumps without a time are left out. */
	USE_LACKS_TIME,
	USE_HAS_TIME,
	/* the corrected time is outside --since and --until; the recorded time is not */
	USE_MOVED,
};

struct timed_dump {
	const struct dump_sums *dump;
	size_t number; /* index among the given dumps */
	size_t process; /* from 0, in order of their starts */
	bool is_timeless; /* the process is ordered without times */
	enum dump_use use;
	size_t twin; /* USE_DOUBLE: number of the dump that is used instead */
};

struct order_filter {
	size_t warm_up; /* number of dumps left out at the start of each process */
	struct moment since, until;
};

/* Fills snapshots[0..count), process by process and in order within each process. Sets the use of
 * each snapshot. */
void dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *filter);

/* Sorts the dumps as the options request, checks the order (diff/order_doubt.h), releases the unused ones, and fills the series except for
 * their comparisons. Returns 0. Returns -ERR_USAGE if nothing is left, or if no series has the
 * requested number. */
int series_list_trend(struct inputs *inputs, const struct file_list *list, struct err *err);

#endif
