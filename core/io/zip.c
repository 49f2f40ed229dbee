/*
 * Reads zip archives: first the list of entries at the end of the file, then one entry at a time,
 * inflated with zlib.
 */
#include "core/io/zip.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/io/file.h"

/* Signatures and sizes of the headers, from PKWARE's APPNOTE.TXT. */
enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END_64 = 0x06064b50 };
enum {
	LOCAL_BYTES = 30,
	CENTRAL_BYTES = 46,
	END_BYTES = 22,
	LOCATOR_BYTES = 20,
	END_64_BYTES = 56
};
#define COMMENT_MAX 65535
/* Logs with almost empty buffers compress extremely well, but such logs are not large. So an entry
 * that is larger than LARGE_BYTES is refused if its compression ratio exceeds LARGE_RATIO. */
#define LARGE_BYTES ((uint64_t)4 << 30)
#define LARGE_RATIO 300
#define CENTRAL_MAX ((uint64_t)64 << 20)
#define EXTRA_64 1
enum { STORED = 0, DEFLATED = 8, FLAG_ENCRYPTED = 1 };
#define PIECE ((size_t)1 << 18)

struct zip {
	char *path;
	struct os_file file;
	uint64_t file_bytes;
	struct zip_entry *entries;
	size_t count, cap;
	struct arena arena;
};

