#include "snapshot/schedule/task/task_words.h"

#include <string.h>

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
