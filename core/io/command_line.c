#include "core/io/command_line.h"

#include <stdbool.h>
#include <string.h>

static int add_backslashes(struct buf *line, size_t count)
{
	int rc = 0;

	while (count-- && !rc)
		rc = buf_add_text(line, "\\");
	return rc;
}

/* One argument in quotes: before a quote backslashes count twice. */
static int add_quoted(struct buf *line, const char *arg)
{
	int rc = buf_add_text(line, "\"");

	while (!rc) {
		size_t backslashes = strspn(arg, "\\");

		arg += backslashes;
		if (!*arg)
			return add_backslashes(line, 2 * backslashes) ? -ERR_NOMEM :
									buf_add_text(line, "\"");
		rc = add_backslashes(line, *arg == '"' ? 2 * backslashes + 1 : backslashes);
		if (!rc)
			rc = buf_add(line, arg++, 1);
	}
	return rc;
}

static int add_blank(struct buf *line)
{
	return line->len ? buf_add_text(line, " ") : 0;
}

int command_line_add(struct buf *line, const char *const *argv)
{
	int rc = 0;

	for (; *argv && !rc; argv++) {
		rc = add_blank(line);
		if (!rc)
			rc = !**argv || strpbrk(*argv, " \t\n\v\"") ? add_quoted(line, *argv) :
								      buf_add_text(line, *argv);
	}
	return rc;
}

int command_line_add_quoted(struct buf *line, const char *arg)
{
	int rc = add_blank(line);

	return rc ? rc : add_quoted(line, arg);
}

const wchar_t *command_line_rest(const wchar_t *line)
{
	bool is_quoted = false;

	for (; *line && (is_quoted || (*line != L' ' && *line != L'\t')); line++)
		is_quoted ^= *line == L'"';
	return line;
}
