#include "diff/read/comparison_find.h"

#include <string.h>

#include "core/lines.h"
#include "diff/read/comparison_line.h"
#include "diff/read/comparison_notes.h"

#define FIND_BYTES_MAX ((size_t)16 << 20) /* of messages before the first sign of anything */

static enum file_kind kind_of_line(struct words line)
{
	struct row_text row;
	struct total_text total;
	enum line_kind kind = line_parse(line.text, line.len, &row, &total);

	if (kind == LINE_BYTES || kind == LINE_COUNTS || kind == LINE_TOTAL ||
		(kind == LINE_COMMENT && note_is_header(line)))
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

/* As much of a source as is worth looking at. */
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
	int rc = lines_init(&lines, &from, err);

	if (rc)
		return err_set(err, ERR_NOMEM, source_name(source), NULL);
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

const char *report_is(const char *bytes, size_t len)
{
	static const char json[] = "{\"schema\":\"hdiff/",
			  csv[] = "growth_bytes,new_bytes,old_bytes,",
			  groups[] = "self_growth_bytes,self_new_bytes,";
	struct words start = {bytes, len};

	if (words_start(start, json))
		return "it is a report in JSON; a report can be read back when it is text";
	if (words_start(start, csv) || words_start(start, groups))
		return "it is a report in CSV; a report can be read back when it is text";
	return NULL;
}
