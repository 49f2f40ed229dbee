#include "core/feed.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_BYTES 16 /* that a reader gets at least: it may hand out whole characters only */
#define DIRECT_BYTES 4096 /* larger reads need not be gathered here */

int feed_init(struct feed *feed, size_t cap, feed_reader *read, void *ctx)
{
	*feed = (struct feed){
		.read = read, .ctx = ctx, .bytes = malloc(cap + ROOM_BYTES), .cap = cap, .rc = 1};
	return feed->bytes ? 0 : -ERR_NOMEM;
}

void feed_release(struct feed *feed)
{
	free(feed->bytes);
	*feed = (struct feed){0};
}

static int64_t read_below(struct feed *feed, void *bytes, size_t len)
{
	int64_t got = feed->rc > 0 ? feed->read(feed->ctx, bytes, len, &feed->why) : 0;

	if (got > 0)
		return got;
	if (feed->rc > 0)
		feed->rc = (int)got;
	return 0;
}

int feed_error(const struct feed *feed, struct err *err)
{
	if (feed->rc < 0 && err)
		*err = feed->why;
	return feed->rc < 0 ? feed->rc : 0;
}

int64_t feed_need(struct feed *feed, size_t want, struct err *err)
{
	size_t ready = feed->end - feed->at;

	want = want < feed->cap ? want : feed->cap;
	if (ready >= want)
		return (int64_t)ready;
	memmove(feed->bytes, feed->bytes + feed->at, ready);
	feed->at = 0;
	feed->end = ready;
	while (feed->end < want && feed->rc > 0)
		feed->end += (size_t)read_below(
			feed, feed->bytes + feed->end, feed->cap + ROOM_BYTES - feed->end);
	return feed->end ? (int64_t)feed->end : feed_error(feed, err);
}

int64_t feed_read(struct feed *feed, void *bytes, size_t len, struct err *err)
{
	size_t ready = feed->end - feed->at;

	if (!len)
		return 0;
	if (!ready && len >= DIRECT_BYTES) {
		int64_t got = read_below(feed, bytes, len);

		return got ? got : feed_error(feed, err);
	}
	if (!ready) {
		int64_t got = feed_need(feed, 1, err);

		if (got <= 0)
			return got;
		ready = (size_t)got;
	}
	len = len < ready ? len : ready;
	memcpy(bytes, feed->bytes + feed->at, len);
	feed->at += len;
	return (int64_t)len;
}
