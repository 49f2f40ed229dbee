#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/io/command_line.h"
#include "snapshot/schedule/task.h"
#include "snapshot/series/file_pattern.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes up to where names begin; 0: it is no full path. */
static size_t root_length(const char *path)
{
	size_t server, share;

	if (is_letter(path[0]) && path[1] == ':' && path[2] == '\\')
		return 3;
	if (path[0] != '\\' || path[1] != '\\')
		return 0;
	server = strcspn(path + 2, "\\");
	if (!server || !path[2 + server] || path[2] == '.')
		return 0;
	share = strcspn(path + 3 + server, "\\");
	return share ? 2 : 0;
}

/* As Windows counts, with the quotes; 0: no text, or what no name has. */
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

/* What is wrong with one of the names in it, which Windows would take for another one or for none; NULL: nothing.
 * The last may be empty: the path ends in a backslash, or is a drive's root. */
static const char *bad_name(const char *path, size_t root)
{
	const char *at = path + root;
	size_t len;

	for (; *at; at += len + (at[len] == '\\')) {
		len = strcspn(at, "\\");
		if (!len)
			return "it has two backslashes in a row";
		if (at[len - 1] == '.' || at[len - 1] == ' ')
			return "a name in it ends in a dot or a blank";
		if (program_name_is_device(at, len))
			return "a name in it is that of a device";
	}
	return NULL;
}

int task_path_check(const char *path, struct err *err)
{
	size_t root = root_length(path), units = root ? count_units(path, root) : 0;
	const char *wrong = root ? bad_name(path, root) : NULL;

	if (!root)
		return err_set(err, ERR_USAGE, path, "give a full path, as C:\\dumps");
	if (!units)
		return err_set(err, ERR_USAGE, path, "it has a character that paths do not have");
	if (wrong)
		return err_set(err, ERR_USAGE, path, "%s", wrong);
	if (strchr(path, '%') || strstr(path, "$("))
		return err_set(err, ERR_USAGE, path,
			"%% and $( are for variables there; choose another path");
	if (units > TASK_PATH_UNITS)
		return err_set(err, ERR_USAGE, path,
			"Task Scheduler has room for %d characters of a path", TASK_PATH_UNITS - 2);
	return 0;
}

#define FILE_NAME "{name}-{pid}-{time}.txt"

/* ---------------------------------------------------------------- writing */

/* In a pattern of files a brace is written twice. */
static int add_folder(struct buf *pattern, const char *folder)
{
	size_t len = strlen(folder);
	int rc = 0;

	for (size_t i = 0; i < len && !rc; i++)
		rc = buf_add(
			pattern, folder[i] == '{' ? "{{" : folder + i, folder[i] == '{' ? 2 : 1);
	if (!rc && folder[len - 1] != '\\')
		rc = buf_add_text(pattern, "\\");
	return rc;
}

/* A path in quotes, whether it has blanks or not: whoever edits the task finds them there. */
static int add_file(struct buf *line, const char *option, const char *path)
{
	int rc = command_line_add(line, (const char *const[]){option, NULL});

	return rc ? rc : command_line_add_quoted(line, path);
}

/* What stands between the two files. */
static int add_limits(struct buf *line, const struct task_arguments *arguments)
{
	const char *argv[8];
	size_t count = 0;

	if (!arguments->is_full)
		argv[count++] = "--by-stack";
	if (arguments->is_packed)
		argv[count++] = "--gzip";
	argv[count++] = "--keep";
	argv[count++] = arguments->keep;
	if (arguments->max_bytes) {
		argv[count++] = "--max-bytes";
		argv[count++] = arguments->max_bytes;
	}
	argv[count++] = "--all";
	argv[count] = NULL;
	return command_line_add(line, argv);
}

