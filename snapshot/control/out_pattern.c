#include "snapshot/control/out_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum piece {
	PIECE_END,
	PIECE_TEXT,
	PIECE_NAME,
	PIECE_PID,
	PIECE_WRONG,
};

/* The kind of the next piece, and its length in the pattern; of text, *text is what to add. */
static enum piece next(const char *pattern, size_t *len, const char **text)
{
	static const struct {
		const char *word;
		enum piece piece;
	} words[] = {{"{{", PIECE_TEXT}, {"{name}", PIECE_NAME}, {"{pid}", PIECE_PID}};

	*text = pattern;
	*len = strcspn(pattern, "{");
	if (*len)
		return PIECE_TEXT;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		*len = strlen(words[i].word);
		*text = pattern + 1; /* the second of two braces */
		if (!strncmp(pattern, words[i].word, *len))
			return words[i].piece;
	}
	*len = strcspn(pattern, "}");
	return *pattern ? PIECE_WRONG : PIECE_END;
}

int out_pattern_check(const char *pattern, bool *has_pid, struct err *err)
{
	const char *text;
	enum piece piece;
	size_t len;

	*has_pid = false;
	for (const char *at = pattern; (piece = next(at, &len, &text)); at += len) {
		*has_pid |= piece == PIECE_PID;
		if (piece == PIECE_WRONG)
			return err_set(err, ERR_USAGE, pattern,
				at[len] ? "it knows {name}, {pid}, and {{ for a brace" :
					  "a brace is not closed; {{ stands for one");
	}
	return 0;
}

/* The file's name alone, and its length without ".exe" in any case of letters. */
static const char *name_of(const char *program, size_t *len)
{
	const char *name = program + strlen(program), *exe = ".exe";
	size_t same = 0;

	while (name > program && !strchr("\\/:", name[-1]))
		name--;
	*len = strlen(name);
	if (*len <= strlen(exe))
		return name;
	while (exe[same] && (name[*len - strlen(exe) + same] | 0x20) == exe[same])
		same++;
	if (!exe[same])
		*len -= strlen(exe);
	return name;
}

int out_pattern_add(struct buf *path, const char *pattern, const char *program, uint32_t pid)
{
	const char *text, *name;
	size_t len, name_len;
	char number[16];
	enum piece piece;
	int rc = 0;

	name = name_of(program, &name_len);
	snprintf(number, sizeof(number), "%" PRIu32, pid);
	for (; !rc && (piece = next(pattern, &len, &text)); pattern += len) {
		if (piece == PIECE_NAME)
			rc = buf_add(path, name, name_len);
		else if (piece == PIECE_PID)
			rc = buf_add_text(path, number);
		else
			rc = buf_add(path, text, text > pattern ? 1 : len);
	}
	return rc;
}
