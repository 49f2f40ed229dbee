#include "core/source.h"

#include <stdlib.h>
#include <string.h>

#include "core/feed.h"
#include "core/gunzip.h"
#include "core/os.h"
#include "core/utf16.h"

#define STEP_BYTES ((size_t)64 << 10)

/* Each layer reads from the one before it: raw, unpacked if it is packed, text. */
struct source {
	struct os_file file;
	char *name;
	struct feed raw, unpacked, text;
	struct gunzip *gunzip; /* NULL: it is not packed */
	struct utf16 utf16; /* from is NULL: it is no such text */
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

/* Chooses by the first bytes what unpacks the others. What cannot be read is left to the reader. */
static int find_packing(struct source *source, struct feed **from)
{
	struct feed *raw = &source->raw;
	int64_t ready = feed_need(raw, 2, NULL);

	*from = raw;
	if (ready <= 0 || !gunzip_is_magic(raw->bytes + raw->at, (size_t)ready))
		return 0;
	source->gunzip = gunzip_new(raw, source->name);
	if (!source->gunzip)
		return -ERR_NOMEM;
	*from = &source->unpacked;
	return feed_init(*from, STEP_BYTES, gunzip_read, source->gunzip);
}

/* The same by a byte order mark, which is taken. */
static int find_encoding(struct source *source, struct feed *from)
{
	int64_t ready = feed_need(from, 3, NULL);
	const unsigned char *at = from->bytes + from->at;

	if (ready >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)) {
		source->mark_bytes = 3;
	} else if (ready >= 2 && (!memcmp(at, "\xff\xfe", 2) || !memcmp(at, "\xfe\xff", 2))) {
		source->mark_bytes = 2;
		source->utf16 = (struct utf16){from, source->name, at[0] == 0xfe};
	}
	from->at += source->mark_bytes;
	return source->utf16.from ?
		       feed_init(&source->text, SOURCE_PEEK_BYTES, utf16_read, &source->utf16) :
		       feed_init(&source->text, SOURCE_PEEK_BYTES, read_feed, from);
}

int source_open(struct source **source, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	struct source *made = calloc(1, sizeof(*made));
	struct feed *from;
	int rc;

	if (!made)
		return err_set(err, ERR_NOMEM, name, NULL);
	rc = os_open(&made->file, path, err);
	if (rc) {
		free(made);
		return rc;
	}
	made->is_file = !is_stdin && os_size(&made->file);
	made->name = strdup(name);
	rc = made->name ? feed_init(&made->raw, STEP_BYTES, read_file, made) : -ERR_NOMEM;
	if (!rc)
		rc = find_packing(made, &from);
	if (!rc)
		rc = find_encoding(made, from);
	if (rc) {
		source_close(made);
		return err_set(err, ERR_NOMEM, name, NULL);
	}
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
	free(source->name);
	free(source);
}

const char *source_name(const struct source *source)
{
	return source->name;
}

int64_t source_peek(struct source *source, const char **bytes, struct err *err)
{
	int64_t ready = feed_need(&source->text, SOURCE_PEEK_BYTES, err);

	if (ready >= 0)
		*bytes = (const char *)source->text.bytes + source->text.at;
	return ready;
}

int64_t source_read(struct source *source, void *bytes, size_t len, struct err *err)
{
	return feed_read(&source->text, bytes, len, err);
}

bool source_is_plain(const struct source *source, uint64_t *from, uint64_t *to)
{
	struct os_file file = source->file;

	if (!source->is_file || source->gunzip || source->utf16.from)
		return false;
	*from = source->mark_bytes;
	*to = os_size(&file);
	return *to >= *from;
}

int source_read_at(struct source *source, uint64_t offset, void *bytes, size_t len, struct err *err)
{
	int rc = os_read_at(&source->file, offset, bytes, len);

	return rc ? err_set(err, ERR_READ, source->name, NULL) : 0;
}
