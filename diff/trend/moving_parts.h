/*
 * The parts of a series in which its value changes at all.
 *
 * A process in which it never does, since it does not use the stack or uses it once when it starts,
 * says nothing of whether another one leaks: with four snapshots or more it is left out, and what is
 * left is judged as if it were all. Many stacks have the same parts, those of a module that was built
 * anew for instance, so what judging them needs is kept for some choices of parts.
 */
#ifndef DIFF_MOVING_PARTS_H
#define DIFF_MOVING_PARTS_H

#include "diff/trend/trend_kit.h"

#define MOVING_KEPT 4

struct moving_choice {
	struct trend_kit kit;
	bool *moves; /* of each part of the whole */
	bool is_made;
};

struct moving_parts {
	const struct trend_axis *axis;
	const struct trend_plan *whole;
	struct moving_choice kept[MOVING_KEPT];
	size_t next; /* which gives way to a new one */
	bool *moves; /* scratch */
	int64_t *times_ms;
	uint32_t *parts;
};

/* Borrows both. 0 or -ERR_NOMEM, and then nothing is to be released. Takes no memory where there is but
 * one part. */
int moving_parts_init(
	struct moving_parts *moving, const struct trend_axis *axis, const struct trend_plan *whole);
void moving_parts_release(struct moving_parts *moving);

/*
 * NULL: no part is to be left out; the whole is to be judged. Else what is needed for the parts that are
 * not, good until the next call; moving_parts_take() moves their values to the front.
 */
struct trend_kit *moving_parts_find(struct moving_parts *moving, const double *values);
void moving_parts_take(const struct moving_parts *moving, double *values);

#endif