int task_arguments_add(struct buf *line, const struct task_arguments *arguments)
{
	const char *const process[] = {"-pn", arguments->name, NULL}, *folder = arguments->folder;
	bool ends = folder[strlen(folder) - 1] == '\\';
	struct buf pattern, log;
	int rc;

	buf_init(&pattern);
	buf_init(&log);
	rc = add_folder(&pattern, folder);
	if (!rc)
		rc = buf_add_text(&pattern, FILE_NAME);
	if (!rc)
		rc = buf_printf(&log, "%s%s%s.log", folder, ends ? "" : "\\", arguments->name);
	if (!rc)
		rc = command_line_add(line, process);
	if (!rc)
		rc = add_file(line, "-f", pattern.data);
	if (!rc)
		rc = add_limits(line, arguments);
	if (!rc)
		rc = add_file(line, "--log", log.data);
	buf_release(&pattern);
	buf_release(&log);
	return rc;
}

/* ---------------------------------------------------------------- reading */

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool is_same_image(const char *a, const char *b)
{
	for (; *a && upper(*a) == upper(*b); a++)
		b++;
	return !*a && !*b;
}

static int has_word(const char *line, const char *name)
{
	struct buf word;
	int rc;

	buf_init(&word);
	while ((rc = task_word(&line, &word)) > 0) {
		if (!strcmp(word.data, name))
			break;
	}
	buf_release(&word);
	return rc;
}

/* The folder of "D\{name}-{pid}-{time}.txt", its braces written once; empty: there is none. */
static int read_folder(struct buf *folder, const struct buf *pattern)
{
	size_t tail = strlen("\\" FILE_NAME), len = pattern->len;
	int rc = buf_add(folder, "", 0);

	if (len <= tail || strcmp(pattern->data + len - tail, "\\" FILE_NAME) != 0)
		return rc;
	len -= tail;
	for (size_t i = 0; i < len && !rc; i++) {
		rc = buf_add(folder, pattern->data + i, 1);
		i += pattern->data[i] == '{';
	}
	/* a drive's root is none without its end */
	return !rc && folder->data[folder->len - 1] == ':' ? buf_add_text(folder, "\\") : rc;
}

struct values {
	struct buf image, pattern, max_bytes, line;
};

/* 1, 0 when one of them is missing, or -ERR_NOMEM. */
static int read_values(
	struct values *values, const char *line, struct buf *folder, struct buf *keep)
{
	int rc = task_word_after(line, "-pn", &values->image);

	if (rc > 0)
		rc = task_word_after(line, "-f", &values->pattern);
	if (rc > 0)
		rc = task_word_after(line, "--keep", keep);
	if (rc > 0 && task_word_after(line, "--max-bytes", &values->max_bytes) < 0)
		rc = -ERR_NOMEM;
	if (rc > 0 && read_folder(folder, &values->pattern))
		rc = -ERR_NOMEM;
	return rc > 0 ? !task_path_check(folder->data, NULL) : rc;
}

/* Written again from what was read, the line must be the same. */
static int compare(
	struct values *values, const char *line, const struct buf *folder, const struct buf *keep)
{
	int is_by_stack = has_word(line, "--by-stack"), is_packed = has_word(line, "--gzip");
	struct task_arguments again = {.name = values->image.data,
		.folder = folder->data,
		.keep = keep->data,
		.max_bytes = values->max_bytes.len ? values->max_bytes.data : NULL,
		.is_full = !is_by_stack,
		.is_packed = is_packed};

	if (is_by_stack < 0 || is_packed < 0 || task_arguments_add(&values->line, &again))
		return -ERR_NOMEM;
	return !strcmp(values->line.data, line);
}

int task_arguments_read(const char *line, const char *image, struct buf *folder, struct buf *keep)
{
	struct values values = {0};
	int rc;

	buf_clear(folder);
	buf_clear(keep);
	rc = read_values(&values, line, folder, keep);
	if (rc > 0)
		rc = is_same_image(values.image.data, image) ?
			     compare(&values, line, folder, keep) :
			     0;
	buf_release(&values.image);
	buf_release(&values.pattern);
	buf_release(&values.max_bytes);
	buf_release(&values.line);
	return rc;
}

#define NOT_YET 0x00041303

