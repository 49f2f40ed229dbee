/* Sources of names and their order, the cache, and the choice between names. */
#ifndef SYMBOLIZE_LOOKUP_LOOKUP_H
#define SYMBOLIZE_LOOKUP_LOOKUP_H

#include "core/base/memory.h"
#include "symbolize/backend/backend.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"

/*
 * Cache of names found earlier: one file per user. The key of an entry is an identity of the
 * module's build, plus the offset.
 *
 * Names are added only if they cannot improve or become wrong (sources.c). The cache is optional: a
 * missing, unreadable, oversized, damaged or foreign file counts as empty. Several programs may use
 * the file at once. When it is full, the oldest names are dropped.
 */

#define NAME_CACHE_BYTES ((size_t)16 << 20) /* size limit of the file */

struct name_cache;

/* Opens and reads the cache at `path`. If `path` is NULL, uses the path in HSYM_CACHE ("off": no
 * cache) or, if that is unset, "names" in the user's cache folder (own_cache_folder()). Memory and
 * file take at most `limit` bytes each. A file that is not a cache is never overwritten, unless it
 * is at the default place. Returns NULL if there is no cache. */
struct name_cache *name_cache_open(const char *path, size_t limit);

/* Finds the names of rva in the module identified by `key`. The names are valid as long as the
 * cache is open. Returns false if the cache has no names for rva. Names added after the cache was
 * opened, by any program, are not found. `cache` may be NULL. */
bool name_cache_find(
	struct name_cache *cache, const char *key, uint32_t rva, struct symbols *found);

/* Stores names, which name_cache_close() will write. Their strings must stay valid until then.
 * Names that cannot be written as a line of text are skipped. `cache` may be NULL. */
void name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols);

/* Writes the added names and frees the cache. Write errors are ignored. `cache` may be NULL. */
void name_cache_close(struct name_cache *cache);

/*
 * Sources of names, in order: the user's cache, the backends, the module's own tables.
 *
 * The cache has two kinds of keys. A key of the first kind consists of the module's identity and
 * paths in the dump. It is used if these identify the build. Its entries are names with all their
 * lines, which no other file could improve. The paths select which files are trusted, and the
 * author of a dump chooses them. So they belong to the key: a dump with other paths must not get
 * these names.
 *
 * A key of the second kind is the identity of the files that were found, if it is unique. Its
 * entries are names without lines, and addresses without a name. They are valid until other files
 * are found. If there is no key of the first kind, names with all their lines also get this key.
 * Names with only some lines are not cached.
 */

struct sources {
	struct symbol_options options; /* copy of the user's options */
	struct symbol_counts counts; /* counts for progress */
	struct finder *finder;
	void *backends[BACKENDS_MAX];
	size_t backend_count;
	struct name_cache *cache;
	bool is_cache_tried;
};

/* Returns 0 or -ERR_USAGE. In both cases the caller must call sources_release(). `sources` must not
 * be moved in memory. */
int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err);
void sources_release(struct sources *sources);

/* Fills in `found` for lookups of one subject, which must be sorted by rva. New strings are in the
 * arena, which must live as long as the sources. If the listener cancels, the remaining lookups get
 * no names. */
void sources_resolve(struct sources *sources, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena);

/* Returns why names may be missing, or NULL. */
const char *sources_trouble(const struct sources *sources);

/* Appends the sources of the subject's names, such as "cache, llvm-symbolizer", to `text`, which
 * must be empty. */
void sources_describe(const struct sym_module *subject, struct buf *text);

/*
 * Chooses between a backend's name and those in the module's own tables.
 *
 * A name with a line comes from real debug information, so it is used. A name without a line may
 * belong to a symbol far below the address, so the tables decide. If the tables have no entry, the
 * name is used only if its function can extend to the address.
 *
 * The tables may also improve a name. They may have the full name of a C++ function while the
 * backend has only its first part. Then the full name is used, because it distinguishes overloads.
 * If the tables have a function with another name at the same start, the backend's name is that of
 * a label, and the tables' name is used.
 */

/* Chooses the name for lookup->found. `given_by` is the backend that found a name, or NULL if none
 * did. New strings are in the arena. Returns the table from which the name was taken, or NULL if
 * the backend's name is used or there is no name. */
const char *choose_name(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena);

#endif
