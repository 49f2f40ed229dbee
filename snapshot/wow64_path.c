#include "snapshot/wow64_path.h"

#include <stdbool.h>
#include <string.h>

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool lies_in(const char *path, const char *folder, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (lower(path[i]) != lower(folder[i]))
			return false;
	}
	return path[len] == '\\';
}

const char *wow64_path(struct arena *arena, const char *path, const char *system, const char *wow64)
{
	size_t path_len = strlen(path), system_len = strlen(system), wow64_len = strlen(wow64);
	char *result;

	if (path_len <= system_len || !lies_in(path, system, system_len))
		return path;
	result = arena_alloc(arena, wow64_len + path_len - system_len + 1);
	if (!result)
		return NULL;
	memcpy(result, wow64, wow64_len);
	memcpy(result + wow64_len, path + system_len, path_len - system_len + 1);
	return result;
}
