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
static bool skip_start(struct words *words, const char *start)
{
	size_t len = strlen(start);

	if (!words_start(*words, start))
		return false;
	*words = (struct words){words->text + len, words->len - len};
	return true;
}

bool note_is_ours(struct words comment)
{
	return words_start(comment, "// hdiff ");
}

bool note_is_header(struct words comment)
{
	return note_is_ours(comment) || words_start(comment, "// + BYTES_DELTA ");
}

static bool is_grouped(struct words comment)
{
	return (holds(comment, ": heap growth by ") && !holds(comment, ": heap growth by stack")) ||
	       (holds(comment, ": trend by ") && !holds(comment, ": trend by stack"));
}

const char *note_refusal(struct words comment, bool is_behind)
{
	if (!note_is_ours(comment))
		return NULL;
	if (is_behind)
		return "there are several reports in it, as of a trend of several series: print "
		       "one, with --series";
	return is_grouped(comment) ? "it is a report that is grouped: there are no stacks in it" :
				     NULL;
}

bool note_is_inverted(struct words comment)
{
	return words_equal(words_trim(comment), "// frames: outermost first");
}

/* "// WORD: ...", behind which anything may stand: a file's name, a warning; of a trend also
 * "// SERIES 1 of 2: ..." and a snapshot's line, which is indented. */
static bool is_of_file(struct words comment)
{
	const char *blank;

	if (words_start(comment, "// SERIES ") || words_start(comment, "//  "))
		return true;
	if (!skip_start(&comment, "// "))
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
	return skip_start(comment, "//     also");
}

bool note_id(struct words *rest, struct words *id)
{
	static const char word[] = " BackTrace";
	struct words at = *rest;

	if (!skip_start(&at, word))
		return false;
	id->text = at.text;
	while (at.len && !words_start(at, word) && !words_start(at, " and "))
		at = (struct words){at.text + 1, at.len - 1};
	id->len = (size_t)(at.text - id->text);
	*rest = at;
	return true;
}

bool note_is_of_cut(struct words comment)
{
	return is_of_file(comment) && holds(comment, ", CUT SHORT: sums are of what is there");
}

bool note_rest(struct words comment, struct rest_text *rest)
{
	static const char more[] = " more stacks are not shown; they add up to";

	if (!skip_start(&comment, "// "))
		return false;
	while (comment.len && *comment.text >= '0' && *comment.text <= '9')
		comment = (struct words){comment.text + 1, comment.len - 1};
	return skip_start(&comment, more) && words_signed(&comment, &rest->bytes) &&
	       skip_start(&comment, " bytes,") && words_signed(&comment, &rest->blocks) &&
	       words_equal(words_trim(comment), "blocks");
}

bool note_all(struct words comment, struct all_text *all)
{
	if (!skip_start(&comment, "//") || !words_signed(&comment, &all->requested))
		return false;
	all->has_overhead = words_signed(&comment, &all->overhead);
	if (!all->has_overhead) {
		comment = words_trim(comment);
		if (!skip_start(&comment, "?"))
			return false;
	}
	return words_signed(&comment, &all->blocks) && words_equal(words_trim(comment), "all");
}

/* "(one of 12 stacks under this id)" */
static bool is_one_of(struct words words, size_t *count)
{
	size_t sum = 0;

	if (!skip_start(&words, "(one of "))
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
	if (words_equal(words, NO_STACK))
		*kind = ROW_STACKLESS;
	else if (words_equal(words, "(stack not in the dump)"))
		*kind = ROW_UNKNOWN;
	else if (is_one_of(words, candidate_count))
		*kind = ROW_ONE_OF;
	else
		return false;
	return true;
}
