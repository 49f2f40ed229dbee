#include "core/utf16.h"

#define REPLACEMENT 0xfffd

static uint32_t unit_at(const struct utf16 *utf16, size_t offset)
{
	const unsigned char *at = utf16->from->bytes + utf16->from->at + offset;

	return utf16->is_big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* The character at hand, of ready bytes; takes its bytes. */
static uint32_t take_char(struct utf16 *utf16, size_t ready)
{
	uint32_t high = unit_at(utf16, 0), low;

	if (high < 0xd800 || high > 0xdfff) {
		utf16->from->at += 2;
		return high;
	}
	low = high < 0xdc00 && ready >= 4 ? unit_at(utf16, 2) : 0;
	utf16->from->at += 2;
	if (low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	utf16->from->at += 2;
	return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

static size_t put_char(uint32_t c, unsigned char *to)
{
	size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = count; i-- > 1; c >>= 6)
		to[i] = (unsigned char)(0x80 | (c & 0x3f));
	to[0] = (unsigned char)(first[count] | c);
	return count;
}

int64_t utf16_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct utf16 *utf16 = ctx;
	struct feed *from = utf16->from;
	unsigned char *to = bytes;
	size_t used = 0;

	while (len - used >= UTF16_MIN_BYTES) {
		/* wait for more only when there is nothing yet to hand out */
		int64_t ready = used ? (int64_t)(from->end - from->at) : feed_need(from, 4, err);

		if (used && ready < 4)
			break;
		if (ready <= 0)
			return ready;
		if (ready == 1 && feed_error(from, err))
			return feed_error(from, err);
		if (ready == 1)
			return err_set(
				err, ERR_CUT, utf16->name, "its last character is not whole");
		used += put_char(take_char(utf16, (size_t)ready), to + used);
	}
	return (int64_t)used;
}
