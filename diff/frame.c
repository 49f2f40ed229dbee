#include "diff/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void frames_init(struct frames *frames)
{
	*frames = (struct frames){0};
}

void frames_release(struct frames *frames)
{
	free(frames->items);
	free(frames->part_at);
	frames_init(frames);
}

void frames_clear(struct frames *frames)
{
	frames->count = frames->part_count = 0;
}

int frames_add(struct frames *frames, const struct frame *frame)
{
	if (array_grow((void **)&frames->items, &frames->cap, frames->count, sizeof(*frame)))
		return -ERR_NOMEM;
	frames->items[frames->count++] = *frame;
	return 0;
}

int frames_part(struct frames *frames)
{
	if (array_grow((void **)&frames->part_at, &frames->part_cap, frames->part_count,
		    sizeof(*frames->part_at)))
		return -ERR_NOMEM;
	frames->part_at[frames->part_count++] = frames->count;
	return 0;
}

int frame_name(const struct frame *frame, struct buf *buf)
{
	int rc;

	buf_clear(buf);
	if (!frame->module && !frame->function)
		return buf_printf(buf, "%" PRIX64, frame->addr);
	rc = frame->module ? buf_add_text(buf, frame->module) : 0;
	if (!rc && frame->function)
		rc = buf_add_text(buf, frame->module ? "!" : "");
	if (!rc && frame->function)
		return buf_add_text(buf, frame->function);
	return rc ? rc : buf_printf(buf, "+%" PRIX64, frame->offset_bytes);
}

/* ---------------------------------------------------------------- functions */

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_';
}

/* Whether a name may begin at at: nothing before it belongs to it. */
static bool is_start(const char *text, const char *at)
{
	return at == text || (!is_word(at[-1]) && at[-1] != ':');
}

const char *function_own(const char *function)
{
	const char *own = function;
	size_t depth = 0;

	for (const char *at = function; *at; at++) {
		bool is_first = at == own || at[-1] == ':';

		if (!depth && is_first && !strncmp(at, "operator", 8) && !is_word(at[8]))
			break;
		if (!depth && *at == '(' && !is_first) /* not "(anonymous namespace)" */
			break;
		if (strchr("<([{`", *at))
			depth++;
		else if (strchr(">)]}'", *at) && depth)
			depth--;
		else if (!depth && *at == ' ' && at[1] != '[') /* "f [clone .cold]" */
			own = at + 1;
	}
	return own;
}

/* Behind a word that may have blanks and Microsoft's "class" or "struct" in front, and behind "std::" one of
 * those namespaces; NULL: it is not there. */
static const char *pass(const char *at, const char *word)
{
	static const char *const front[] = {" ", "class ", "struct "};
	static const char *const inner[] = {"__cxx11::", "__1::"};

	for (size_t i = 0; i < sizeof(front) / sizeof(*front); i++) {
		if (!strncmp(at, front[i], strlen(front[i])))
			at += strlen(front[i]);
	}
	if (strncmp(at, word, strlen(word)) != 0)
		return NULL;
	at += strlen(word);
	for (size_t i = 0; i < sizeof(inner) / sizeof(*inner) && !strcmp(word, "std::"); i++) {
		if (!strncmp(at, inner[i], strlen(inner[i])))
			at += strlen(inner[i]);
	}
	return at;
}

/* Behind a string's type that is written out; NULL: none begins there. */
static const char *pass_string(const char *at, const char **name)
{
	static const char *const types[][2] = {
		{"char", "std::string"}, {"wchar_t", "std::wstring"}};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const char *c = types[i][0], *end = at;
		const char *const words[] = {"std::", "basic_string", "<", c, ",",
			"std::", "char_traits", "<", c, ">", ",", "std::", "allocator", "<", c, ">",
			">"};

		for (size_t k = 0; end && k < sizeof(words) / sizeof(*words); k++)
			end = pass(end, words[k]);
		if (end) {
			*name = types[i][1];
			return end;
		}
	}
	return NULL;
}

int function_shown(const char *function, struct buf *shown)
{
	const char *at = function, *from = function; /* what was not added yet */
	int rc = 0;

	while (!rc && *at) {
		const char *name = "std::", *end = NULL;

		if (*at != ' ' && is_start(function, at) && !(end = pass_string(at, &name)) &&
			!strncmp(at, "std::", 5))
			end = pass(at, name);
		if (!end) {
			at++;
			continue;
		}
		rc = buf_add(shown, from, (size_t)(at - from));
		if (!rc)
			rc = buf_add_text(shown, name);
		at = from = end;
	}
	return rc ? rc : buf_add(shown, from, (size_t)(at - from));
}
