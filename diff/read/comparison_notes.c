#include "diff/read/comparison_notes.h"

#include <string.h>

#define CANDIDATES_MAX 100000000 /* more are nonsense */

static bool holds(struct words words, const char *part)
{
	size_t len = strlen(part);

	for (size_t i = 0; i + len <= words.len; i++) {
		if (!memcmp(words.text + i, part, len))
			return true;
	}
	return false;
}

/* Takes start off words. */
static bool take(struct words *words, const char *start)
{
	size_t len = strlen(start);

	if (!words_start(*words, start))
		return false;
	*words = (struct words){words->text + len, words->len - len};
	return true;
}

bool note_is_header(struct words comment)
{
	return words_start(comment, "// hdiff ") || words_start(comment, "// + BYTES_DELTA ");
}

/* "// WORD: ...", behind which anything may stand: a file's name, a warning. */
static bool is_of_file(struct words comment)
{
	const char *blank;

	if (!take(&comment, "// "))
		return false;
	blank = memchr(comment.text, ' ', comment.len);
	return blank && blank > comment.text && blank[-1] == ':';
}

void note_base(struct words comment, bool is_said[READINGS])
{
	if (is_of_file(comment))
		return;
	is_said[AS_HEX] |= holds(comment, "Numbers are hexadecimal");
	is_said[AS_DECIMAL] |= holds(comment, "Numbers are decimal");
}

bool note_is_ambiguous(struct words comment)
{
	return words_start(comment, "//     ambiguous: one of ");
}

bool note_also(struct words *comment)
{
	return take(comment, "//     also");
}

bool note_id(struct words *rest, struct words *id)
{
	static const char word[] = " BackTrace";
	struct words at = *rest;

	if (!take(&at, word))
		return false;
	id->text = at.text;
	while (at.len && !words_start(at, word) && !words_start(at, " and "))
		at = (struct words){at.text + 1, at.len - 1};
	id->len = (size_t)(at.text - id->text);
	*rest = at;
	return true;
}

/* "(one of 12 stacks under this id)" */
static bool is_one_of(struct words words, size_t *count)
{
	size_t sum = 0;

	if (!take(&words, "(one of "))
		return false;
	while (words.len && *words.text >= '0' && *words.text <= '9' && sum < CANDIDATES_MAX) {
		sum = sum * 10 + (size_t)(*words.text - '0');
		words = (struct words){words.text + 1, words.len - 1};
	}
	if (!sum || !words_equal(words, " stacks under this id)"))
		return false;
	*count = sum;
	return true;
}

bool note_no_stack(struct words words, enum row_kind *kind, size_t *candidate_count)
{
	if (words_equal(words, "(no stack recorded)"))
		*kind = ROW_STACKLESS;
	else if (words_equal(words, "(stack not in the dump)"))
		*kind = ROW_UNKNOWN;
	else if (is_one_of(words, candidate_count))
		*kind = ROW_ONE_OF;
	else
		return false;
	return true;
}
