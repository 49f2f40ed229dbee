/*
 * Joins and splits command lines according to the quoting rules of the Microsoft C runtime
 * ("Parsing C command-line arguments", Microsoft Learn).
 */
#include "core/base/command_line.h"

#include <stdbool.h>
#include <string.h>

static void add_backslashes(struct buf *line, size_t count)
{
	while (count--)
		buf_add_text(line, "\\");
}

/* Appends one argument in quotes. Doubles backslashes that precede a quote. */
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

void command_line_add(struct buf *line, const char *const *argv)
{
	for (; *argv; argv++) {
		if (line->len)
			buf_add_text(line, " ");
		if (!**argv || strpbrk(*argv, " \t\n\v\""))
			add_quoted(line, *argv);
		else
			buf_add_text(line, *argv);
	}
}

static bool is_end(char c, bool is_quoted)
{
	return !c || (!is_quoted && (c == ' ' || c == '\t'));
}

/* Unquotes one argument (not the program name) and appends it to `*to` with a NUL. Returns the end
 * of the argument in the line. Each pair of backslashes before a quote represents one backslash.
 * Inside quotes, two quotes represent one quote. */
static const char *split_word(const char *line, char **to)
{
	bool is_quoted = false;

	while (!is_end(*line, is_quoted)) {
		size_t backslashes = strspn(line, "\\"), kept;

		line += backslashes;
		kept = *line == '"' ? backslashes / 2 : backslashes;
		memset(*to, '\\', kept);
		*to += kept;
		if (*line != '"') {
			if (!is_end(*line, is_quoted))
				*(*to)++ = *line++;
		} else if (backslashes % 2 || (is_quoted && line[1] == '"')) {
			*(*to)++ = '"';
			line += backslashes % 2 ? 1 : 2;
		} else {
			is_quoted = !is_quoted;
			line++;
		}
	}
	*(*to)++ = '\0';
	return line;
}

char **command_line_split(const char *line, int *argc)
{
	/* Both sizes are upper limits. An argument and the blank after it take at least two bytes
	 * of the line, and unquoting never lengthens the text. */
	size_t len = strlen(line), words = len / 2 + 2;
	char **argv = xcalloc(1, (words + 1) * sizeof(*argv) + len + 2);
	char *to = (char *)(argv + words + 1);
	bool is_quoted = false;

	argv[0] = to;
	for (; !is_end(*line, is_quoted); line++) {
		if (*line == '"')
			is_quoted = !is_quoted;
		else
			*to++ = *line;
	}
	to++;
	for (*argc = 1; *(line += strspn(line, " \t")); (*argc)++) {
		argv[*argc] = to;
		line = split_word(line, &to);
	}
	return argv;
}

const wchar_t *command_line_rest(const wchar_t *line)
{
	bool is_quoted = false;

	for (; *line && (is_quoted || (*line != L' ' && *line != L'\t')); line++)
		is_quoted ^= *line == L'"';
	return line;
}
