/*
 * Layers that turn a file into text: raw bytes, gunzip, UTF-16 to UTF-8, repair of pasted text.
 * Each layer reads from the feed below it; a feed buffers bytes for lookahead. Readers read bytes
 * from the top layer, or lines (lines.c).
 */
#include "core/dump/source.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/line_prefix.h"
#include "core/dump/pasted.h"

#define STEP_BYTES ((size_t)64 << 10)

/*
 * Buffered bytes between two layers. The reader can look at buffered bytes before consuming them.
 * An error of the layer below is returned after all bytes that precede the error, and again on
 * every later read.
 */

/* Returns the number of bytes read, 0 at the end, or a negative error code. `len` is at least 16,
 * so that whole characters fit. */
typedef int64_t feed_reader(void *ctx, void *bytes, size_t len, struct err *err);

struct feed {
	feed_reader *read;
	void *ctx;
	unsigned char *bytes; /* bytes[at..end) are buffered */
	size_t cap, at, end;
	/* result of `read`: 1 to continue, 0 at the end, or an error, which `why` describes */
	int rc;
	struct err why;
};

/* minimum size of the buffer passed to a layer, because a layer may return only whole characters */
#define ROOM_BYTES 16
#define DIRECT_BYTES 4096 /* larger reads bypass the buffer */

/* Initializes a feed that buffers up to `cap` bytes. `ctx` must outlive the feed. */
static void feed_init(struct feed *feed, size_t cap, feed_reader *read, void *ctx)
{
	*feed = (struct feed){
		.read = read, .ctx = ctx, .bytes = xmalloc(cap + ROOM_BYTES), .cap = cap, .rc = 1};
}

static void feed_release(struct feed *feed)
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

/* Returns the error that follows the buffered bytes, or 0. */
static int feed_error(const struct feed *feed, struct err *err)
{
	if (feed->rc < 0 && err)
		*err = feed->why;
	return feed->rc < 0 ? feed->rc : 0;
}

/* Buffers at least `want` bytes, or all remaining bytes, at feed->bytes + feed->at. `want` must not
 * exceed the feed's capacity. Returns the number of buffered bytes. If no bytes are left, returns 0
 * or the error. */
static int64_t feed_need(struct feed *feed, size_t want, struct err *err)
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

/* Reads up to `len` bytes. Returns the same values as a feed_reader. */
static int64_t feed_read(struct feed *feed, void *bytes, size_t len, struct err *err)
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

/* gzip: one or more members, optionally followed by zeros. */
#define GZIP_WINDOW (16 + MAX_WBITS) /* in zlib, 16 means gzip only */

struct gunzip {
	struct feed *from;
	const char *name;
	z_stream stream;
	bool in_member, is_damaged;
};

