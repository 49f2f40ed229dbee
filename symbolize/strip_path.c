#include "symbolize/strip_path.h"

#include <stdbool.h>
#include <string.h>

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

static bool is_windows(const char *path)
{
	return strchr(path, '\\') || (path[0] && path[1] == ':');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(char a, char b, bool any_case)
{
	return a == b || (is_slash(a) && is_slash(b)) || (any_case && lower(a) == lower(b));
}

/* The bytes of file that the prefix and the slash behind it take; 0: it does not begin so. */
static size_t bytes_of_prefix(const char *file, const char *prefix, bool any_case)
{
	size_t len = 0;

	while (prefix[len] && file[len] && same(file[len], prefix[len], any_case))
		len++;
	if (prefix[len] || !len)
		return 0;
	if (is_slash(prefix[len - 1]))
		return len;
	return is_slash(file[len]) ? len + 1 : 0;
}

const char *strip_path(const char *file, const char *const *prefixes, size_t count)
{
	bool any_case = is_windows(file);
	size_t longest = 0;

	for (size_t i = 0; i < count; i++) {
		size_t len = bytes_of_prefix(file, prefixes[i], any_case);

		if (len > longest && file[len])
			longest = len;
	}
	return file + longest;
}
