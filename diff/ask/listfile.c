#include "diff/ask/listfile.h"

#include <inttypes.h>
#include <string.h>

#include "core/buf.h"
#include "core/lines.h"
#include "core/source.h"

static const char blanks[] = " \t\r\v\f";

static int64_t read_source(void *ctx, void *bytes, size_t len, struct err *err)
{
	return source_read(ctx, bytes, len, err);
}

/* One line of the file, as it stands in text. */
static int take_line(char *text, listfile_line *take, void *ctx, const char *place, struct err *err)
{
	size_t len;

	text += strspn(text, blanks);
	for (len = strlen(text); len && strchr(blanks, text[len - 1]); len--)
		text[len - 1] = '\0';
	return *text && *text != '#' ? take(ctx, text, place, err) : 0;
}

static int next_line(
	struct lines *lines, const char *name, struct buf *text, struct buf *place, struct err *err)
{
	struct line line;
	int rc = lines_next(lines, &line);

	if (rc <= 0)
		return rc;
	buf_clear(text);
	buf_clear(place);
	if (buf_add(text, line.text, line.len) ||
		buf_printf(place, "%s:%" PRIu64, name, lines->number))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	if (line.is_long || memchr(line.text, '\0', line.len))
		return err_set(err, ERR_USAGE, place->data, "this is no line of text");
	return 1;
}

int listfile_read(const char *path, listfile_line *take, void *ctx, struct err *err)
{
	struct dump_source from = {.read = read_source};
	struct source *source;
	struct lines lines;
	struct buf text, place;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	buf_init(&text);
	buf_init(&place);
	from.ctx = source;
	from.name = source_name(source);
	rc = lines_init(&lines, &from, err);
	if (rc)
		err_set(err, ERR_NOMEM, NULL, NULL);
	while (!rc && (rc = next_line(&lines, from.name, &text, &place, err)) > 0)
		rc = take_line(text.data, take, ctx, place.data, err);
	lines_release(&lines);
	buf_release(&text);
	buf_release(&place);
	source_close(source);
	return rc;
}
