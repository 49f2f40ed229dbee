/*
 * The three compression formats of RtlCompressBuffer(), as specified by MS-XCA: Xpress (plain
 * LZ77), LZNT1 and Xpress Huffman. The input is not trusted: every read and every copy is bounded.
 */
#include <stdint.h>
#include <string.h>

#include "core/etw/etw_file.h"

/* Current positions in the input and the output. */
struct unpacking {
	const unsigned char *from, *from_end;
	unsigned char *begin, *to, *to_end;
};

static size_t left(const struct unpacking *at)
{
	return (size_t)(at->from_end - at->from);
}

static uint32_t take16(struct unpacking *at)
{
	uint32_t value = at->from[0] | (uint32_t)at->from[1] << 8;

	at->from += 2;
	return value;
}

/* Appends `len` bytes that are copied from the output, starting `back` bytes before its end. The
 * two ranges may overlap. */
static bool copy(struct unpacking *at, size_t back, size_t len)
{
	const unsigned char *source = at->to - back;
	size_t room = (size_t)(at->to_end - at->to);

	if (!back || back > (size_t)(at->to - at->begin) || len > room)
		return false;
	/* copies eight bytes at once, so up to seven bytes too many */
	if (back >= 8 && room >= len + 8) {
		unsigned char *to = at->to;

		for (size_t done = 0; done < len; done += 8)
			memcpy(to + done, source + done, 8);
	} else {
		for (size_t i = 0; i < len; i++)
			at->to[i] = source[i];
	}
	at->to += len;
	return true;
}

/* Xpress: plain LZ77. */

/* Reads the length of a match if the length does not fit into the token. The lengths of two matches
 * share a byte: `*half` points to the byte whose upper half is still unused, or is NULL. */
static bool read_length(struct unpacking *at, const unsigned char **half, size_t *len)
{
	uint32_t more;

	if (*half) {
		more = **half >> 4;
		*half = NULL;
	} else {
		if (!left(at))
			return false;
		*half = at->from++;
		more = **half & 15;
	}
	*len = more;
	if (more < 15)
		return true;
	if (!left(at))
		return false;
	more = *at->from++;
	*len = 15 + more;
	if (more < 255)
		return true;
	if (left(at) < 2)
		return false;
	more = take16(at);
	if (!more) {
		if (left(at) < 4)
			return false;
		more = take16(at);
		more |= take16(at) << 16;
	}
	/* if `more` is below 7, this wraps around, and the next line returns false */
	*len = more - 7;
	return more >= 7 + 15;
}

static bool unpack_xpress(struct unpacking *at)
{
	const unsigned char *half = NULL;
	uint32_t flags = 0, flag_count = 0;

	while (at->to < at->to_end) {
		if (!flag_count) {
			if (left(at) < 4)
				return false;
			flags = take16(at);
			flags |= take16(at) << 16;
			flag_count = 32;
			if (!flags && left(at) >= 32 && at->to_end - at->to >= 32) {
				memcpy(at->to, at->from, 32);
				at->to += 32;
				at->from += 32;
				flag_count = 0;
				continue;
			}
		}
		flag_count--;
		if (!(flags >> flag_count & 1)) {
			if (!left(at))
				return false;
			*at->to++ = *at->from++;
		} else {
			uint32_t match;
			size_t len;

			if (left(at) < 2)
				return false;
			match = take16(at);
			len = match & 7;
			if (len == 7) {
				if (!read_length(at, &half, &len))
					return false;
				len += 7;
			}
			if (!copy(at, (match >> 3) + 1, len + 3))
				return false;
		}
	}
	return true;
}

/* LZNT1. */

#define LZNT1_CHUNK 4096

/* Unpacks one chunk, from at->from to at->from_end, into at most LZNT1_CHUNK bytes. */
static bool unpack_chunk(struct unpacking *at)
{
	const unsigned char *begin = at->to;
	unsigned flags = 0, flag_count = 0;

	while (left(at) && at->to < at->to_end) {
		if (!flag_count) {
			flags = *at->from++;
			flag_count = 8;
			continue;
		}
		if (!(flags & 1)) {
			*at->to++ = *at->from++;
		} else {
			size_t done = (size_t)(at->to - begin);
			/* number of bits of the distance, which grows with the output */
			unsigned bits = 4;
			uint32_t match;

			if (left(at) < 2)
				return false;
			while (bits < 12 && (size_t)1 << bits < done)
				bits++;
			match = take16(at);
			if (!copy(at, (match >> (16 - bits)) + 1, (match & (0xffffu >> bits)) + 3))
				return false;
		}
		flags >>= 1;
		flag_count--;
	}
	return !left(at) || (left(at) == 1 && !flag_count);
}

