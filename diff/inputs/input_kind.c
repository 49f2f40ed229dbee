#include "diff/inputs/input_kind.h"

#include <stdbool.h>
#include <string.h>

#include "core/date.h"
#include "core/os.h"

static bool is_read_once(const char *path)
{
	return !strcmp(path, "-") || os_is_special(path);
}

/* Looks for the first sign of what a file is, where a peek shows nothing but messages of the symbol
 * engine. */
static int look_further(const char *path, enum file_kind *kind, struct err *err)
{
	struct source *source;
	int rc = source_open(&source, path, err);

	if (rc)
		return rc;
	rc = file_kind_find(kind, source, err);
	source_close(source);
	return rc;
}

int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err)
{
	const char *bytes;
	int64_t len = source_peek(source, &bytes, err);

	if (len == -ERR_CUT) /* there is nothing that could be used */
		return err_set(err, ERR_EMPTY, path, "what is packed in it is cut off");
	if (len < 0)
		return (int)len;
	*kind = file_kind_of(bytes, (size_t)len);
	*words = report_is(bytes, (size_t)len);
	if (*kind != FILE_UNKNOWN || *words)
		return 0;
	*words = "nor is it a comparison";
	if ((size_t)len < SOURCE_PEEK_BYTES)
		return 0;
	if (!is_read_once(path))
		return look_further(path, kind, err);
	*words = "nor does it start like a comparison; in a file more is searched";
	return 0;
}

bool input_is_log(struct source *source)
{
	char time[DATE_TEXT_BYTES];
	const char *bytes, *blank;
	int64_t ms, len = source_peek(source, &bytes, NULL);

	blank = len > 0 ? memchr(bytes, ' ', (size_t)len) : NULL;
	if (!blank || blank - bytes >= DATE_TEXT_BYTES)
		return false;
	memcpy(time, bytes, (size_t)(blank - bytes));
	time[blank - bytes] = '\0';
	return !date_parse(time, &ms);
}