static uint32_t get(const unsigned char *at, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static uint64_t get64(const unsigned char *at)
{
	return get(at, 4) | (uint64_t)get(at + 4, 4) << 32;
}

static int bad(const struct zip *zip, struct err *err, const char *what)
{
	return err_set(err, ERR_BAD_ZIP, zip->path, "%s", what);
}

bool zip_is_head(const void *bytes, size_t len)
{
	return len >= 4 && get(bytes, 4) == LOCAL;
}

/* Finds the list of entries, starting from the end of the archive. */
static int find_list(
	struct zip *zip, uint64_t *offset, uint64_t *bytes, uint64_t *count, struct err *err)
{
	uint64_t most = COMMENT_MAX + END_BYTES + LOCATOR_BYTES;
	size_t len = zip->file_bytes < most ? (size_t)zip->file_bytes : (size_t)most, at;
	unsigned char *tail = xmalloc(len), big[END_64_BYTES];
	int rc = os_read_at(&zip->file, zip->file_bytes - len, tail, len) ?
			 err_set(err, ERR_READ, zip->path, NULL) :
			 0;

	for (at = len < END_BYTES ? 0 : len - END_BYTES + 1; !rc && at--;) {
		if (get(tail + at, 4) == END && at + END_BYTES + get(tail + at + 20, 2) <= len)
			break;
	}
	if (!rc && at == SIZE_MAX)
		rc = bad(zip, err, "the end is missing");
	if (!rc) {
		*count = get(tail + at + 10, 2);
		*bytes = get(tail + at + 12, 4);
		*offset = get(tail + at + 16, 4);
		if (at >= LOCATOR_BYTES && get(tail + at - LOCATOR_BYTES, 4) == 0x07064b50) {
			uint64_t where = get64(tail + at - LOCATOR_BYTES + 8);

			if (where > zip->file_bytes || zip->file_bytes - where < sizeof(big) ||
				os_read_at(&zip->file, where, big, sizeof(big)) ||
				get(big, 4) != END_64) {
				rc = bad(zip, err, "the end record is invalid");
			} else {
				*count = get64(big + 32);
				*bytes = get64(big + 40);
				*offset = get64(big + 48);
			}
		}
	}
	free(tail);
	if (!rc && (*offset > zip->file_bytes || *bytes > zip->file_bytes - *offset ||
			   *bytes > CENTRAL_MAX || *count > *bytes / CENTRAL_BYTES))
		rc = bad(zip, err, "the list of files is invalid");
	return rc;
}

/* Reads the sizes and offsets that did not fit into the header. */
static bool parse_extra(struct zip_entry *entry, const unsigned char *at, size_t len)
{
	uint64_t *const values[] = {&entry->bytes, &entry->packed_bytes, &entry->offset};

	while (len >= 4) {
		size_t bytes = get(at + 2, 2);
		const unsigned char *value = at + 4;

		if (bytes > len - 4)
			return false;
		for (size_t i = 0; get(at, 2) == EXTRA_64 && i < 3; i++) {
			if (*values[i] != UINT32_MAX)
				continue;
			if (bytes - (size_t)(value - at - 4) < 8)
				return false;
			*values[i] = get64(value);
			value += 8;
		}
		at += 4 + bytes;
		len -= 4 + bytes;
	}
	return true;
}

static int parse_list(
	struct zip *zip, const unsigned char *at, size_t len, uint64_t count, struct err *err)
{
	while (count--) {
		struct zip_entry entry;
		size_t name, extra, all;

		if (len < CENTRAL_BYTES || get(at, 4) != CENTRAL)
			return bad(zip, err, "the list of files is damaged");
		name = get(at + 28, 2);
		extra = get(at + 30, 2);
		all = CENTRAL_BYTES + name + extra + get(at + 32, 2);
		entry = (struct zip_entry){.flags = get(at + 8, 2),
			.method = get(at + 10, 2),
			.crc = get(at + 16, 4),
			.packed_bytes = get(at + 20, 4),
			.bytes = get(at + 24, 4),
			.offset = get(at + 42, 4)};
		if (all > len || !parse_extra(&entry, at + CENTRAL_BYTES + name, extra))
			return bad(zip, err, "the list of files is damaged");
		entry.name = arena_text(&zip->arena, (const char *)at + CENTRAL_BYTES, name);
		array_grow((void **)&zip->entries, &zip->cap, zip->count, sizeof(*zip->entries));
		zip->entries[zip->count++] = entry;
		at += all;
		len -= all;
	}
	return 0;
}

int zip_open(struct zip **zip, const char *path, struct err *err)
{
	struct zip *made = xcalloc(1, sizeof(*made));
	uint64_t offset = 0, bytes = 0, count = 0;
	unsigned char *list;
	int rc = os_open(&made->file, path, err);

	if (rc) {
		free(made);
		return rc;
	}
	made->path = xstrdup(path);
	made->file_bytes = os_size(&made->file);
	arena_init(&made->arena);
	rc = find_list(made, &offset, &bytes, &count, err);
	if (!rc) {
		list = xmalloc((size_t)bytes);
		rc = os_read_at(&made->file, offset, list, (size_t)bytes) ?
			     err_set(err, ERR_READ, path, NULL) :
			     parse_list(made, list, (size_t)bytes, count, err);
		free(list);
	}
	if (rc)
		zip_close(made);
	else
		*zip = made;
	return rc;
}

void zip_close(struct zip *zip)
{
	os_close(&zip->file);
	free(zip->path);
	free(zip->entries);
	arena_release(&zip->arena);
	free(zip);
}

size_t zip_count(const struct zip *zip)
{
	return zip->count;
}

const struct zip_entry *zip_entry(const struct zip *zip, size_t number)
{
	return &zip->entries[number];
}

/* ---------------------------------------------------------------- unpacking */

struct zip_unpacking {
	struct zip *zip;
	const struct zip_entry *entry;
	/* position and number of the remaining packed bytes; number of unpacked bytes so far */
	uint64_t at, left, out;
	uint32_t crc;
	unsigned char *from, *to;
	struct os_file file;
	const char *path;
};

static int write_unpacked(
	struct zip_unpacking *run, const unsigned char *bytes, size_t len, struct err *err)
{
	if (len > run->entry->bytes - run->out)
		return bad(run->zip, err, "a file in it is longer than recorded");
	run->out += len;
	run->crc = (uint32_t)crc32(run->crc, bytes, (uInt)len);
	return os_write(&run->file, bytes, len, run->path, err);
}

static int next_piece(struct zip_unpacking *run, size_t *len, struct err *err)
{
	*len = run->left < PIECE ? (size_t)run->left : PIECE;
	if (os_read_at(&run->zip->file, run->at, run->from, *len))
		return err_set(err, ERR_READ, run->zip->path, NULL);
	run->at += *len;
	run->left -= *len;
	return 0;
}

static int inflate_all(struct zip_unpacking *run, z_stream *stream, struct err *err)
{
	int state = Z_OK, rc = 0;
	size_t len;

	while (!rc && state == Z_OK) {
		if (!stream->avail_in && run->left) {
			rc = next_piece(run, &len, err);
			stream->next_in = run->from;
			stream->avail_in = (uInt)len;
		}
		stream->next_out = run->to;
		stream->avail_out = PIECE;
		if (!rc)
			state = inflate(stream, Z_NO_FLUSH);
		if (!rc)
			rc = write_unpacked(run, run->to, PIECE - stream->avail_out, err);
	}
	if (!rc && state != Z_STREAM_END)
		rc = bad(run->zip, err, "a file in it is damaged");
	return rc;
}

static int copy_bytes(struct zip_unpacking *run, struct err *err)
{
	z_stream stream = {0};
	int rc = 0;
	size_t len;

	if (run->entry->method == DEFLATED) {
		if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
			memory_out();
		rc = inflate_all(run, &stream, err);
		inflateEnd(&stream);
	}
	while (!rc && run->entry->method == STORED && run->left) {
		rc = next_piece(run, &len, err);
		if (!rc)
			rc = write_unpacked(run, run->from, len, err);
	}
	if (!rc && (run->out != run->entry->bytes || run->crc != run->entry->crc))
		rc = bad(run->zip, err, "a file in it is damaged");
	return rc;
}

int zip_unpack(struct zip *zip, size_t number, const char *path, struct err *err)
{
	const struct zip_entry *entry = &zip->entries[number];
	struct zip_unpacking run = {.zip = zip, .entry = entry, .path = path};
	unsigned char head[LOCAL_BYTES];
	int rc;

	if ((entry->method != STORED && entry->method != DEFLATED) || entry->flags & FLAG_ENCRYPTED)
		return bad(zip, err, "packed by an unknown method, or encrypted");
	if (entry->offset > zip->file_bytes || zip->file_bytes - entry->offset < sizeof(head) ||
		os_read_at(&zip->file, entry->offset, head, sizeof(head)) || get(head, 4) != LOCAL)
		return bad(zip, err, "a file in it is damaged");
	run.at = entry->offset + LOCAL_BYTES + get(head + 26, 2) + get(head + 28, 2);
	run.left = entry->packed_bytes;
	if (run.at > zip->file_bytes || run.left > zip->file_bytes - run.at)
		return bad(zip, err, "a file in it is cut short");
	if (entry->bytes > LARGE_BYTES && entry->bytes / LARGE_RATIO > entry->packed_bytes)
		return bad(zip, err, "a file in it would be hundreds of times its packed size");
	rc = file_append_open(&run.file, path, err);
	if (rc)
		return rc;
	run.from = xmalloc(PIECE);
	run.to = xmalloc(PIECE);
	rc = copy_bytes(&run, err);
	os_close(&run.file);
	free(run.from);
	free(run.to);
	return rc;
}
