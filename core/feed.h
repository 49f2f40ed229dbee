/*
 * Bytes on their way from one reader to the next, some of which the next may look at before it takes
 * them. An error of the reader below comes when all bytes before it were taken, and stays.
 */
#ifndef CORE_FEED_H
#define CORE_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* Returns how many bytes, 0 at the end, or a negative error code. len is 16 or more: there is room
 * for whole characters. */
typedef int64_t feed_reader(void *ctx, void *bytes, size_t len, struct err *err);

struct feed {
	feed_reader *read;
	void *ctx;
	unsigned char *bytes; /* at to end are at hand */
	size_t cap, at, end;
	int rc; /* of read: 1 goes on, 0 the end, or an error: */
	struct err why;
};

/* cap: so many bytes can be at hand. ctx must outlive the feed. 0 or -ERR_NOMEM; feed_release() in
 * both cases. */
int feed_init(struct feed *feed, size_t cap, feed_reader *read, void *ctx);
void feed_release(struct feed *feed);

/* How many bytes are at hand, from feed->bytes + feed->at on: want (up to cap) or more, or all that
 * are left. None: 0 at the end, or the error. */
int64_t feed_need(struct feed *feed, size_t want, struct err *err);

/* The error that comes behind what is at hand, or 0. */
int feed_error(const struct feed *feed, struct err *err);

/* Takes up to len bytes; returns as a feed_reader does. */
int64_t feed_read(struct feed *feed, void *bytes, size_t len, struct err *err);

#endif
