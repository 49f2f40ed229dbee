#include "symbolize/files/local_path.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/utf_windows.h"

/* A path that a stranger wrote into a dump must not make this machine log on to his: none that
 * leads to another one ("\\server\share") or to a device. */
static bool is_local(const char *path)
{
	char letter = (char)(path[0] | 0x20);

	return letter >= 'a' && letter <= 'z' && path[1] == ':' &&
	       (path[2] == '\\' || path[2] == '/');
}

static bool is_file(const char *path)
{
	wchar_t *wide = wide_from_utf8(path);
	DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	free(wide);
	return attributes != INVALID_FILE_ATTRIBUTES &&
	       !(attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
}

bool local_files(const char *module_path, const struct path_user *user)
{
	if (!strncmp(module_path, "\\\\?\\", 4) || !strncmp(module_path, "\\??\\", 4))
		module_path += 4;
	return is_local(module_path) && is_file(module_path) &&
	       user->use(user->ctx, module_path, false);
}
