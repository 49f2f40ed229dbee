/*
 * Identity of dumps: finding dumps of one process, of one program or of one moment.
 *
 * A process is identified by its pid, its start time in seconds, its image, and its machine. A
 * reused pid is another process. A value that is missing in two dumps counts as equal. A machine may
 * be missing in one of them if both have a start time. */
#ifndef DIFF_DUMP_IDENTITY_H
#define DIFF_DUMP_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/read/dump_sums.h"

/* Orders processes, for sorting: dumps of one process are adjacent. dump_same_process() compares
 * neighbours, because a dump that lacks its machine is not equal to one that has it. */
int dump_process_order(const struct dump_sums *a, const struct dump_sums *b);

static inline int int64_order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Returns the name of a dump's image without its folder, or NULL. The name lives as long as the
 * dump. */
const char *dump_image(const struct dump_sums *dump);

/* Return true if both dumps are of one process. The second function also requires the same
 * moment. */
bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b);
bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b);

/* Returns true if the process of `parent` started the process of `child`. Pids are reused, so the
 * parent must be older. */
bool dump_is_child(const struct dump_sums *child, const struct dump_sums *parent);

#define DAY_MS 86400000 /* more than the greatest difference between time zones */

/* Corrects the times of dumps of one process, and stores the original times as `stated_ms`.
 * Compares them with the machine's running clock, which is never adjusted. Assumes that the newest
 * dump has the correct time. */
void dumps_correct_clocks(struct dump_sums *const *dumps, size_t count);

/* Returns true if the time of a dump was corrected by two seconds or more. */
bool dump_is_moved(const struct dump_sums *dump);

/* Returns a dump whose time is known to be wrong, or NULL. Also returns NULL if the machine's
 * running clock orders all dumps. */
const struct dump_sums *dumps_find_doubt(const struct dump_sums *dumps, size_t count);

/* Returns "wrong" or "not known". */
const char *dumps_doubt_words(const struct dump_sums *dump);

/* Returns true if the dumps record different programs. Returns false if one of them records
 * none. */
bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b);

#endif
