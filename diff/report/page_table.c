/* Tables of numbers in a page, and the choice of rows that fit in it. */
#include "diff/report/page_table.h"

#include <stdlib.h>
#include <string.h>

#include "diff/query/view.h"

#define FRAME_BYTES 60 /* of a frame in a page, without its texts */
#define ROW_BYTES 60 /* of a row in a page, without its frames */

void page_add_number(struct buf *table, uint64_t value)
{
	do {
		unsigned char byte = (value & 0x7f) | (value > 0x7f ? 0x80 : 0);

		buf_add(table, &byte, 1);
	} while (value >>= 7);
}

void page_add_signed(struct buf *table, int64_t value)
{
	page_add_number(table,
		value > 0 ? ((uint64_t)value << 1) - 1 : (uint64_t)0 - ((uint64_t)value << 1));
}

void page_write_table(struct json *json, const char *key, const struct buf *table)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *data = (const unsigned char *)table->data;

	json_open_line(json, key, '"');
	for (size_t i = 0; i < table->len; i += 3) {
		const size_t left = table->len - i;
		const uint32_t word = (uint32_t)data[i] << 16 |
				      (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
				      (left > 2 ? data[i + 2] : 0);
		const char text[] = {digits[word >> 18], digits[word >> 12 & 63],
			left > 1 ? digits[word >> 6 & 63] : '=',
			left > 2 ? digits[word & 63] : '='};

		out_write(json->out, text, sizeof(text));
	}
	json_close(json, '"');
}

static int by_weight(const void *a, const void *b)
{
	const struct page_row *const *x = a, *const *y = b;

	if ((*x)->weight != (*y)->weight)
		return (*x)->weight < (*y)->weight ? 1 : -1;
	return (*x)->shown < (*y)->shown ? -1 : (*x)->shown > (*y)->shown;
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) : 0;
}

/* Returns about how many bytes a row needs in the page, with those of its frames that no earlier
 * row has. */
static size_t bytes_of(struct json *json, const struct page_row *row, struct frames *frames)
{
	size_t bytes = ROW_BYTES + row->bytes;

	view_frames(json->view, json->view->rows[row->shown], frames);
	for (size_t i = 0; i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		const size_t known = json->frames->count;

		bytes += 5;
		if (page_frame_number(json->frames, frame) == known)
			bytes += FRAME_BYTES + text_bytes(frame->module) +
				 text_bytes(frame->function) + text_bytes(frame->file);
	}
	return bytes;
}

size_t page_choose_rows(struct json *json, struct page_row *rows, size_t count, size_t bytes_max)
{
	struct page_row **sorted = xcalloc(count + 1, sizeof(*sorted));
	struct frames frames;
	size_t bytes = 0, chosen = 0;

	for (size_t i = 0; i < count; i++)
		sorted[i] = &rows[i];
	qsort(sorted, count, sizeof(struct page_row *), by_weight);
	frames_init(&frames);
	for (; chosen < count; chosen++) {
		bytes += bytes_of(json, sorted[chosen], &frames);
		if (bytes > bytes_max)
			break;
		sorted[chosen]->is_listed = true;
	}
	frames_release(&frames);
	free(sorted);
	return chosen;
}
