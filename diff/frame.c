#include "diff/frame.h"

#include <inttypes.h>
#include <stdlib.h>

void frames_init(struct frames *frames)
{
	*frames = (struct frames){0};
}

void frames_release(struct frames *frames)
{
	free(frames->items);
	free(frames->part_at);
	frames_init(frames);
}

void frames_clear(struct frames *frames)
{
	frames->count = frames->part_count = 0;
}

int frames_add(struct frames *frames, const struct frame *frame)
{
	if (array_grow((void **)&frames->items, &frames->cap, frames->count, sizeof(*frame)))
		return -ERR_NOMEM;
	frames->items[frames->count++] = *frame;
	return 0;
}

int frames_part(struct frames *frames)
{
	if (array_grow((void **)&frames->part_at, &frames->part_cap, frames->part_count,
		    sizeof(*frames->part_at)))
		return -ERR_NOMEM;
	frames->part_at[frames->part_count++] = frames->count;
	return 0;
}

int frame_name(const struct frame *frame, struct buf *buf)
{
	int rc;

	buf_clear(buf);
	if (!frame->module && !frame->function)
		return buf_printf(buf, "%" PRIX64, frame->addr);
	rc = frame->module ? buf_add_text(buf, frame->module) : 0;
	if (!rc && frame->function)
		rc = buf_add_text(buf, frame->module ? "!" : "");
	if (!rc && frame->function)
		return buf_add_text(buf, frame->function);
	return rc ? rc : buf_printf(buf, "+%" PRIX64, frame->offset_bytes);
}