/* Returns true if the bytes begin with gzip's magic number. */
static bool gunzip_is_magic(const unsigned char *bytes, size_t len)
{
	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/* `from` must outlive the result. `name` is used in messages and is not copied. */
static struct gunzip *gunzip_new(struct feed *from, const char *name)
{
	struct gunzip *gunzip = xcalloc(1, sizeof(*gunzip));

	gunzip->from = from;
	gunzip->name = name;
	gunzip->in_member = true;
	if (inflateInit2(&gunzip->stream, GZIP_WINDOW) != Z_OK)
		memory_out();
	return gunzip;
}

static void gunzip_free(struct gunzip *gunzip)
{
	if (!gunzip)
		return;
	inflateEnd(&gunzip->stream);
	free(gunzip);
}

static int fail(const struct gunzip *gunzip, enum err_code code, struct err *err)
{
	return err_set(err, code, gunzip->name, "%s",
		code == ERR_CUT ? "the gzip data end in the middle" : "damaged gzip data");
}

/* Skips zeros up to the end, because tapes and some file systems pad files with zeros. */
static int64_t pass_padding(struct gunzip *gunzip, struct err *err)
{
	struct feed *from = gunzip->from;
	int64_t ready;

	while ((ready = feed_need(from, 1, err)) > 0) {
		if (from->bytes[from->at])
			return fail(gunzip, ERR_READ, err);
		from->at++;
	}
	return ready;
}

/* Continues after a member. Returns 1 if another member begins, 0 at the end, or an error. */
static int64_t next_member(struct gunzip *gunzip, struct err *err)
{
	struct feed *from = gunzip->from;
	int64_t ready = feed_need(from, 2, err);
	const unsigned char *at = from->bytes + from->at;

	if (ready <= 0)
		return ready;
	if (ready == 1 && *at == 0x1f)
		return fail(gunzip, ERR_CUT, err);
	if (!gunzip_is_magic(at, (size_t)ready))
		return pass_padding(gunzip, err);
	if (inflateReset(&gunzip->stream) != Z_OK)
		return fail(gunzip, ERR_READ, err);
	gunzip->in_member = true;
	return 1;
}

/* Unpacks some of the buffered bytes. Returns the number of unpacked bytes (0 if more input is
 * needed) or an error. */
static int64_t unpack(struct gunzip *gunzip, void *bytes, uInt len, struct err *err)
{
	struct feed *from = gunzip->from;
	z_stream *stream = &gunzip->stream;
	int64_t ready;
	int rc;

	if (gunzip->is_damaged)
		return fail(gunzip, ERR_READ, err);
	ready = feed_need(from, 1, err);
	if (ready <= 0)
		return ready ? ready : fail(gunzip, ERR_CUT, err);
	stream->next_in = from->bytes + from->at;
	stream->avail_in = (uInt)ready; /* a feed holds less than 4 GiB */
	stream->next_out = bytes;
	stream->avail_out = len;
	rc = inflate(stream, Z_NO_FLUSH);
	from->at = from->end - stream->avail_in;
	gunzip->in_member = rc != Z_STREAM_END;
	if (rc == Z_MEM_ERROR)
		memory_out();
	gunzip->is_damaged = rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
	/* return the unpacked bytes first; the next call returns the error */
	return len - stream->avail_out;
}

/* A feed_reader; `ctx` is a struct gunzip. Returns an error only after all unpacked bytes: -ERR_CUT
 * if the compressed data ends early, -ERR_READ if the data is damaged, or the error of the feed
 * below. */
static int64_t gunzip_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct gunzip *gunzip = ctx;
	int64_t got = 0;

	if (len > INT_MAX)
		len = INT_MAX;
	while (len && !got) {
		if (!gunzip->in_member) {
			got = next_member(gunzip, err);
			if (got <= 0)
				return got;
		}
		got = unpack(gunzip, bytes, (uInt)len, err);
	}
	return got;
}

/* Converts UTF-16 text with a byte order mark to UTF-8. PowerShell's redirection writes UTF-16. */

struct utf16 {
	struct feed *from; /* positioned after the byte order mark */
	const char *name; /* for messages */
	bool is_big; /* big-endian */
	bool is_over; /* 8-bit text follows */
	uint64_t bytes, lines; /* read so far, not counting the byte order mark */
	unsigned run; /* number of most recent characters that may be 8-bit text */
};

/* Minimum number of bytes to buffer; also the maximum length of a UTF-8 character. */
#define UTF16_MIN_BYTES 4
#define UTF16_MARK_BYTES 2

