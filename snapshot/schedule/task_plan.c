#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/dump/kv.h"
#include "snapshot/ifeo/ifeo.h"
#include "snapshot/schedule/task.h"
#include "snapshot/series/file_pattern.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int add_backslashes(struct buf *word, size_t count)
{
	int rc = 0;

	while (count-- && !rc)
		rc = buf_add_text(word, "\\");
	return rc;
}

/* A run of backslashes and the quote behind it, if there is one. */
static int add_run(const char **at, bool *is_quoted, struct buf *word)
{
	size_t count = strspn(*at, "\\");
	bool before_quote = (*at)[count] == '"';
	int rc = add_backslashes(word, before_quote ? count / 2 : count);

	*at += count;
	if (rc || !before_quote)
		return rc;
	if (count % 2) {
		rc = buf_add_text(word, "\"");
	} else if (*is_quoted && (*at)[1] == '"') {
		rc = buf_add_text(word, "\"");
		++*at;
	} else {
		*is_quoted = !*is_quoted;
	}
	++*at;
	return rc;
}

int task_word(const char **line, struct buf *word)
{
	const char *at = *line;
	bool is_quoted = false;
	int rc;

	while (is_blank(*at))
		at++;
	buf_clear(word);
	rc = buf_add(word, "", 0);
	if (rc || !*at)
		return rc;
	while (!rc && *at && (is_quoted || !is_blank(*at))) {
		if (*at == '\\' || *at == '"')
			rc = add_run(&at, &is_quoted, word);
		else
			rc = buf_add(word, at++, 1);
	}
	*line = at;
	return rc ? rc : 1;
}

int task_word_after(const char *line, const char *name, struct buf *value)
{
	bool is_next = false;
	int rc;

	while ((rc = task_word(&line, value)) > 0 && !is_next)
		is_next = !strcmp(value->data, name);
	if (rc <= 0)
		buf_clear(value);
	return rc;
}

static const struct unit {
	char name;
	int64_t ms;
} units[] = {{'D', 86400000}, {'H', 3600000}, {'M', 60000}, {'S', 1000}};

#define UNITS (sizeof(units) / sizeof(*units))
#define TIME_UNITS_FROM 1 /* these stand behind a 'T' */
#define NUMBER_MAX 1000000000 /* of any unit, far less than what overflows */

int iso_duration_add(struct buf *text, int64_t ms)
{
	int rc = buf_add_text(text, "P");
	bool has_time = false;

	if (!rc && ms < 1000)
		return buf_add_text(text, "T0S");
	for (size_t i = 0; !rc && i < UNITS; i++) {
		int64_t number = ms / units[i].ms;

		ms %= units[i].ms;
		if (!number)
			continue;
		if (i >= TIME_UNITS_FROM && !has_time)
			rc = buf_add_text(text, "T");
		has_time |= i >= TIME_UNITS_FROM;
		if (!rc)
			rc = buf_printf(text, "%" PRId64 "%c", number, units[i].name);
	}
	return rc;
}

/* A number and its unit, one of those from *next on, which moves behind it. */
static int read_part(const char **text, size_t *next, int64_t *ms)
{
	int64_t number = 0;
	const char *at = *text;
	size_t unit = *next;

	for (; *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (*at - '0');
		if (number > NUMBER_MAX)
			return -ERR_USAGE;
	}
	while (unit < UNITS && units[unit].name != *at)
		unit++;
	if (at == *text || unit == UNITS)
		return -ERR_USAGE;
	*ms += number * units[unit].ms;
	*next = unit + 1;
	*text = at + 1;
	return 0;
}

int iso_duration_parse(const char *text, int64_t *ms)
{
	int64_t sum = 0;
	size_t next = 0;
	bool is_time = false;

	if (*text++ != 'P' || !*text)
		return -ERR_USAGE;
	while (*text) {
		if (*text == 'T' && !is_time) {
			is_time = true;
			text++;
			next = TIME_UNITS_FROM;
		}
		if (!is_time && next >= TIME_UNITS_FROM)
			return -ERR_USAGE;
		if (read_part(&text, &next, &sum) || (!is_time && next > TIME_UNITS_FROM))
			return -ERR_USAGE;
	}
	*ms = sum;
	return 0;
}

#define LIMIT_DEFAULT_MS                                                                           \
	INT64_C(3600000) /* however short the interval is: no second run begins meanwhile */
#define LIMIT_MIN_MS INT64_C(60000)
#define KEEP_MAX 1000000
#define START_MIN_MS INT64_C(315532800000) /* 1980 */

void task_plan_init(struct task_plan *plan)
{
	*plan = (struct task_plan){0};
}

void task_plan_release(struct task_plan *plan)
{
	buf_release(&plan->program);
	buf_release(&plan->home);
	buf_release(&plan->folder);
	buf_release(&plan->arguments);
	buf_release(&plan->description);
	buf_release(&plan->start);
}

int task_name_check(const char *name, struct err *err)
{
	int rc = ifeo_check_name(name, err);

	if (!rc && program_name_is_device(name, strlen(name)))
		rc = err_set(err, ERR_IMAGE_NAME, name, "Windows has a device of that name");
	if (!rc && (strchr(name, '%') || strstr(name, "$(")))
		rc = err_set(
			err, ERR_IMAGE_NAME, name, "%% and $( are for variables in Task Scheduler");
	return rc;
}

static int nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, NULL, NULL);
}

/* ---------------------------------------------------------------- times */

