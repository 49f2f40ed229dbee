/* Plans of tasks: checks of a request's name, paths and times, and the arguments with which the
 * task runs hsnap. */
#include "snapshot/schedule/task.h"

#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/kv.h"
#include "snapshot/ifeo/ifeo.h"

/* An hour, even if the interval is shorter: no second run begins while the first is running. */
#define LIMIT_DEFAULT_MS INT64_C(3600000)
#define MINUTE_MS INT64_C(60000)
#define EVERY_MAX_MS (31 * INT64_C(86400000)) /* "repetitionType Complex Type", Microsoft Learn */
/* Limit of the schema in UTF-16 units, including the quotes around the program. */
#define PATH_UNITS 260
#define KEEP_MAX 1000000
#define START_MIN_MS INT64_C(315532800000) /* 1980 */

void task_plan_release(struct task_plan *plan)
{
	buf_release(&plan->program);
	buf_release(&plan->home);
	buf_release(&plan->folder);
	buf_release(&plan->arguments);
	buf_release(&plan->description);
	buf_release(&plan->start);
}

static bool has_variable(const char *text)
{
	return strchr(text, '%') || strstr(text, "$(");
}

int task_name_check(const char *name, struct err *err)
{
	int rc = ifeo_check_name(name, err);

	if (!rc && has_variable(name))
		rc = err_set(
			err, ERR_IMAGE_NAME, name, "%% and $( are for variables in Task Scheduler");
	return rc;
}

/* ---------------------------------------------------------------- paths */

/* Returns the number of bytes before the first name, or 0 if path is not a full path. */
static size_t root_length(const char *path)
{
	size_t server;

	if (((path[0] >= 'a' && path[0] <= 'z') || (path[0] >= 'A' && path[0] <= 'Z')) &&
		path[1] == ':' && path[2] == '\\')
		return 3;
	if (path[0] != '\\' || path[1] != '\\' || path[2] == '.')
		return 0;
	server = strcspn(path + 2, "\\");
	return server && path[2 + server] && path[3 + server] && path[3 + server] != '\\' ? 2 : 0;
}

/* Returns the path's number of UTF-16 units, including quotes, or 0 if the path is not text or has
 * a character that is not possible in names. */
static size_t count_units(const char *path, size_t root)
{
	size_t units = 2, len;
	uint32_t code;

	for (size_t at = 0; path[at]; at += len) {
		len = text_utf8(path + at, &code);
		if (!len || text_obeyed(path + at) || (at >= root && strchr("/:*?\"<>|", path[at])))
			return 0;
		units += code > 0xffff ? 2 : 1;
	}
	return units;
}

/*
 * Checks that `path` is a full path, "C:\..." or "\\server\share...", without characters that names
 * cannot contain. Refuses '%' and "$(", because Task Scheduler may expand environment variables and
 * $(Arg0) ("ExecAction.Path property", "RunEx method"). Also refuses paths that are too long for
 * Task Scheduler's schema. Returns 0 or -ERR_USAGE.
 */
static int check_path(const char *path, struct err *err)
{
	size_t root = root_length(path), units = root ? count_units(path, root) : 0;

	if (!root)
		return err_set(err, ERR_USAGE, path, "give a full path, such as C:\\dumps");
	if (!units)
		return err_set(err, ERR_USAGE, path, "contains a character that paths cannot have");
	if (has_variable(path))
		return err_set(err, ERR_USAGE, path,
			"Task Scheduler expands %% and $( as variables; choose another path");
	if (units > PATH_UNITS)
		return err_set(err, ERR_USAGE, path,
			"longer than the %d characters that Task Scheduler allows in a path",
			PATH_UNITS - 2);
	return 0;
}

/* Adds a full path with Windows' separators, at most one of them at the end. A user who is logged
 * on without a password has no rights on other machines, so paths there are refused for such a
 * user. */
static int add_path(
	struct buf *to, const char *option, const char *path, bool is_user, struct err *err)
{
	int rc;

	if (!path)
		return err_set(err, ERR_USAGE, option, "must be given");
	buf_add_text(to, path);
	for (char *at = to->data; *at; at++)
		*at = *at == '/' ? '\\' : *at;
	while (to->len > 1 && !strcmp(to->data + to->len - 2, "\\\\"))
		to->data[--to->len] = '\0';
	rc = check_path(to->data, err);
	if (!rc && is_user && to->data[0] == '\\')
		rc = err_set(err, ERR_USAGE, path,
			"with --as-user the task has no network; give %s on this machine", option);
	return rc;
}

/* ---------------------------------------------------------------- times */

