#include "diff/ask/glob.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(char a, char b, bool fold)
{
	return a == b || (fold && lower(a) == lower(b));
}

/* Only the last '*' ever needs to take more: what those before it took is as good as any. */
bool glob_match(const char *pattern, const char *text, bool fold)
{
	const char *star = NULL, *taken = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			taken = text;
		} else if (*pattern && same(*pattern, *text, fold)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++taken;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool same_name(const char *a, size_t a_len, const char *b, size_t b_len)
{
	if (a_len != b_len)
		return false;
	for (size_t i = 0; i < a_len; i++) {
		if (lower(a[i]) != lower(b[i]))
			return false;
	}
	return true;
}
