#include "snapshot/series/series_log.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/append.h"
#include "core/buf.h"
#include "core/date.h"
#include "core/text.h"

static int add_text(const char *path, const char *text, size_t len, struct err *err)
{
	struct buf old;
	int rc;

	buf_init(&old);
	if (buf_printf(&old, "%s.1", path))
		rc = err_set(err, ERR_NOMEM, path, NULL);
	else
		rc = append_line(path, text, len, SERIES_LOG_BYTES, old.data, err);
	buf_release(&old);
	return rc;
}

int series_log_start(struct series_log *log, const char *path, struct err *err)
{
	*log = (struct series_log){.path = path};
	return path ? add_text(path, "", 0, err) : 0;
}

/* Adds "DATE TEXT" to text, as one line. 0 or -ERR_NOMEM. */
static int add_line(struct buf *text, int64_t time_ms, const char *line)
{
	char date[DATE_TEXT_BYTES];
	size_t from = text->len;

	if (buf_printf(text, "%s %s", date_text(time_ms, date), line))
		return -ERR_NOMEM;
	text_harmless(text->data + from);
	return buf_add(text, "\n", 1);
}

/* And that lines before it are not there. */
static int add(const struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	char lost[80];
	struct buf text;
	int rc = 0;

	buf_init(&text);
	snprintf(lost, sizeof(lost), "%" PRIu64 " line%s could not be written and %s lost",
		log->lost, log->lost == 1 ? "" : "s", log->lost == 1 ? "is" : "are");
	if (log->lost)
		rc = add_line(&text, time_ms, lost);
	if (!rc)
		rc = add_line(&text, time_ms, line);
	if (rc)
		rc = err_set(err, ERR_NOMEM, log->path, NULL);
	else
		rc = add_text(log->path, text.data, text.len, err);
	buf_release(&text);
	return rc;
}

int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	bool is_known = log->lost;
	int rc = log->path ? add(log, time_ms, line, err) : 0;

	log->lost = rc ? log->lost + 1 : 0;
	return is_known ? 0 : rc;
}
