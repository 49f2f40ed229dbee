#include "symbolize/files/path_map.h"

#include <string.h>

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

static char folded(char c)
{
	if (c == '\\')
		return '/';
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int path_map_parse(struct path_map *map, const char *text, struct err *err)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (!len || !equals[1])
		return err_set(err, ERR_USAGE, text, "a map is FROM=TO, as C:\\build=D:\\build");
	while (len && is_slash(text[len - 1]))
		len--;
	*map = (struct path_map){.from = text, .from_len = len, .to = equals + 1};
	return 0;
}

const char *path_map_rest(const struct path_map *map, const char *path)
{
	size_t len = map->from_len;

	for (size_t i = 0; i < len; i++) {
		if (!path[i] || folded(map->from[i]) != folded(path[i]))
			return NULL;
	}
	if (path[len] && !is_slash(path[len]))
		return NULL;
	while (is_slash(path[len]))
		len++;
	return path + len;
}
