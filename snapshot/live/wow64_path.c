#include "snapshot/live/wow64_path.h"

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
	size_t system_len = strlen(system), wow64_len = strlen(wow64);
	const char *rest;
	char *result;

	if (strlen(path) <= system_len || !lies_in(path, system, system_len))
		return path;
	rest = path + system_len;
	result = arena_alloc(arena, wow64_len + strlen(rest) + 1);
	if (!result)
		return NULL;
	strcpy(result, wow64);
	strcpy(result + wow64_len, rest);
	return result;
}
