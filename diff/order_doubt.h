/*
 * Doubts about the order of dumps.
 *
 * Dumps without the machine's running clock, such as UMDH's logs, are sorted by their dates, which
 * are wrong if the clock was set. The order is in doubt if it contradicts consecutive numbers in
 * the names, or the order in which the user named three or more logs of UMDH. Names that count
 * backwards, and files named from the newest to the oldest, contradict nothing; nor do files named
 * in alphabetic order, in which a shell expands patterns, or files whose numbers agree with their
 * times.
 *
 * The place of a dump is also in doubt if its date is wrong, or more than a year from the next,
 * unless names or arguments confirm it. */
#ifndef DIFF_ORDER_DOUBT_H
#define DIFF_ORDER_DOUBT_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/read/dump_sums.h"

struct dump_place {
	struct dump_sums *dump;
	size_t number; /* index among the given dumps */
	bool is_used; /* not left out */
};

struct order_rules {
	bool is_by_name; /* the user gave no other order than that of the names */
	bool is_pair; /* two dumps are compared: there are no rates */
	bool force; /* only warn */
};

/* Checks the dumps of one process, which must be sorted by time. For dumps in doubt, adds warnings
 * and sets `date_doubt` and `is_misplaced`. Returns the last dump that received a warning, or
 * NULL. */
const struct dump_sums *order_check(
	const struct dump_place *places, size_t count, const struct order_rules *rules);

#endif