static uint32_t unit_at(const struct utf16 *utf16, size_t offset)
{
	const unsigned char *at = utf16->from->bytes + utf16->from->at + offset;

	return utf16->is_big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

/* Reads the next character; `ready` is the number of buffered bytes. */
static uint32_t read_char(struct utf16 *utf16, size_t ready)
{
	bool is_pair;
	uint32_t c =
		text_join_utf16(unit_at(utf16, 0), ready >= 4 ? unit_at(utf16, 2) : 0, &is_pair);

	utf16->from->at += is_pair ? 4 : 2;
	return c;
}

#define RUN_MAX 32 /* this many such characters in a row are 8-bit text; fewer may be real UTF-16 */

static bool is_text_byte(uint32_t byte)
{
	return (byte >= ' ' && byte < 0x7f) || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Looks for 8-bit text that another program appended to UTF-16 text. Read as UTF-16, a CR LF of
 * 8-bit text is U+0A0D, which Unicode does not assign. */
static void check_char(struct utf16 *utf16, uint32_t c)
{
	utf16->bytes += c > 0xffff ? 4 : 2;
	utf16->lines += c == '\n';
	utf16->run = is_text_byte(c & 0xff) && is_text_byte(c >> 8) ? utf16->run + 1 : 0;
	utf16->is_over = utf16->run == RUN_MAX || c == 0x0a0d;
}

static int fail_over(const struct utf16 *utf16, struct err *err)
{
	char place[600];

	snprintf(place, sizeof(place), "%.500s:%" PRIu64, utf16->name, utf16->lines + 1);
	return err_set(err, ERR_ENCODINGS, place,
		"UTF-16 up to byte %" PRIu64 ", 8-bit text after it",
		UTF16_MARK_BYTES + utf16->bytes - 2 * utf16->run);
}

/* A feed_reader; `ctx` is a struct utf16, and `len` is at least UTF16_MIN_BYTES. Half a surrogate
 * pair becomes U+FFFD. Returns -ERR_CUT if the text ends with half a code unit, and -ERR_ENCODINGS
 * at the start of 8-bit text. Either error is returned only after all text before it. */
static int64_t utf16_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct utf16 *utf16 = ctx;
	struct feed *from = utf16->from;
	unsigned char *to = bytes;
	size_t used = 0;

	while (!utf16->is_over && len - used >= UTF16_MIN_BYTES) {
		/* wait for more bytes only if nothing can be returned yet */
		int64_t ready = used ? (int64_t)(from->end - from->at) : feed_need(from, 4, err);
		uint32_t c;

		if (used && ready < 4)
			break;
		if (ready <= 0)
			return ready;
		if (ready == 1 && feed_error(from, err))
			return feed_error(from, err);
		if (ready == 1)
			return err_set(
				err, ERR_CUT, utf16->name, "the last character is incomplete");
		c = read_char(utf16, (size_t)ready);
		check_char(utf16, c);
		used += text_write_utf8(c, to + used);
	}
	return used ? (int64_t)used : fail_over(utf16, err);
}

/* Each layer reads from the previous layer: raw, unpacked (if packed), text, mended (if
 * repaired). */
struct source {
	struct os_file file;
	char *name;
	struct feed raw, unpacked, text, mended;
	struct feed *top; /* text, or mended if needed */
	struct gunzip *gunzip; /* NULL: not packed */
	struct utf16 utf16; /* utf16.from is NULL: not UTF-16 */
	struct line_prefix prefix;
	struct pasted pasted;
	/* repaired lines; the text from `lines_at` on has not been returned yet */
	struct buf lines;
	size_t lines_at;
	bool in_long; /* part of a long line was already returned */
	bool is_file;
	size_t mark_bytes;
};

static int64_t read_file(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct source *source = ctx;

	return os_read(&source->file, bytes, len, source->name, err);
}

static int64_t read_feed(void *ctx, void *bytes, size_t len, struct err *err)
{
	return feed_read(ctx, bytes, len, err);
}

/* Adds a gunzip layer if the first bytes are gzip's magic number. Read errors are left for the next
 * read to report. */
static struct feed *find_packing(struct source *source)
{
	struct feed *raw = &source->raw;
	int64_t ready = feed_need(raw, 2, NULL);

	if (ready <= 0 || !gunzip_is_magic(raw->bytes + raw->at, (size_t)ready))
		return raw;
	source->gunzip = gunzip_new(raw, source->name);
	feed_init(&source->unpacked, STEP_BYTES, gunzip_read, source->gunzip);
	return &source->unpacked;
}

/* Skips a byte order mark and adds a layer for the mark's encoding. */
static void find_encoding(struct source *source, struct feed *from)
{
	int64_t ready = feed_need(from, 4, NULL);
	const unsigned char *at = from->bytes + from->at;
	bool is_utf32 = ready >= 4 && !memcmp(at, "\xff\xfe\0\0", 4); /* refused by readers */

	if (ready >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) {
		source->mark_bytes = 3;
	} else if (ready >= 2 && !is_utf32 &&
		   (!memcmp(at, "\xff\xfe", 2) || !memcmp(at, "\xfe\xff", 2))) {
		source->mark_bytes = UTF16_MARK_BYTES;
		source->utf16 =
			(struct utf16){.from = from, .name = source->name, .is_big = at[0] == 0xfe};
	}
	from->at += source->mark_bytes;
	if (source->utf16.from)
		feed_init(&source->text, SOURCE_PEEK_BYTES, utf16_read, &source->utf16);
	else
		feed_init(&source->text, SOURCE_PEEK_BYTES, read_feed, from);
}

/* Repairs the buffered lines. Returns 1, 0 at the end, or an error. The result 1 does not imply
 * that there is output, because the repair may hold back all lines. */
static int mend_lines(struct source *source, struct err *err)
{
	struct feed *text = &source->text;
	struct buf *lines = &source->lines;
	int64_t ready = feed_need(text, DUMP_LINE_MAX + 2, err);

	buf_clear(lines);
	source->lines_at = 0;
	if (ready <= 0)
		pasted_end(&source->pasted, lines);
	while (text->at < text->end && lines->len < STEP_BYTES) {
		const char *line = (const char *)text->bytes + text->at;
		size_t at_hand = text->end - text->at;
		const char *newline = memchr(line, '\n', at_hand);
		size_t len = newline ? (size_t)(newline + 1 - line) : at_hand;

		if (!newline && lines->len)
			break; /* the line may continue in the next bytes */
		if (source->in_long || len > DUMP_LINE_MAX) {
			buf_add(lines, line, len);
		} else {
			const size_t skipped = line_prefix_bytes(&source->prefix, line, len);

			pasted_add(&source->pasted, line + skipped, len - skipped, lines);
		}
		source->in_long = !newline;
		text->at += len;
	}
	return ready > 0 || lines->len ? 1 : (int)ready;
}

/* A feed_reader; `ctx` is a struct source. */
static int64_t mended_read(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct source *source = ctx;

	while (source->lines_at == source->lines.len) {
		int rc = mend_lines(source, err);

		if (rc <= 0)
			return rc;
	}
	if (len > source->lines.len - source->lines_at)
		len = source->lines.len - source->lines_at;
	memcpy(bytes, source->lines.data + source->lines_at, len);
	source->lines_at += len;
	return (int64_t)len;
}

/* Appends the start of a text without the prefix of each line. */
static void remove_prefixes(
	const struct line_prefix *prefix, const char *text, size_t len, struct buf *plain)
{
	const char *end = text + len;

	for (const char *next; text < end; text = next) {
		size_t skipped;

		next = memchr(text, '\n', (size_t)(end - text));
		next = next ? next + 1 : end;
		skipped = line_prefix_bytes(prefix, text, (size_t)(next - text));
		buf_add(plain, text + skipped, (size_t)(next - text) - skipped);
	}
}

/* Adds a repair layer if the start of the text shows signs of damage. Read errors are left for the
 * next read to report. */
static void find_mending(struct source *source)
{
	struct feed *text = &source->text;
	int64_t ready = feed_need(text, SOURCE_PEEK_BYTES, NULL);
	const char *start = (const char *)text->bytes + text->at;
	struct buf plain;

	pasted_init(&source->pasted);
	buf_init(&source->lines);
	source->top = text;
	if (ready <= 0)
		return;
	if (line_prefix_find(&source->prefix, start, (size_t)ready)) {
		buf_init(&plain);
		remove_prefixes(&source->prefix, start, (size_t)ready, &plain);
		pasted_find(&source->pasted, plain.data, plain.len);
		buf_release(&plain);
	} else if (!pasted_find(&source->pasted, start, (size_t)ready)) {
		return;
	}
	feed_init(&source->mended, SOURCE_PEEK_BYTES, mended_read, source);
	source->top = &source->mended;
}

int source_open(struct source **source, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	struct source *made;
	struct os_file file;
	int rc = os_open(&file, path, err);

	if (rc)
		return rc;
	made = xcalloc(1, sizeof(*made));
	made->file = file;
	made->is_file = !is_stdin && os_size(&made->file);
	made->name = xstrdup(is_stdin ? "standard input" : path);
	feed_init(&made->raw, STEP_BYTES, read_file, made);
	find_encoding(made, find_packing(made));
	find_mending(made);
	*source = made;
	return 0;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	os_close(&source->file);
	gunzip_free(source->gunzip);
	feed_release(&source->raw);
	feed_release(&source->unpacked);
	feed_release(&source->text);
	feed_release(&source->mended);
	pasted_release(&source->pasted);
	buf_release(&source->lines);
	free(source->name);
	free(source);
}

const char *source_name(const struct source *source)
{
	return source->name;
}

int64_t source_peek(struct source *source, const char **bytes, struct err *err)
{
	int64_t ready = feed_need(source->top, SOURCE_PEEK_BYTES, err);

	if (ready >= 0)
		*bytes = (const char *)source->top->bytes + source->top->at;
	return ready;
}

int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err)
{
	return feed_read(source->top, bytes, len, err);
}

bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to)
{
	struct os_file file = source->file;

	if (!source->is_file || source->gunzip || source->utf16.from || source->mended.bytes)
		return false;
	*from = source->mark_bytes;
	*to = os_size(&file);
	return *to >= *from;
}

static int64_t read_stream(void *ctx, void *bytes, size_t len, struct err *err)
{
	return source_read(ctx, bytes, len, err);
}

struct dump_source source_stream(struct source *source)
{
	return (struct dump_source){read_stream, source, source_name(source)};
}

int source_read_at(struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err)
{
	int rc = os_read_at(&source->file, offset, bytes, len);

	return rc ? err_set(err, ERR_READ, source->name, NULL) : 0;
}
