#include "snapshot/schedule/task/task_arguments.h"

#include <string.h>

#include "snapshot/control/command_line.h"
#include "snapshot/schedule/task/task_paths.h"
#include "snapshot/schedule/task/task_words.h"

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
