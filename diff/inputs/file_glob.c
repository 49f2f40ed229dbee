#include "diff/inputs/file_glob.h"

#include <string.h>

#include "core/text.h"

bool file_glob_is(const char *text)
{
	return text[strcspn(text, "*?")] != '\0';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Bytes of the character there; of what is no UTF-8 each byte is one. */
static size_t character(const char *text)
{
	uint32_t code;
	size_t len = text_utf8(text, &code);

	return len ? len : 1;
}

/* How many bytes of the text one step of the pattern takes; 0: it is not so. */
static size_t step(const char *pattern, const char *text)
{
	if (*pattern == '?')
		return character(text);
	return lower(*pattern) == lower(*text);
}

/* Only the last '*' ever needs to take more: what those before it took is as good as any. */
bool file_glob_match(const char *pattern, const char *name)
{
	const char *star = NULL, *taken = NULL;
	size_t len;

	if (*name == '.' && *pattern != '.')
		return false;
	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			taken = name;
		} else if (*pattern && (len = step(pattern, name))) {
			pattern++;
			name += len;
		} else if (star) {
			pattern = star;
			name = taken += character(taken);
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
