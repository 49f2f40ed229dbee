#include "snapshot/command/name_pattern.h"

#include <stddef.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool fits(char pattern, char c)
{
	return pattern == '?' || lower(pattern) == lower(c);
}

/* Only the last '*' ever needs to take more: what those before it took is as good as any. */
static bool is_whole(const char *name, const char *pattern)
{
	const char *star = NULL, *taken = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			taken = name;
		} else if (*pattern && fits(*pattern, *name)) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++taken;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool has_part(const char *name, const char *part)
{
	do {
		size_t same = 0;

		while (part[same] && lower(name[same]) == lower(part[same]))
			same++;
		if (!part[same])
			return true;
	} while (*name++);
	return false;
}

bool name_is_like(const char *name, const char *pattern)
{
	return strpbrk(pattern, "*?") ? is_whole(name, pattern) : has_part(name, pattern);
}
