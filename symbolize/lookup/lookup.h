/* Sources of names in their order, the cache, and the choice among names. */
#ifndef SYMBOLIZE_LOOKUP_LOOKUP_H
#define SYMBOLIZE_LOOKUP_LOOKUP_H

#include "core/base/memory.h"
#include "symbolize/backend/backend.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"

/*
 * Cache of names found earlier: one file of the user, keyed by an identity of the module's build,
 * and by offset.
 *
 * Only names that cannot improve or become wrong are added (sources.c). The cache is optional: a
 * missing, unreadable, oversized, damaged or foreign file counts as empty. Several programs may use
 * the file at once. When it is full, the oldest names are dropped.
 */

#define NAME_CACHE_BYTES ((size_t)16 << 20) /* size limit of the file */

struct name_cache;

/* Opens the cache at path. If path is NULL: at HSYM_CACHE ("off": no cache), otherwise "names" in
 * the user's cache folder (own_cache_folder()). Reads the file; memory and file take at most limit
 * bytes each. A file that is not a cache is never overwritten, except at the user's default place.
 * Returns NULL if there is no cache. */
struct name_cache *name_cache_open(const char *path, size_t limit);

/* Finds the names of rva in the module of key; they live as long as the cache. Returns false if it
 * has none. Names added since the cache was opened, by any program, are not found. cache may be
 * NULL. */
bool name_cache_find(
	struct name_cache *cache, const char *key, uint32_t rva, struct symbols *found);

/* Stores names for name_cache_close() to write; the texts must live until then. Names that cannot
 * be written as a line of text are skipped. cache may be NULL. */
void name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols);

/* Writes what was added, and frees the cache. Write errors are ignored. cache may be NULL. */
void name_cache_close(struct name_cache *cache);

/*
 * Sources of names in their order: the user's cache, the backends, the module's own tables.
 *
 * The cache has two kinds of keys. The first is the module's identity and paths in the dump, if
 * they identify the build. It has names with all their lines, which no other file could improve. A
 * dump with other paths must not get them, because the author of a dump selects by its paths which
 * files are trusted. The second is the identity of the files that were found, if it is unique. It
 * has names without lines, and addresses without a name; these are valid until other files are
 * found. Names with only some lines are not cached.
 */

struct sources {
	struct symbol_options options; /* the user's */
	struct symbol_counts counts; /* for progress */
	struct finder *finder;
	void *backends[BACKENDS_MAX];
	size_t backend_count;
	struct name_cache *cache;
	bool is_cache_tried;
};

/* Returns 0 or -ERR_USAGE; call sources_release() in any case. sources must not move. */
int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err);
void sources_release(struct sources *sources);

/* Fills in found for lookups of one subject, sorted by rva. New texts are in the arena, which must
 * live as long as the sources. If the listener cancels, the remaining lookups get no names. */
void sources_ask(struct sources *sources, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena);

/* Returns why names may be missing, or NULL. */
const char *sources_trouble(const struct sources *sources);

/* Appends the sources of the subject's names, such as "cache, llvm-symbolizer", to the empty
 * text. */
void sources_say(const struct sym_module *subject, struct buf *text);

/*
 * Choice between a backend's name and those in the module's own tables.
 *
 * A name with a line is from real debug information. A name without one may be a symbol far below
 * the address. In that case the tables decide; without an entry in the tables, the name is kept
 * only if its function can reach the address. The tables may have the full name of a C++ function
 * and the backend only its first part. The full name is used then, because it distinguishes
 * overloads. If the tables have a function with another name at the same start, the backend's name
 * is a label's.
 */

/* Chooses the name for lookup->found, which given_by returned (NULL: no backend did); texts are in
 * the arena. Returns the table that the name is from, or NULL if the backend's name stays or there
 * is no name. */
const char *choose_name(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena);

#endif
