#include "snapshot/command/series_options.h"

#include <string.h>

#include "core/duration.h"
#include "core/kv.h"
#include "core/os.h"
#include "core/size.h"

#define SPAN_MIN_MS INT64_C(1000)
#define SPAN_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

int series_span_parse(const char *option, const char *text, int64_t *ms, struct err *err)
{
	int64_t span;

	if (duration_parse(text, &span))
		return err_set(err, ERR_USAGE, option,
			"'%s' is no span of time; it is given as 30s, 30m, 1h30m or 2d", text);
	if (span < SPAN_MIN_MS || span > SPAN_MAX_MS)
		return err_set(err, ERR_USAGE, option, "%s is not between 1s and 365d", text);
	*ms = span;
	return 0;
}

static int parse_size(const char *option, const char *text, uint64_t *bytes, struct err *err)
{
	uint64_t size;

	if (size_parse(text, strlen(text), &size) || !size)
		return err_set(err, ERR_USAGE, option,
			"'%s' is no size; it is given as 65536, 64K, 1.5M or 2G", text);
	*bytes = size;
	return 0;
}

int series_growth_parse(const char *text, uint64_t *bytes, struct err *err)
{
	return parse_size("--growth", text, bytes, err);
}

static int parse_count(const char *option, const char *text, uint64_t *count, struct err *err)
{
	uint64_t number;

	if (kv_number(text, 10, &number) || !number || number > INT32_MAX)
		return err_set(err, ERR_USAGE, option, "'%s' is no number of files", text);
	*count = number;
	return 0;
}

static int parse_on_exit(const char *text, bool *waits, struct err *err)
{
	*waits = !strcmp(text, "wait");
	return *waits || !strcmp(text, "stop") ?
		       0 :
		       err_set(err, ERR_USAGE, "--on-exit", "it is stop or wait");
}

static int parse_keep(const char *text, size_t *keep_count, struct err *err)
{
	uint64_t count = 0;
	int rc = parse_count("--keep", text, &count, err);

	if (!rc)
		*keep_count = (size_t)count;
	return rc;
}

int series_option(struct series_request *request, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_SERIES_COUNT:
		request->given = "--count";
		return parse_count("--count", value, &request->file_count, err);
	case OPT_SERIES_KEEP:
		request->given = "--keep";
		return parse_keep(value, &request->keep_count, err);
	case OPT_SERIES_MAX_BYTES:
		request->given = "--max-bytes";
		return parse_size("--max-bytes", value, &request->keep_bytes, err);
	case OPT_SERIES_ON_EXIT:
		request->given = "--on-exit";
		return parse_on_exit(value, &request->waits, err);
	case OPT_SERIES_ALL:
		request->given = "--all";
		request->takes_all = true;
		return 0;
	case OPT_SERIES_LOG:
		request->given = "--log";
		request->log = value;
		return 0;
	default: break;
	}
	id = process_option(&request->process, id, value, err);
	return id > 0 ? dump_option(&request->take, id, value, err) : id;
}

/* What needs the name of a process. */
static int check_name(const struct series_request *request, struct err *err)
{
	if (request->takes_all && !request->process.name)
		return err_set(err, ERR_USAGE, "--all", "it needs a name: -pn NAME");
	if (request->waits && !request->process.name)
		return err_set(err, ERR_USAGE, "--on-exit wait",
			"the process that comes back has another number: give -pn NAME");
	return 0;
}

/* What needs names that differ from each other. */
static int check_names(const struct series_request *request, unsigned words, struct err *err)
{
	bool is_series = request->every_ms || request->keep_count != SIZE_MAX ||
			 request->keep_bytes != UINT64_MAX;

	if (is_series && !(words & (PATTERN_TIME | PATTERN_NUMBER)))
		return err_set(err, ERR_USAGE, request->out,
			"each snapshot needs a file of its own: put {time} or {n} into its name");
	if (request->takes_all && !(words & PATTERN_PID))
		return err_set(err, ERR_USAGE, request->out,
			"with --all each process needs a file of its own: put {pid} into its name");
	return 0;
}

bool series_is_log(const struct series_request *request, const char *path)
{
	if (!request->log || os_is_special(path))
		return false;
	return !strcmp(request->log, path) || os_same_file(request->log, path);
}

/* The one name that there is when the pattern has no words. */
static int check_log(const struct series_request *request, struct err *err)
{
	const struct file_names none = {.program = ""};
	struct buf path;
	int rc;

	buf_init(&path);
	if (dump_name_add(&path, request->out, &none, request->take.is_packed))
		rc = err_set(err, ERR_NOMEM, request->out, NULL);
	else
		rc = series_is_log(request, path.data) ?
			     err_set(err, ERR_USAGE, request->out, SERIES_IS_LOG) :
			     0;
	buf_release(&path);
	return rc;
}

int series_check(const struct series_request *request, unsigned *words, struct err *err)
{
	const char *what = request->given ? request->given : "-f";
	unsigned found = 0;
	int rc;

	if (!request->out || !strcmp(request->out, "-"))
		return err_set(err, ERR_USAGE, what, "it needs a file: -f OUT");
	if (request->file_count && !request->every_ms)
		return err_set(err, ERR_USAGE, "--count", "it needs --every T");
	rc = file_pattern_check(request->out, &found, err);
	if (!rc)
		rc = check_name(request, err);
	if (!rc)
		rc = check_names(request, found, err);
	if (!rc && !found)
		rc = check_log(request, err);
	if (!rc)
		*words = found;
	return rc;
}
