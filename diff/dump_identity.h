/*
 * Identity of dumps: finding dumps of one process, of one program or of one moment.
 *
 * A process is identified by its pid, its start time in seconds, its image, and its machine. A
 * reused pid is another process. Logs of UMDH lack the start time; there, the bases of the program
 * and of ntdll identify the process, because they change when the system starts. A value that is missing in both dumps counts as equal. If both
 * dumps have a start time, the machine may be missing in one of them. */
#ifndef DIFF_DUMP_IDENTITY_H
#define DIFF_DUMP_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/read/dump_sums.h"

/* Orders dumps by process, for sorting. Dumps of one process become neighbours, but may compare as
 * unequal: one of them may lack its machine. To find where a process ends, compare neighbours with
 * dump_same_process(). */
int dump_process_order(const struct dump_sums *a, const struct dump_sums *b);

static inline int int64_order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Returns the name of a dump's image without its folder, or NULL. The name lives as long as the
 * dump. */
const char *dump_image(const struct dump_sums *dump);

/* Returns the base of the program, or of ntdll, in a log of UMDH. Returns 0 if it is unknown, and for
 * other dumps. */
uint64_t dump_code_base(const struct dump_sums *dump, enum code_base which);

/* Returns true if two logs of UMDH have the same pid, program and machine, but are of two
 * processes. */
bool dump_reuses_pid(const struct dump_sums *a, const struct dump_sums *b);

/* Returns the file name of a module that has another size in `b` than in `a`, so that its builds differ, or
 * NULL. Prefers the program. Ignores modules whose builds both dumps record, and those of Windows. */
const char *dump_other_build(const struct dump_sums *a, const struct dump_sums *b);

/* Returns true if two files contain the same dump, perhaps packed or with other line ends. */
bool dump_is_copy(const struct dump_sums *a, const struct dump_sums *b);

/* dump_same_process() returns true if both dumps are of one process. dump_same_snapshot() also
 * requires the same moment or, for logs of UMDH, the same text: it may read both files. */
bool dump_same_process(const struct dump_sums *a, const struct dump_sums *b);
bool dump_same_snapshot(const struct dump_sums *a, const struct dump_sums *b);

/* Returns true if all dumps are of one process, so that an address is in the same module in each that
 * has a module there. Logs of UMDH may lack their modules, which show the program and its base: what
 * a log lacks is no difference. */
bool dumps_share_modules(const struct dump_sums *dumps, size_t count);

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

/* Returns a dump whose time is wrong or not known, or NULL. Also returns NULL if all dumps record
 * the machine's running clock, because that clock orders them. A time in the future counts only
 * `with_ahead`. */
const struct dump_sums *dumps_find_doubt(
	const struct dump_sums *dumps, size_t count, bool with_ahead);

/* Returns "wrong", "not known" or "in doubt", with the remedy. */
const char *dumps_doubt_words(const struct dump_sums *dump);

/* Returns true if the dumps are of different programs. Returns false if the program of one of them
 * is unknown. */
bool dump_other_program(const struct dump_sums *a, const struct dump_sums *b);

#endif