/* "Task Scheduler Error and Success Constants" and "System Error Codes" (as HRESULTs of facility 7), Microsoft
 * Learn: what is no exit status. */
static const struct {
	uint32_t code;
	const char *text;
} results[] = {
	{0x00041300, "ready"}, {0x00041301, "running"}, {0x00041302, "disabled"},
	{NOT_YET, "not yet"}, {0x00041306, "ended"}, /* by the user, or the time limit */
	{0x8004131f, "running"}, /* when it was due again */
	{0x80070002, "no program"}, /* ERROR_FILE_NOT_FOUND */
	{0x80070003, "no folder"}, /* ERROR_PATH_NOT_FOUND */
	{0x8007010b, "no folder"}, /* ERROR_DIRECTORY */
	{0x80070005, "no rights"}, /* ERROR_ACCESS_DENIED */
	{0x80070035, "no network"}, /* ERROR_BAD_NETPATH */
	{0x80070043, "no network"}, /* ERROR_BAD_NET_NAME */
	{0x8007052e, "no logon"}, /* ERROR_LOGON_FAILURE */
	{0x80070569, "no logon"}, /* ERROR_LOGON_TYPE_NOT_GRANTED */
	{0x800710e0, "refused"}, /* ERROR_REQUEST_REFUSED */
};

const char *task_result_text(uint32_t result, char text[TASK_TIME_BYTES])
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].code == result) {
			snprintf(text, TASK_TIME_BYTES, "%s", results[i].text);
			return text;
		}
	}
	/* What is no exit status of ours is an error of Windows, known by its hexadecimal form. */
	snprintf(text, TASK_TIME_BYTES, result <= 255 ? "%" PRIu32 : "0x%" PRIX32, result);
	return text;
}

void task_table_head(FILE *to)
{
	fprintf(to, "%-7s %-7s  %-16s  %-10s  %-16s  %s\n", "every", "keep", "last run", "result",
		"next run", "name, folder");
}

static const char *known(const char *text)
{
	return text && *text ? text : "?";
}

/* Some time long ago stands for none. */
static const char *last_run(const struct task_state *state)
{
	return state->has_result && state->result == NOT_YET ? "-" : known(state->last);
}

static const char *next_run(const struct task_state *state)
{
	switch (state->kind) {
	case 1: return "disabled";
	case 2: return "queued";
	case 4: return "running";
	default: return known(state->next);
	}
}

/* What comes from the task itself may be anything. */
static int print_names(FILE *to, const char *name, const char *is, const char *what)
{
	struct buf names;
	int rc;

	buf_init(&names);
	rc = buf_printf(&names, "%s  %s%s", name, is, what);
	if (!rc)
		fprintf(to, "%s\n", text_harmless(names.data));
	buf_release(&names);
	return rc;
}

int task_table_row(FILE *to, const char *name, const struct task_read *task, bool runs_hsnap,
	const struct task_state *state)
{
	char every[DURATION_TEXT_BYTES], result[TASK_TIME_BYTES];
	const char *line = task->arguments.data ? task->arguments.data : "";
	struct buf folder, keep;
	bool is_ours;
	int rc;

	buf_init(&folder);
	buf_init(&keep);
	rc = runs_hsnap ? task_arguments_read(line, name, &folder, &keep) : 0;
	is_ours = rc > 0;
	if (rc >= 0) {
		fprintf(to, "%-7s %-7s  %-16s  %-10s  %-16s  ",
			task->every_ms ? duration_text(task->every_ms, every) : "?",
			is_ours ? text_harmless(keep.data) : "?", last_run(state),
			state->has_result ? task_result_text(state->result, result) : "?",
			next_run(state));
		if (is_ours)
			rc = print_names(to, name, "", folder.data);
		else if (runs_hsnap)
			rc = print_names(to, name, "other arguments: ", line);
		else
			rc = print_names(to, name, "another program: ", task->program.data);
	}
	buf_release(&folder);
	buf_release(&keep);
	return rc;
}
