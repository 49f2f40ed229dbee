#include "symbolize/files/local_path.h"

#include <string.h>

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

const char *local_plain(const char *path)
{
	bool is_long = !strncmp(path, "\\\\?\\", 4) || !strncmp(path, "\\??\\", 4);

	return is_long && path[4] && path[5] == ':' ? path + 4 : path;
}

bool local_is_remote(const char *path)
{
	path = local_plain(path);
	return (is_slash(path[0]) && is_slash(path[1])) || !strncmp(path, "\\??\\", 4) ||
	       !strncmp(path, "\\Device\\", 8) || local_leads_away(path);
}
