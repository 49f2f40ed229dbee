/* A function's own name in one with all its scopes, "app::Pool<int>::grab<long>(long)". */
#ifndef SYMBOLIZE_OWN_NAME_H
#define SYMBOLIZE_OWN_NAME_H

#include <stddef.h>

/* Where it begins in name; *len: how long it is without arguments of templates and parameters. */
const char *own_name(const char *name, size_t *len);

#endif
