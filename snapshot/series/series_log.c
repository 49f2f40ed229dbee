#include "snapshot/series/series_log.h"

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

static int add(const char *path, int64_t time_ms, const char *line, struct err *err)
{
	char date[DATE_TEXT_BYTES];
	struct buf text;
	int rc;

	buf_init(&text);
	if (buf_printf(&text, "%s %s", date_text(time_ms, date), line)) {
		rc = err_set(err, ERR_NOMEM, path, NULL);
	} else {
		text_harmless(text.data);
		rc = buf_add(&text, "\n", 1) ? err_set(err, ERR_NOMEM, path, NULL) :
					       add_text(path, text.data, text.len, err);
	}
	buf_release(&text);
	return rc;
}

int series_log_add(struct series_log *log, int64_t time_ms, const char *line, struct err *err)
{
	bool is_known = log->has_failed;
	int rc = log->path ? add(log->path, time_ms, line, err) : 0;

	log->has_failed = rc;
	return is_known ? 0 : rc;
}
