/*
 * The processes that a loop takes snapshots of (series_loop.h), each with what is known of its series.
 */
#ifndef SNAPSHOT_SERIES_MEMBERS_H
#define SNAPSHOT_SERIES_MEMBERS_H

#include "snapshot/series/series_loop.h"

struct series_member {
	struct series_process id;
	void *process; /* NULL: it could not be opened */
	enum err_code refused; /* why, when that was said already */
	uint64_t written;
	/* When growth is watched. */
	bool has_base;
	uint64_t base_bytes; /* private bytes at the last snapshot */
	int64_t retry_at_ms, retry_ms; /* after one that failed; retry_ms 0: none did */
};

struct series_members {
	const struct series_plan *plan;
	const struct series_ops *ops;
	void *ctx;
	struct series_member *items; /* in the order of find() */
	size_t count, cap;
	struct series_result result;
	struct err said; /* the last trouble of looking, which is not said twice in a row */
	struct err several; /* who was found where one was meant, without how large */
	bool has_shot;
	int64_t shot_ms; /* when the last snapshot, of whomever, was begun */
	bool has_stayed; /* one that has ended had two files or more; the loop forgets it */
};

void series_members_release(struct series_members *members);

/* Of those that could be opened: all, and those that have not all of their files. */
size_t series_members_living(const struct series_members *members);
size_t series_members_unfinished(const struct series_members *members);

/* Whether a member has all the files that were asked for. */
bool series_member_is_full(
	const struct series_members *members, const struct series_member *member);

/* Looks who is there, and takes in those that are not known yet. Those that have ended are seen first. 0; an
 * error of find(); when none is living: -ERR_NO_PROCESS, -ERR_MANY, or why the last one could not be opened. */
int series_members_look(struct series_members *members, struct err *err);

/* Lets go those that have ended, and says so. */
void series_members_reap(struct series_members *members);

/* Says the line; and "PLACE: reason". */
void series_say(const struct series_members *members, const char *format, ...) PRINTF_LIKE(2, 3);
void series_say_err(const struct series_members *members, const struct err *err);

/* The same, but not when the last one was the same. */
void series_say_once(struct series_members *members, const struct err *err);
/* That nobody is there. */
void series_say_waiting(struct series_members *members);

#endif
