/* Sorting dumps into series, and the order of each. */
#ifndef DIFF_SERIES_LIST_H
#define DIFF_SERIES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/hdiff.h"
#include "diff/read/dump_sums.h"

/*
 * Series: which of many dumps are compared with each other, and in which order.
 *
 * A process is identified by its pid, the second in which it started, and its image; a pid that was
 * used again is another process. Dumps that lack one of these belong to one process with others
 * that lack it, too. Snapshots of a process are in the order of their times; if none has a time, in
 * the order in which they were given. If only some have a time, the smaller set is left out.
 */

/* Reason why a snapshot is left out. */
enum dump_use {
	USE_IT,
	USE_DOUBLE, /* one process and time with another snapshot, which is kept */
	USE_WARM_UP,
	USE_OUTSIDE, /* outside --since and --until */
	USE_TIMELESS, /* without a time, although --since or --until was given */
	/* Only some dumps of its process have a time, and this one belongs to the smaller set; if
	 * both are equal, those without a time are left out. */
	USE_LACKS_TIME,
	USE_HAS_TIME,
};

struct timed_dump {
	const struct dump_sums *dump;
	size_t number; /* its index among the given dumps */
	size_t process; /* from 0, in order of their starts */
	bool is_timeless; /* the process is ordered without times */
	enum dump_use use;
	size_t twin; /* USE_DOUBLE: number of the dump that is kept */
};

struct order_filter {
	size_t warm_up; /* number of dumps left out at the start of each process */
	struct moment since, until;
};

/* Fills snapshots[0..count), process by process, each in order, with the use of each snapshot. */
void dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *filter);

/* Returns the name of a dump's image without its folder, which lives as long as the dump, or
 * NULL. */
const char *dump_image(const struct dump_sums *dump);

/* Return true if both dumps are of one process, and of one moment of it. */
bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b);
bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b);

/* Returns true if the child's process was started by the parent's. The parent must have started
 * first, because pids are reused. */
bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent);

/* Corrects the times of dumps of one process by the machine's running clock, which is never set;
 * most dumps are assumed to be dated correctly. The callback, if not NULL, is called for each
 * corrected dump, with its original time. */
typedef void (*dated_fn)(void *ctx, struct dump_sums *dump, int64_t stated_ms);
void dumps_settle_clocks(struct dump_sums *const *dumps, size_t count, dated_fn told, void *ctx);

/* Returns a dump whose date is known to be wrong, unless the machine's clock orders all dumps;
 * otherwise NULL. */
const struct dump_sums *dumps_find_doubt(const struct dump_sums *dumps, size_t count);

/* Returns "wrong" or "not known". */
const char *dumps_doubt_words(const struct dump_sums *dump);

/* Returns true if both dumps record their programs and these differ. */
bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b);

/* Sorts inputs->dumps as the options request, releases those that are left out, and fills the
 * series except for their comparisons. Returns 0; -ERR_USAGE if nothing is left, or if there is no
 * series of the requested number. */
int series_list_trend(struct inputs *inputs, struct err *err);

#endif
