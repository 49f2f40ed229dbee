#include "symbolize/tables/demangle.h"

#include <string.h>

bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "__Z", 3) || name[0] == '?';
}

int demangle(const char *name, struct buf *text)
{
	(void)name;
	(void)text;
	return 0;
}
