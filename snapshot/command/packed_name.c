#include "snapshot/command/packed_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/os.h"

static bool is_packed_name(const char *path)
{
	size_t len = strlen(path);
	const char *end = path + len;

	return len > 3 && end[-3] == '.' && (end[-2] | 0x20) == 'g' && (end[-1] | 0x20) == 'z';
}

int packed_name_add(struct buf *name, const char *path)
{
	bool is_kept = !strcmp(path, "-") || os_is_special(path) || is_packed_name(path);
	int rc = buf_add_text(name, path);

	return rc || is_kept ? rc : buf_add_text(name, ".gz");
}
