/* Compressed texts. If the first byte of an input is one of PACKINGS, the rest is a text. The
 * target compresses the text in this way, and reading must return the text unchanged, or repaired
 * with an equal number of lines. With any other first byte, the rest is a file that is read as it
 * is. The result must not depend on the read size. */
#include "tests/fuzz/fuzz.h"

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/dump/dump.h"
#include "core/dump/pasted.h"
#include "core/dump/source.h"

enum { AS_GZIP, AS_MEMBERS, AS_UTF16_LE, AS_UTF16_BE, AS_UTF16_IN_GZIP, AS_UTF8, PACKINGS };
#define TEXT_MAX ((size_t)4 << 20) /* maximum output bytes; a longer text is not read to its end */

static void add_gzip(struct buf *to, const void *bytes, size_t len)
{
	z_stream stream = {0};

	HOLDS(deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	buf_reserve(to, deflateBound(&stream, len) + 100);
	stream.next_in = (unsigned char *)(uintptr_t)bytes;
	stream.avail_in = (unsigned)len;
	stream.next_out = (unsigned char *)to->data + to->len;
	stream.avail_out = (unsigned)(to->cap - to->len);
	HOLDS(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	to->len += stream.total_out;
	deflateEnd(&stream);
}

static void add_unit(struct buf *to, uint32_t unit, bool is_big)
{
	unsigned char bytes[2] = {(unsigned char)(is_big ? unit >> 8 : unit),
		(unsigned char)(is_big ? unit : unit >> 8)};

	buf_add(to, bytes, 2);
}

static void add_utf16(struct buf *to, const char *text, bool is_big)
{
	uint32_t code;
	size_t len;

	add_unit(to, 0xfeff, is_big);
	for (; (len = text_utf8(text, &code)); text += len) {
		if (code > 0xffff)
			add_unit(to, 0xd800 + ((code - 0x10000) >> 10), is_big);
		add_unit(to, code > 0xffff ? 0xdc00 + ((code - 0x10000) & 0x3ff) : code, is_big);
	}
}

static void pack(struct buf *to, unsigned packing, const char *text, size_t len)
{
	struct buf inner = {0};

	switch (packing) {
	case AS_GZIP: add_gzip(to, text, len); break;
	case AS_MEMBERS:
		add_gzip(to, text, len / 3);
		add_gzip(to, text + len / 3, len - len / 3);
		break;
	case AS_UTF16_LE: add_utf16(to, text, false); break;
	case AS_UTF16_BE: add_utf16(to, text, true); break;
	case AS_UTF16_IN_GZIP:
		add_utf16(&inner, text, false);
		add_gzip(to, inner.data, inner.len);
		break;
	default: buf_add(to, "\xef\xbb\xbf", 3); buf_add(to, text, len);
	}
	buf_release(&inner);
}

/* Makes a valid UTF-8 text with a unique beginning: compressed texts are recognized by their first
 * bytes. */
static char *sound_text(const uint8_t *bytes, size_t len)
{
	char *text = xmalloc(len + 2);
	uint32_t code;

	text[0] = '\n';
	memcpy(text + 1, bytes, len);
	text[len + 1] = '\0';
	for (char *at = text; at < text + len + 1;) {
		size_t taken = text_utf8(at, &code);

		if (!taken)
			*at = '?';
		at += taken ? taken : 1;
	}
	return text;
}

static int read_all(const char *path, size_t step, struct buf *text)
{
	const char *ahead;
	struct source *source;
	struct err err = {0};
	int64_t got, peeked;

	HOLDS(!source_open(&source, path, NULL));
	peeked = source_peek(source, &ahead, &err);
	HOLDS(peeked <= (int64_t)SOURCE_PEEK_BYTES);
	if (peeked > 0)
		buf_add(text, ahead, (size_t)peeked); /* compared below */
	buf_reserve(text, step);
	do {
		size_t at = text->len - (peeked > 0 ? (size_t)peeked : 0);

		buf_reserve(text, step);
		got = source_read(source, text->data + text->len, step, &err);
		if (got <= 0)
			break;
		HOLDS((size_t)got <= step);
		for (size_t i = 0; peeked > 0 && i < (size_t)got && at + i < (size_t)peeked; i++)
			HOLDS(text->data[at + i] == text->data[text->len + i]);
		text->len += (size_t)got;
	} while (text->len < TEXT_MAX);
	HOLDS(got >= 0 || (int)err.code == -got);
	if (peeked > 0) {
		text->len -= (size_t)peeked;
		memmove(text->data, text->data + peeked, text->len);
	}
	source_close(source);
	return got < 0 ? (int)got : 0;
}

static size_t line_count(const char *text, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += text[i] == '\n';
	return count;
}

static void check_text(const struct buf *whole, const char *text)
{
	size_t len = strlen(text), peeked = len < SOURCE_PEEK_BYTES ? len : SOURCE_PEEK_BYTES;
	struct pasted pasted;
	bool is_mended;

	pasted_init(&pasted);
	is_mended = pasted_find(&pasted, text, peeked);
	pasted_release(&pasted);
	if (is_mended)
		HOLDS(line_count(whole->data, whole->len) == line_count(text, len));
	else
		HOLDS(whole->len == len && !memcmp(whole->data, text, len));
}

static void scan(const char *path)
{
	struct dump_source stream;
	struct dump_sink sink = {0};
	struct source *source;

	HOLDS(!source_open(&source, path, NULL));
	stream = source_stream(source);
	dump_scan(&stream, &sink, NULL);
	source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const size_t steps[] = {1, 7, 4096};
	bool is_made = len && bytes[0] < PACKINGS;
	char *text = is_made ? sound_text(bytes + 1, len - 1) : NULL;
	struct buf file = {0}, whole = {0};
	const char *path;
	int rc;

	if (!len)
		return 0;
	if (is_made)
		pack(&file, bytes[0], text, len);
	else
		buf_add(&file, bytes + 1, len - 1);
	path = fuzz_file(0, file.data, file.len);
	rc = read_all(path, (size_t)1 << 20, &whole);
	if (is_made)
		HOLDS(!rc);
	if (is_made)
		check_text(&whole, text);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && whole.len < TEXT_MAX; i++) {
		struct buf parts = {0};

		HOLDS(read_all(path, steps[i], &parts) == rc && parts.len == whole.len);
		HOLDS(!parts.len || !memcmp(parts.data, whole.data, parts.len));
		buf_release(&parts);
	}
	if (whole.len < TEXT_MAX)
		scan(path);
	buf_release(&whole);
	buf_release(&file);
	free(text);
	return 0;
}
