/* Sorting dumps into series, and the order of each series. */
#ifndef DIFF_SERIES_LIST_H
#define DIFF_SERIES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/hdiff.h"
#include "diff/read/dump_sums.h"

/*
 * Series: which dumps are compared with each other, and in which order.
 *
 * A process is identified by its pid, the second in which it started, and its image. If a pid was
 * used again, that is another process. Dumps that lack one of these data belong to one process with
 * other dumps that lack it. Snapshots of a process are in the order of their times. If none has a
 * time, they are in the order in which they were given. If only some have a time, the smaller set
 * is left out. */

/* Reason why a snapshot is left out. */
enum dump_use {
	USE_IT,
	/* duplicate of another snapshot (one process and time), which is used instead */
	USE_DOUBLE,
	USE_WARM_UP,
	USE_OUTSIDE, /* outside --since and --until */
	USE_TIMELESS, /* without a time, although --since or --until was given */
	/* Only some dumps of the process have a time, and this dump belongs to the smaller set. If
	 * both sets are equally large, those without a time are left out. */
	USE_LACKS_TIME,
	USE_HAS_TIME,
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

/* Fills snapshots[0..count), process by process, each in order. Sets the use of each snapshot. */
void dumps_order(struct timed_dump *snapshots, const struct dump_sums *dumps, size_t count,
	const struct order_filter *filter);

/* Returns the name of a dump's image without its folder, or NULL. The name lives as long as the
 * dump. */
const char *dump_image(const struct dump_sums *dump);

/* Return true if both dumps are of one process. The second function also requires the same
 * moment. */
bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b);
bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b);

/* Returns true if the parent's process started the child's. The parent must have started first,
 * because pids are reused. */
bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent);

/* Corrects the times of dumps of one process using the machine's running clock, which is never set.
 * Most dumps are assumed to be dated correctly. If the callback is not NULL, it is called for each
 * corrected dump, with the dump's original time. */
typedef void (*dated_fn)(void *ctx, struct dump_sums *dump, int64_t stated_ms);
void dumps_correct_clocks(struct dump_sums *const *dumps, size_t count, dated_fn told, void *ctx);

/* Returns a dump whose date is known to be wrong, or NULL. Returns NULL if the machine's clock
 * orders all dumps. */
const struct dump_sums *dumps_find_doubt(const struct dump_sums *dumps, size_t count);

/* Returns "wrong" or "not known". */
const char *dumps_doubt_words(const struct dump_sums *dump);

/* Returns true if both dumps record their programs and these differ. */
bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b);

/* Sorts inputs->dumps as the options request, releases those that are left out, and fills the
 * series except for their comparisons. Returns 0. Returns -ERR_USAGE if nothing is left, or if no
 * series has the requested number. */
int series_list_trend(struct inputs *inputs, struct err *err);

#endif
