/* Which dumps are compared with which, and in what order. */
#ifndef DIFF_SERIES_LIST_H
#define DIFF_SERIES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/hdiff.h"
#include "diff/read/dump_sums.h"

/*
 * Which dumps of many make a series, and in what order.
 *
 * A process is its pid, the second in which it started, and its image: a pid that was used again is
 * another process. Where a dump does not tell one of these, it is of one process with those that do not
 * tell it either. Snapshots of a process are in the order of their own times; where none of them tells a
 * time, all of them are in the order in which they were given. Where but some do, the fewer are left out.
 */

/* Why a snapshot is not used. */
enum dump_use {
	USE_IT,
	USE_DOUBLE, /* of one process and one time with another, that is kept */
	USE_WARM_UP,
	USE_OUTSIDE, /* of what --since and --until say */
	USE_TIMELESS, /* and one of these is given */
	/* Some dumps of its process tell their time and some do not, and it is of the fewer, or when there
	 * are as many, of those that do not. */
	USE_LACKS_TIME,
	USE_HAS_TIME,
};

struct timed_dump {
	const struct dump_sums *dump;
	size_t number; /* its place among those given */
	size_t process; /* from 0, the first to begin first */
	bool is_timeless; /* those of the process that are used have no time */
	enum dump_use use;
	size_t twin; /* USE_DOUBLE: the number of the one that is kept */
};

struct order_filter {
	size_t warm_up; /* that are left out of each process, the first ones */
	struct moment since, until;
};

/* Fills snapshots[0..count), process by process, each in its order, and says which are used. */
void dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *filter);

/* The name of a dump's image without its folder, as long as the dump lives; or NULL: it tells none. */
const char *dump_image(const struct dump_sums *dump);

/* Whether both are of one process, and of one moment of it. */
bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b);
bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b);

/* Whether the process of child was started by that of parent. A pid may be used again, but not before
 * what had it was there. */
bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent);

/*
 * Corrects the times of dumps of one process by the machine's clock, which is never set: most of them count as dated
 * rightly. told, or NULL, is called for each that is not, with the time that it had.
 */
typedef void (*dated_fn)(void *ctx, struct dump_sums *dump, int64_t stated_ms);
void dumps_settle_clocks(struct dump_sums *const *dumps, size_t count, dated_fn told, void *ctx);

/* Returns a dump whose date is known to be wrong, where the machine's clock does not order all of them; otherwise NULL. */
const struct dump_sums *dumps_find_doubt(const struct dump_sums *dumps, size_t count);

/* "wrong" or "not known". */
const char *dumps_doubt_words(const struct dump_sums *dump);

/* Whether both tell of which program they are, and it is not the same one. */
bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b);

/*
 * Puts inputs->dumps in order, releases those that are not wanted, and fills the series but for their
 * comparisons, as the options ask for. 0; -ERR_USAGE: nothing is left, or there is no series of that number.
 */
int series_list_trend(struct inputs *inputs, struct err *err);

#endif
