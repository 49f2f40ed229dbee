/*
 * The names that were found before: one file of the user's, keyed by what tells one build of a module
 * from all others, and by offset.
 *
 * Only names that cannot become better or wrong are kept in it: see who adds (sources.c). The file is a
 * help and never a need: one that is not there, cannot be read, is damaged or somebody else's is as an
 * empty one, and of one that is too large the rest is not read. Several programs may use it at once. What
 * is damaged goes at the next write by someone who met it; when there is too much, the oldest goes
 * (section_file.h).
 */
#ifndef SYMBOLIZE_NAME_CACHE_H
#define SYMBOLIZE_NAME_CACHE_H

#include "core/arena.h"
#include "symbolize/symbolize.h"

#define NAME_CACHE_BYTES ((size_t)64 << 20) /* the file may have */

struct name_cache;

/* Opens the cache at path; NULL: where HSYM_CACHE says ("off": there is none), else in the user's folder
 * for caches (own_cache_folder(), "names" there). A file that is no cache is left alone, but in the
 * user's folder. NULL: there is none, or out of memory. */
struct name_cache *name_cache_open(const char *path);

/* The same with a file of another size. */
struct name_cache *name_cache_open_small(const char *path, size_t limit);

/* The names of rva in the module that key tells; texts and list in the arena, which must be the same one
 * every time and outlive the cache. 1, 0 or -ERR_NOMEM. cache may be NULL. What was added since it was
 * opened, here or elsewhere, is not found. */
int name_cache_find(struct name_cache *cache, const char *key, uint32_t rva, struct arena *arena,
	struct symbols *found);

/* Remembers them until name_cache_close(), which writes what is new. The list of symbols and its texts
 * must live so long. 0 or -ERR_NOMEM. cache may be NULL. */
int name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols);

/* Frees it. That something could not be written is nobody's trouble. cache may be NULL. */
void name_cache_close(struct name_cache *cache);

#endif
