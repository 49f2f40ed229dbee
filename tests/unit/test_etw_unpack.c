/* The published examples of MS-XCA, a handmade case for every branch, and damaged input. */
#include "tests/unit/t.h"

#include "core/base/memory.h"
#include "core/etw/etw_file.h"

#define ALPHABET "abcdefghijklmnopqrstuvwxyz"
#define MELODY                                                                                     \
	"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G "    \
	"F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D"

struct sample {
	unsigned format;
	const unsigned char *bytes;
	size_t len;
	const char *text; /* text, which is repeated `times` times */
	size_t times;
	bool has_nul; /* the NUL is part of the text */
};

static const unsigned char alphabet_xpress[] = "\x3f\0\0\0" ALPHABET;
static const unsigned char abc_xpress[] = "\xff\xff\xff\x1f"
					  "abc\x17\x00\x0f\xff\x26\x01";
static const unsigned char melody[] = "\x38\xb0\x88\x46\x23\x20\x00\x20\x47\x20\x41\x00\x10\xa2\x47"
				      "\x01\xa0\x45\x20\x44\x00\x08\x45"
				      "\x01\x50\x79\x00\xc0\x45\x20\x05\x24\x13\x88\x05\xb4\x02\x4a"
				      "\x44\xef\x03\x58\x02\x8c\x09\x16"
				      "\x01\x48\x45\x00\xbe\x00\x9e\x00\x04\x01\x18\x90";
static const unsigned char plain_chunk[] = "\x02\x30"
					   "xyz"; /* an uncompressed chunk */
/* Two matches of 11 and 12 bytes share one length byte. The first length is 8 + 3: the match stores
 * 7, and the byte's low half stores the rest, 1. The high half stores 2. */
static const unsigned char shared_half[] = "\xff\xff\xff\x6f"
					   "a\x07\x00\x21\x07\x00";
/* One match has a length field of three bytes, another of seven. They copy 0x100 and 0x10000
 * bytes. */
static const unsigned char long_16[] = "\xff\xff\xff\x7f"
				       "a\x07\x00\x0f\xff\xfd\x00";
static const unsigned char long_32[] = "\xff\xff\xff\x7f"
				       "a\x07\x00\x0f\xff\x00\x00\xfd\xff\x00\x00";

static unsigned char alphabet_huffman[256 + 20], abc_huffman[256 + 7];

__attribute__((constructor)) static void make_huffman(void)
{
	static const unsigned char lengths[] =
		"\x50\x55\x55\x55\x55\x55\x55\x55\x55\x55\x55\x45\x44\x04";

	memcpy(alphabet_huffman + 0x30, lengths, sizeof(lengths) - 1);
	alphabet_huffman[0x80] = 0x04;
	memcpy(alphabet_huffman + 256,
		"\xd8\x52\x3e\xd7\x94\x11\x5b\xe9\x19\x5f\xf9\xd6\x7c\xdf\x8d\x04\0\0\0\0", 20);
	memcpy(abc_huffman + 0x30, "\x30\x23", 2);
	abc_huffman[0x80] = 0x02;
	abc_huffman[0x8f] = 0x20;
	memcpy(abc_huffman + 256, "\xa8\xdc\x00\x00\xff\x26\x01", 7);
}

static const struct sample samples[] = {
	{ETW_XPRESS, alphabet_xpress, sizeof(alphabet_xpress) - 1, ALPHABET, 1, false},
	{ETW_XPRESS, abc_xpress, sizeof(abc_xpress) - 1, "abc", 100, false},
	{ETW_XPRESS, shared_half, sizeof(shared_half) - 1, "a", 1 + 11 + 12, false},
	{ETW_XPRESS, long_16, sizeof(long_16) - 1, "a", 1 + 0x100, false},
	{ETW_XPRESS, long_32, sizeof(long_32) - 1, "a", 1 + 0x10000, false},
	{ETW_LZNT1, melody, sizeof(melody), MELODY, 1, true},
	{ETW_LZNT1, plain_chunk, sizeof(plain_chunk) - 1, "xyz", 1, false},
	{ETW_XPRESS_HUFFMAN, alphabet_huffman, sizeof(alphabet_huffman), ALPHABET, 1, false},
	{ETW_XPRESS_HUFFMAN, abc_huffman, sizeof(abc_huffman), "abc", 100, false},
};
#define SAMPLES (sizeof(samples) / sizeof(*samples))

/* Unpacks from and to blocks of exactly these sizes, so that the sanitizer detects overruns. */
static bool unpack(const struct sample *sample, const unsigned char *bytes, size_t len,
	size_t to_bytes, const char *expected)
{
	unsigned char *from = xmalloc(len ? len : 1), *to = xmalloc(to_bytes ? to_bytes : 1);
	bool is_right;

	memcpy(from, bytes, len);
	is_right = etw_unpack(sample->format, from, len, to, to_bytes);
	if (is_right && expected)
		assert_memory_equal(to, expected, to_bytes);
	free(from);
	free(to);
	return is_right;
}

static char *text_of(const struct sample *sample, size_t *len)
{
	size_t each = strlen(sample->text) + sample->has_nul;
	char *text = xmalloc(each * sample->times + 1);

	for (size_t i = 0; i < sample->times; i++)
		memcpy(text + i * each, sample->text, each);
	*len = each * sample->times;
	return text;
}

TEST(samples_unpack)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		size_t len;
		char *text = text_of(&samples[i], &len);

		assert_true(unpack(&samples[i], samples[i].bytes, samples[i].len, len, text));
		free(text);
	}
}

TEST(what_is_cut_short_is_refused)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		size_t len;
		char *text = text_of(&samples[i], &len);

		for (size_t cut = 0; cut < samples[i].len; cut++) {
			/* Even without the last bits of Huffman's data the output may be
			 * complete. */
			bool is_right = unpack(&samples[i], samples[i].bytes, cut, len, NULL);

			assert_true(!is_right || samples[i].format == ETW_XPRESS_HUFFMAN ||
				    cut + 2 >= samples[i].len);
		}
		assert_false(
			unpack(&samples[i], samples[i].bytes, samples[i].len, len + 70000, NULL));
		free(text);
	}
}

TEST(any_byte_may_be_another)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		unsigned char bytes[512];
		size_t len;
		char *text = text_of(&samples[i], &len);

		for (size_t at = 0; at < samples[i].len; at++) {
			for (unsigned value = 0; value < 256; value += 5) {
				memcpy(bytes, samples[i].bytes, samples[i].len);
				bytes[at] ^= (unsigned char)(value + 1);
				unpack(&samples[i], bytes, samples[i].len, len, NULL);
				unpack(&samples[i], bytes, samples[i].len, len / 2, NULL);
			}
		}
		free(text);
	}
}

TEST(other_formats_are_refused)
{
	unsigned char bytes[8] = {0};

	assert_false(etw_unpack(0, bytes, 4, bytes, 4));
	assert_false(etw_unpack(5, bytes, 4, bytes, 4));
}
