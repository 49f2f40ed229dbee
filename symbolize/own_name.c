#include "symbolize/own_name.h"

#include <string.h>

const char *own_name(const char *name, size_t *len)
{
	const char *own = name;
	size_t depth = 0;

	for (const char *at = name; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth)
			depth--;
		else if (!depth && at[0] == ':' && at[1] == ':')
			own = at + 2;
		else if (!depth && at[0] == '(' && strncmp(at, "(anonymous", 10) != 0)
			break; /* the parameters */
	}
	*len = strcspn(own, "<(");
	return own;
}
