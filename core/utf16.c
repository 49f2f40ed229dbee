#include "core/utf16.h"

#include <string.h>

#define REPLACEMENT 0xfffd

static uint32_t unit_at(const struct utf16 *utf16, size_t offset)
{
	const unsigned char *at = utf16->from->bytes + utf16->from->at + offset;

	return utf16->is_big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* The character that starts with the unit high; of a pair low is the other half, and *is_pair. */
static uint32_t join_units(uint32_t high, uint32_t low, bool *is_pair)
{
	*is_pair = high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff;
	if (*is_pair)
		return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
	return high < 0xd800 || high > 0xdfff ? high : REPLACEMENT;
}

/* The character at hand, of ready bytes; takes its bytes. */
static uint32_t take_char(struct utf16 *utf16, size_t ready)
{
	bool is_pair;
	uint32_t c = join_units(unit_at(utf16, 0), ready >= 4 ? unit_at(utf16, 2) : 0, &is_pair);

	utf16->from->at += is_pair ? 4 : 2;
	return c;
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

static uint32_t little_unit(const unsigned char *bytes, size_t index, size_t count)
{
	return index < count ? (uint32_t)bytes[2 * index] | (uint32_t)bytes[2 * index + 1] << 8 : 0;
}

size_t utf16_text(const unsigned char *bytes, size_t units, char *text, size_t size)
{
	size_t needed = 0, used = 0;

	for (size_t i = 0; i < units && little_unit(bytes, i, units); i++) {
		unsigned char utf8[4];
		bool is_pair;
		size_t len = put_char(join_units(little_unit(bytes, i, units),
					      little_unit(bytes, i + 1, units), &is_pair),
			utf8);

		if (used == needed && needed + len < size) {
			memcpy(text + used, utf8, len);
			used += len;
		}
		needed += len;
		i += is_pair;
	}
	if (size)
		text[used] = '\0';
	return needed;
}