/* Parses an interval in whole minutes, the unit of Task Scheduler. */
static int read_span(const char *option, const char *text, int64_t *ms, struct err *err)
{
	char from[DURATION_TEXT_BYTES], to[DURATION_TEXT_BYTES];
	int64_t value;

	if (!text)
		return err_set(err, ERR_USAGE, option, "must be given");
	if (duration_parse(text, &value) || value < MINUTE_MS || value > EVERY_MAX_MS ||
		value % MINUTE_MS)
		return err_set(err, ERR_USAGE, option,
			"%s: give whole minutes from %s to %s, such as 30m or 1h30m", text,
			duration_text(MINUTE_MS, from), duration_text(EVERY_MAX_MS, to));
	*ms = value;
	return 0;
}

/* Checks that the time exists, and adds it with seconds. */
static int read_start(struct buf *start, const char *text, struct err *err)
{
	size_t len = strlen(text);
	bool is_utc = len && text[len - 1] == 'Z';
	struct buf whole;
	int64_t ms;
	int rc = 0;

	len -= is_utc;
	buf_init(&whole);
	buf_printf(start, "%.*s%s", (int)len, text, len == strlen("2026-11-20T10:00") ? ":00" : "");
	buf_printf(&whole, "%sZ", start->data);
	if (is_utc)
		buf_add_text(start, "Z");
	if (whole.len != strlen("2026-11-20T10:00:00Z") || date_parse(whole.data, &ms) ||
		ms < START_MIN_MS)
		rc = err_set(err, ERR_USAGE, text,
			"give a time such as 2026-11-20T10:00, not before 1980");
	buf_release(&whole);
	return rc;
}

/* ---------------------------------------------------------------- program and arguments */

static int check_numbers(const struct task_request *request, struct err *err)
{
	uint64_t number;

	if (request->keep &&
		(kv_number(request->keep, 10, &number) || !number || number > KEEP_MAX))
		return err_set(err, ERR_USAGE, request->keep, "--keep takes a number from 1 to %d",
			KEEP_MAX);
	if (request->max_bytes &&
		(size_parse(request->max_bytes, strlen(request->max_bytes), &number) || !number))
		return err_set(err, ERR_USAGE, request->max_bytes,
			"--max-bytes takes a size, such as 500M");
	return 0;
}

/* Writes the arguments. In a pattern of file names, each brace is doubled. Paths are always in
 * quotes, for the benefit of users who edit the task. Neither paths nor names contain quotes or end
 * in a backslash. */
static void add_arguments(struct buf *line, const struct task_request *request)
{
	const char *folder = request->folder, *quote = strchr(request->name, ' ') ? "\"" : "";
	const char *end = folder[strlen(folder) - 1] == '\\' ? "" : "\\";

	buf_printf(line, "-pn %s%s%s -f \"", quote, request->name, quote);
	for (const char *at = folder; *at; at++)
		buf_printf(line, *at == '{' ? "%c{" : "%c", *at);
	buf_printf(line, "%s{name}-{pid}-{time}.txt\"%s%s --keep %s%s%s --all --log \"%s%s%s.log\"",
		end, request->is_full ? "" : " --by-stack", request->is_packed ? " --gzip" : "",
		request->keep, request->max_bytes ? " --max-bytes " : "",
		request->max_bytes ? request->max_bytes : "", folder, end, request->name);
}

static void add_texts(struct task_plan *plan, const struct task_request *request)
{
	struct task_request resolved = *request;
	const char *program = plan->program.data;
	size_t home = (size_t)(strrchr(program, '\\') - program);

	resolved.folder = plan->folder.data;
	resolved.keep = plan->keep;
	add_arguments(&plan->arguments, &resolved);
	home += home && program[home - 1] == ':'; /* the root of a drive keeps its separator */
	buf_add(&plan->home, program, home);
	buf_printf(&plan->description,
		"Writes the live heap blocks of %s into %s every %s and keeps the newest %s files "
		"of each process. Made by hsnap schedule add.",
		request->name, plan->folder.data, request->every, plan->keep);
}

int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err)
{
	int rc = task_name_check(request->name, err);

	plan->user = request->user;
	plan->keep = request->keep ? request->keep : TASK_KEEP_DEFAULT;
	plan->limit_ms = LIMIT_DEFAULT_MS;
	plan->at_boot = request->at_boot;
	if (!rc)
		rc = check_numbers(request, err);
	if (!rc)
		rc = read_span("--every", request->every, &plan->every_ms, err);
	if (!rc && request->limit)
		rc = read_span("--time-limit", request->limit, &plan->limit_ms, err);
	if (!rc)
		rc = read_start(&plan->start, request->start, err);
	if (!rc)
		rc = add_path(&plan->folder, "--dir", request->folder, request->user, err);
	if (!rc)
		rc = add_path(&plan->program, "--program", request->program, request->user, err);
	if (!rc)
		add_texts(plan, request);
	return rc;
}
