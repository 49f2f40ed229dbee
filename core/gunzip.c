#include "core/gunzip.h"

#include <limits.h>
#include <stdlib.h>

#include <zlib.h>

#define GZIP_WINDOW (16 + MAX_WBITS) /* zlib: 16 means gzip and nothing else */

struct gunzip {
	struct feed *from;
	const char *name;
	z_stream stream;
	bool in_member, is_damaged;
};

bool gunzip_is_magic(const unsigned char *bytes, size_t len)
{
	return len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

struct gunzip *gunzip_new(struct feed *from, const char *name)
{
	struct gunzip *gunzip = calloc(1, sizeof(*gunzip));

	if (!gunzip)
		return NULL;
	gunzip->from = from;
	gunzip->name = name;
	gunzip->in_member = true;
	if (inflateInit2(&gunzip->stream, GZIP_WINDOW) == Z_OK)
		return gunzip;
	free(gunzip);
	return NULL;
}

void gunzip_free(struct gunzip *gunzip)
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

/* Zeros up to the end: tapes and some file systems add them. */
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

/* Behind a member. 1: another one begins; 0: that was the last; or an error. */
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

/* Unpacks some of what is at hand. How many bytes (0: none yet), or an error. */
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
	stream->avail_in = (uInt)ready; /* a feed holds less */
	stream->next_out = bytes;
	stream->avail_out = len;
	rc = inflate(stream, Z_NO_FLUSH);
	from->at = from->end - stream->avail_in;
	gunzip->in_member = rc != Z_STREAM_END;
	if (rc == Z_MEM_ERROR)
		return err_set(err, ERR_NOMEM, gunzip->name, NULL);
	gunzip->is_damaged = rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
	return len - stream->avail_out; /* first what was unpacked */
}

int64_t gunzip_read(void *ctx, void *bytes, size_t len, struct err *err)
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
