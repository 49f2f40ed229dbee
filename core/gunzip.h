/* Unpacks gzip: one member or several, zeros behind the last. */
#ifndef CORE_GUNZIP_H
#define CORE_GUNZIP_H

#include <stdbool.h>

#include "core/feed.h"

struct gunzip;

/* Whether packed bytes begin so; bytes may be fewer than that takes. */
bool gunzip_is_magic(const unsigned char *bytes, size_t len);

/* from must outlive it; name is for messages and is not copied. NULL: out of memory. */
struct gunzip *gunzip_new(struct feed *from, const char *name);
void gunzip_free(struct gunzip *gunzip); /* NULL is nothing */

/* A feed_reader; ctx is a struct gunzip. When all before it was handed out: -ERR_CUT, the packed
 * bytes end in the middle; -ERR_READ, they are damaged; -ERR_NOMEM; or the error of from. */
int64_t gunzip_read(void *ctx, void *bytes, size_t len, struct err *err);

#endif