/* Task Scheduler repeats by the minute. */
static int read_span(const char *option, const char *text, int64_t min, int64_t max, int64_t *ms,
	struct err *err)
{
	char from[DURATION_TEXT_BYTES], to[DURATION_TEXT_BYTES];
	int64_t value;

	if (!text)
		return err_set(err, ERR_USAGE, option, "it must be given");
	if (duration_parse(text, &value) || value < min || value > max || value % 60000)
		return err_set(err, ERR_USAGE, option,
			"%s: give whole minutes from %s to %s, as 30m or 1h30m", text,
			duration_text(min, from), duration_text(max, to));
	*ms = value;
	return 0;
}

static int read_times(
	struct scheduled_task *task, const struct task_request *request, struct err *err)
{
	int rc = read_span("--every", request->every, TASK_EVERY_MIN_MS, TASK_EVERY_MAX_MS,
		&task->every_ms, err);

	if (rc)
		return rc;
	if (request->limit)
		return read_span("--time-limit", request->limit, LIMIT_MIN_MS, TASK_EVERY_MAX_MS,
			&task->limit_ms, err);
	task->limit_ms = LIMIT_DEFAULT_MS;
	return 0;
}

/* Adds the time with seconds, and looks whether there is such a time at all. */
static int read_start(struct buf *start, const char *text, struct err *err)
{
	size_t len = strlen(text);
	bool is_utc = len && text[len - 1] == 'Z';
	struct buf whole;
	int64_t ms;
	int rc;

	len -= is_utc;
	buf_init(&whole);
	rc = buf_add(start, text, len);
	if (!rc && len == strlen("2026-11-20T10:00"))
		rc = buf_add_text(start, ":00");
	if (!rc)
		rc = buf_printf(&whole, "%sZ", start->data);
	if (!rc && is_utc)
		rc = buf_add_text(start, "Z");
	if (rc)
		rc = nomem(err);
	else if (whole.len != strlen("2026-11-20T10:00:00Z") || date_parse(whole.data, &ms) ||
		 ms < START_MIN_MS)
		rc = err_set(err, ERR_USAGE, text,
			"a time is written as 2026-11-20T10:00, and no earlier than 1980");
	buf_release(&whole);
	return rc;
}

/* ---------------------------------------------------------------- what is run */

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
			"--max-bytes takes a number of bytes, as 500M");
	return 0;
}

static int add_arguments(struct task_plan *plan, const struct task_request *request)
{
	const struct task_arguments arguments = {.name = request->name,
		.folder = plan->folder.data,
		.keep = plan->keep,
		.max_bytes = request->max_bytes,
		.is_full = request->is_full,
		.is_packed = request->is_packed};

	return task_arguments_add(&plan->arguments, &arguments);
}

static int add_description(struct task_plan *plan, const struct task_request *request)
{
	char every[DURATION_TEXT_BYTES];

	return buf_printf(&plan->description,
		"Writes the live heap blocks of %s into %s every %s and keeps the newest %s files "
		"of "
		"each process. Made by hsnap schedule add.",
		request->name, plan->folder.data, duration_text(plan->task.every_ms, every),
		plan->keep);
}

/* A full path with its slashes as Windows has them. */
static int add_path(struct buf *to, const char *option, const char *path, struct err *err)
{
	if (!path)
		return err_set(err, ERR_USAGE, option, "it must be given");
	if (buf_add_text(to, path))
		return nomem(err);
	for (char *at = to->data; *at; at++)
		*at = *at == '/' ? '\\' : *at;
	return task_path_check(to->data, err);
}

/* The folder that the program is in; a drive's root keeps its end. */
static int add_home(struct buf *home, const char *program, struct err *err)
{
	size_t len = (size_t)(strrchr(program, '\\') - program);

	len += len && program[len - 1] == ':';
	return buf_add(home, program, len) ? nomem(err) : 0;
}

/* Whoever is logged on without a password has nobody's rights on other machines. */
static int check_near(const char *option, const char *path, struct err *err)
{
	return path[0] == '\\' ?
		       err_set(err, ERR_USAGE, path,
			       "with --as-user the task has no network; give %s on this machine",
			       option) :
		       0;
}

static int add_paths(struct task_plan *plan, const struct task_request *request, struct err *err)
{
	int rc = add_path(&plan->folder, "--dir", request->folder, err);

	if (!rc)
		rc = add_path(&plan->program, "--program", request->program, err);
	if (!rc)
		rc = add_home(&plan->home, plan->program.data, err);
	if (!rc && request->user)
		rc = check_near("--dir", plan->folder.data, err);
	if (!rc && request->user)
		rc = check_near("--program", plan->program.data, err);
	return rc;
}

int task_plan_make(struct task_plan *plan, const struct task_request *request, struct err *err)
{
	int rc = task_name_check(request->name, err);

	if (!rc)
		rc = check_numbers(request, err);
	if (!rc)
		rc = read_times(&plan->task, request, err);
	if (!rc)
		rc = read_start(&plan->start, request->start, err);
	if (!rc)
		rc = add_paths(plan, request, err);
	if (rc)
		return rc;
	plan->keep = request->keep ? request->keep : TASK_KEEP_DEFAULT;
	if (add_arguments(plan, request) || add_description(plan, request))
		return nomem(err);
	plan->task.description = plan->description.data;
	plan->task.program = plan->program.data;
	plan->task.arguments = plan->arguments.data;
	plan->task.folder = plan->home.data;
	plan->task.user = request->user;
	plan->task.start = plan->start.data;
	plan->task.at_boot = request->at_boot;
	return 0;
}
