/* Names of processes as people ask for them. */
#ifndef SNAPSHOT_NAME_PATTERN_H
#define SNAPSHOT_NAME_PATTERN_H

#include <stdbool.h>

/*
 * Whether name is as pattern says: with '*' (any text) or '?' (any one byte) in it all of name, else
 * some part of it. Letters of ASCII are alike in either case. Takes time in proportion to the product
 * of both lengths at worst.
 */
bool name_is_like(const char *name, const char *pattern);

#endif