static bool unpack_lznt1(struct unpacking *at)
{
	while (at->to < at->to_end && left(at) >= 2) {
		uint32_t head = take16(at);
		size_t bytes = (head & 0xfff) + 1;
		struct unpacking chunk = *at;

		if (!head || bytes > left(at))
			return false;
		chunk.from_end = at->from + bytes;
		chunk.begin = at->to;
		if ((size_t)(at->to_end - at->to) > LZNT1_CHUNK)
			chunk.to_end = at->to + LZNT1_CHUNK;
		if (head & 0x8000) {
			if (!unpack_chunk(&chunk))
				return false;
			at->to = chunk.to;
		} else {
			if (bytes > (size_t)(at->to_end - at->to))
				return false;
			memcpy(at->to, at->from, bytes);
			at->to += bytes;
		}
		at->from += bytes;
	}
	return at->to == at->to_end;
}

/* Xpress Huffman. */

#define SYMBOLS 512
#define BITS_MAX 15
#define HUFFMAN_CHUNK 65536

/* Fills table[], which is indexed by the next BITS_MAX bits. An entry contains a symbol and the
 * length of its code: symbol << 4 | length. */
static bool make_table(const unsigned char *lengths, uint16_t table[1 << BITS_MAX])
{
	size_t at = 0;

	for (unsigned bits = 1; bits <= BITS_MAX; bits++) {
		for (unsigned symbol = 0; symbol < SYMBOLS; symbol++) {
			size_t count = (size_t)1 << (BITS_MAX - bits);

			if ((lengths[symbol / 2] >> (symbol & 1) * 4 & 15) != bits)
				continue;
			if (at + count > (size_t)1 << BITS_MAX)
				return false;
			for (size_t i = 0; i < count; i++)
				table[at++] = (uint16_t)(symbol << 4 | bits);
		}
	}
	return at == (size_t)1 << BITS_MAX;
}

struct bits {
	uint32_t next; /* the next bits, left-aligned */
	int more; /* number of valid bits after the first 16 */
};

static void pass_bits(struct unpacking *at, struct bits *bits, unsigned count)
{
	bits->next <<= count;
	bits->more -= (int)count;
	if (bits->more < 0) {
		if (left(at) >= 2)
			bits->next |= take16(at) << -bits->more;
		else
			at->from = at->from_end;
		bits->more += 16;
	}
}

static bool unpack_huffman_chunk(struct unpacking *at, unsigned char *end)
{
	uint16_t table[1 << BITS_MAX];
	struct bits bits = {0};

	if (left(at) < SYMBOLS / 2 + 4 || !make_table(at->from, table))
		return false;
	at->from += SYMBOLS / 2;
	bits.next = take16(at) << 16;
	bits.next |= take16(at);
	bits.more = 16;
	while (at->to < end) {
		uint32_t code = table[bits.next >> (32 - BITS_MAX)], symbol = code >> 4, back_bits;
		size_t len, back = 1;

		pass_bits(at, &bits, code & 15);
		if (symbol < 256) {
			*at->to++ = (unsigned char)symbol;
			continue;
		}
		len = symbol & 15;
		back_bits = (symbol - 256) >> 4;
		if (len == 15) {
			if (!left(at))
				return false;
			len = *at->from++;
			if (len == 255) {
				if (left(at) < 2)
					return false;
				len = take16(at);
				if (!len) {
					if (left(at) < 4)
						return false;
					len = take16(at);
					len |= (size_t)take16(at) << 16;
				}
				if (len < 15)
					return false;
				len -= 15;
			}
			len += 15;
		}
		if (back_bits) {
			back = (size_t)1 << back_bits | bits.next >> (32 - back_bits);
			pass_bits(at, &bits, back_bits);
		}
		if (!copy(at, back, len + 3))
			return false;
	}
	return true;
}

static bool unpack_huffman(struct unpacking *at)
{
	while (at->to < at->to_end) {
		size_t room = (size_t)(at->to_end - at->to);

		if (!unpack_huffman_chunk(
			    at, at->to + (room < HUFFMAN_CHUNK ? room : HUFFMAN_CHUNK)))
			return false;
	}
	return true;
}

bool etw_unpack(unsigned format, const unsigned char *from, size_t from_bytes, unsigned char *to,
	size_t to_bytes)
{
	struct unpacking at = {from, from + from_bytes, to, to, to + to_bytes};

	switch (format) {
	case ETW_LZNT1: return unpack_lznt1(&at);
	case ETW_XPRESS: return unpack_xpress(&at);
	case ETW_XPRESS_HUFFMAN: return unpack_huffman(&at);
	default: return false;
	}
}
