/* Kinds of files with text. A line that occurs only in one kind of file reveals the file's kind. */
#include "core/dump/file_kind.h"

#include <string.h>

#include "core/dump/pasted.h"
#include "core/dump/printed_line.h"

/* The kind of a file is searched for in this many bytes. Messages may come before the first line
 * that reveals it. */
#define FIND_BYTES_MAX ((size_t)16 << 20)

static enum file_kind kind_of_line(struct words line)
{
	struct row_text row;
	struct total_text total;
	enum line_kind kind = line_parse(line.text, line.len, &row, &total);

	if (kind == LINE_BYTES || kind == LINE_COUNTS || kind == LINE_TOTAL ||
		(kind == LINE_COMMENT && line_is_header(line)))
		return FILE_COMPARISON;
	return line_is_of_dump(line) ? FILE_DUMP : FILE_UNKNOWN;
}

enum file_kind file_kind_of(const char *bytes, size_t len)
{
	const char *end = bytes + len;
	enum file_kind kind = FILE_UNKNOWN;

	while (kind == FILE_UNKNOWN && bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		struct words line = {bytes, (size_t)((newline ? newline : end) - bytes)};

		kind = kind_of_line(line);
		bytes = newline ? newline + 1 : end;
	}
	return kind;
}

/* Progress of the search for a file's kind. */
struct beginning {
	struct source *source;
	size_t left_bytes;
};

static int64_t read_beginning(void *ctx, void *bytes, size_t len, struct err *err)
{
	struct beginning *from = ctx;
	int64_t got;

	len = len < from->left_bytes ? len : from->left_bytes;
	got = len ? source_read(from->source, bytes, len, err) : 0;
	if (got > 0)
		from->left_bytes -= (size_t)got;
	return got == -ERR_CUT ? 0 : got;
}

int file_kind_find(enum file_kind *kind, struct source *source, struct err *err)
{
	struct beginning beginning = {source, FIND_BYTES_MAX};
	struct dump_source from = {read_beginning, &beginning, source_name(source)};
	enum file_kind found = FILE_UNKNOWN;
	struct lines lines;
	struct line line;
	int rc = 0;

	lines_init(&lines, &from, err);
	while (found == FILE_UNKNOWN && (rc = lines_next(&lines, &line)) > 0) {
		if (!line.is_long)
			found = kind_of_line((struct words){line.text, line.len});
	}
	lines_release(&lines);
	if (rc < 0)
		return rc;
	*kind = found;
	return 0;
}

/* Returns the name of the kept kind of file that has such a line, or NULL. "12 bytes were written"
 * could be a line of a dump, but it is not data. */
static const char *kept_kind(struct words line)
{
	enum file_kind kind = kind_of_line(line);

	if (kind == FILE_COMPARISON)
		return "a UMDH comparison";
	return kind == FILE_DUMP && pasted_is_data(line.text, line.len) ? "a heap dump" : NULL;
}

const char *file_kind_kept(const char *path)
{
	struct beginning beginning = {.left_bytes = FIND_BYTES_MAX};
	struct dump_source from = {read_beginning, &beginning, path};
	const char *kind = NULL;
	struct lines lines;
	struct line line;
	struct err none;

	if (source_open(&beginning.source, path, &none))
		return NULL;
	lines_init(&lines, &from, &none);
	while (!kind && lines_next(&lines, &line) > 0) {
		if (!line.is_long)
			kind = kept_kind((struct words){line.text, line.len});
	}
	lines_release(&lines);
	source_close(beginning.source);
	return kind;
}
