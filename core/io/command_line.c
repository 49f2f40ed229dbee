#include "core/io/command_line.h"

#include <stdbool.h>
#include <string.h>

static void add_backslashes(struct buf *line, size_t count)
{
	while (count--)
		buf_add_text(line, "\\");
}

/* One argument in quotes: before a quote backslashes count twice. */
static void add_quoted(struct buf *line, const char *arg)
{
	buf_add_text(line, "\"");
	for (;; buf_add(line, arg++, 1)) {
		size_t backslashes = strspn(arg, "\\");

		arg += backslashes;
		if (!*arg)
			backslashes *= 2;
		else if (*arg == '"')
			backslashes = 2 * backslashes + 1;
		add_backslashes(line, backslashes);
		if (!*arg)
			break;
	}
	buf_add_text(line, "\"");
}

static void add_blank(struct buf *line)
{
	if (line->len)
		buf_add_text(line, " ");
}

void command_line_add(struct buf *line, const char *const *argv)
{
	for (; *argv; argv++) {
		add_blank(line);
		if (!**argv || strpbrk(*argv, " \t\n\v\""))
			add_quoted(line, *argv);
		else
			buf_add_text(line, *argv);
	}
}

void command_line_add_quoted(struct buf *line, const char *arg)
{
	add_blank(line);
	add_quoted(line, arg);
}

const wchar_t *command_line_rest(const wchar_t *line)
{
	bool is_quoted = false;

	for (; *line && (is_quoted || (*line != L' ' && *line != L'\t')); line++)
		is_quoted ^= *line == L'"';
	return line;
}
