/*
 * The names that were found before: one file of the user's, keyed by what tells one build of a module
 * from all others, and by offset.
 *
 * Only names that cannot become better or wrong are kept in it: see who adds (symbolize.c). The file is
 * a help and never a need: one that is not there, cannot be read, is damaged, is somebody else's or too
 * large is as an empty one. Several programs may use it at once.
 */
#ifndef SYMBOLIZE_NAME_CACHE_H
#define SYMBOLIZE_NAME_CACHE_H

#include "core/arena.h"
#include "symbolize/symbolize.h"

struct name_cache;

/* Opens the cache at path; NULL: where HSYM_CACHE says ("off": there is none), else in the user's folder
 * for caches. NULL: there is none, or out of memory. */
struct name_cache *name_cache_open(const char *path);

/* The names of rva in the module that key tells; texts and list in the arena. 1, 0 or -ERR_NOMEM. */
int name_cache_find(struct name_cache *cache, const char *key, uint32_t rva, struct arena *arena,
	struct symbols *found);

/* Remembers them until name_cache_close(), which writes what is new. symbols must live so long. */
int name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols);

/* Frees it. That something could not be written is nobody's trouble. cache may be NULL. */
void name_cache_close(struct name_cache *cache);

#endif
