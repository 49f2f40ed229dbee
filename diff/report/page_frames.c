/* The distinct frames of a page. */
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/report/json.h"

/* Makes a key that is equal for equal frames. The key omits the offset in a function, because the
 * offset differs for each call that the function makes. */
static void make_key(struct buf *key, const struct frame *frame)
{
	const char *texts[] = {frame_module(frame), frame->function, frame->file};

	buf_clear(key);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_add(key, texts[i] ? "+" : "-", 1);
		if (texts[i])
			buf_add(key, texts[i], strlen(texts[i]) + 1);
	}
	buf_add(key, &frame->line, sizeof(frame->line));
	buf_add(key, frame->is_inline ? "i" : "", 1);
	if (!frame->function)
		buf_add(key, &frame->offset_bytes, sizeof(frame->offset_bytes));
	if (!frame->function && !frame->module)
		buf_add(key, &frame->addr, sizeof(frame->addr));
}

size_t page_frame_number(struct page_frames *frames, const struct frame *frame)
{
	const uint64_t *known;
	struct frame *item;

	make_key(&frames->key, frame);
	known = table_find(&frames->numbers, frames->key.data, frames->key.len);
	if (known)
		return *known;
	table_add(&frames->numbers, frames->key.data, frames->key.len, frames->count);
	array_grow((void **)&frames->items, &frames->cap, frames->count, sizeof(*frames->items));
	item = &frames->items[frames->count];
	*item = *frame;
	item->has_addr = !frame->function && !frame->module;
	if (frame->function)
		item->offset_bytes = 0;
	return frames->count++;
}
