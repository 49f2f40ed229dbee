/*
 * Identity of dumps: which are of one process, one program or one moment.
 *
 * A process is identified by its pid, the second in which it started, and its image. If a pid was
 * used again, that is another process. Dumps that lack one of these data belong to one process with
 * other dumps that lack it. */
#ifndef DIFF_DUMP_IDENTITY_H
#define DIFF_DUMP_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "diff/read/dump_sums.h"

/* Orders processes. Returns 0 for dumps of one process, otherwise a negative or positive number. */
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

#endif
