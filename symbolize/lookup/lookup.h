/* Where names come from, in their order, and which one is chosen. */
#ifndef SYMBOLIZE_LOOKUP_LOOKUP_H
#define SYMBOLIZE_LOOKUP_LOOKUP_H

#include "core/base/memory.h"
#include "symbolize/backend/backend.h"
#include "symbolize/names.h"
#include "symbolize/symbolize.h"

/*
 * The names that were found before: one file of the user's, keyed by what tells one build of a module
 * from all others, and by offset.
 *
 * Only names that cannot become better or wrong are kept in it: see who adds (sources.c). The file is a
 * help and never a need: one that is not there, cannot be read, is too large, damaged or somebody else's is
 * as an empty one, and what there is no memory for is not known. Several programs may use it at once. When
 * it is full, the oldest names go.
 */

#define NAME_CACHE_BYTES ((size_t)16 << 20) /* the file may have */

struct name_cache;

/* Opens the cache at path; NULL: where HSYM_CACHE says ("off": there is none), else in the user's folder
 * for caches (own_cache_folder(), "names" there). It is read, and takes up to limit bytes of memory and
 * on the disk. A file that is no cache is left alone, but in the user's folder. NULL: there is none. */
struct name_cache *name_cache_open(const char *path, size_t limit);

/* The names of rva in the module that key tells, which live as long as the cache; false: it has none. What
 * was added since it was opened, here or elsewhere, is not found. cache may be NULL. */
bool name_cache_find(
	struct name_cache *cache, const char *key, uint32_t rva, struct symbols *found);

/* Remembers them until name_cache_close(), which writes what is new; till then the texts must live. What
 * would be no line of text is not kept. cache may be NULL. */
void name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols);

/* Frees it. That something could not be written is nobody's trouble. cache may be NULL. */
void name_cache_close(struct name_cache *cache);

/*
 * Where names come from, in their order: the user's cache, the backends, the module's own tables.
 *
 * The cache is asked twice. By what the dump says of a module and its paths, when that tells its build
 * from all others: names with all their lines, which no other file could make better. A dump with other
 * paths does not get them, since whoever wrote a dump chose by its paths which files to believe. And, when
 * the files are found, by what they are, when that tells them from all others: names without lines and
 * addresses without a name, which stand as long as no other file is found. What has some lines only is not
 * kept.
 */

struct sources {
	struct symbol_options options; /* the user's */
	struct symbol_counts counts; /* what progress is told */
	struct finder *finder;
	void *backends[BACKENDS_MAX];
	size_t backend_count;
	struct name_cache *cache;
	bool is_cache_tried;
};

/* 0 or -ERR_USAGE; sources_release() in any case. sources must not move. */
int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err);
void sources_release(struct sources *sources);

/* Fills in found for lookups of one subject, sorted by rva; what is new is kept in the arena, which must
 * live as long as the sources. When the listener cancels, the rest stays without names. */
void sources_ask(struct sources *sources, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena);

/* Why there may be fewer names than there could be, or NULL. */
const char *sources_trouble(const struct sources *sources);

/* Adds who gave names to the subject, "cache, llvm-symbolizer", to text, which is empty. */
void sources_say(const struct sym_module *subject, struct buf *text);

/*
 * Which name an address gets, of those that a backend gave and those that the module's own tables have.
 *
 * A name with a line comes from true debug information. One without may be that of some symbol far below
 * the address: then the tables decide, and what they know nothing of is kept only when it can reach the
 * address. Where tables know a C++ function by its whole name and the backend only by the first part, the
 * whole name is taken, which tells overloads apart. Where they know a function of another name that begins at
 * the same place, the backend's name is that of a label.
 */

/* Decides on lookup->found, which given_by gave (NULL: nobody did); texts are in the arena. Returns the table
 * that the name is from, or NULL: the backend's stands, or there is none. */
const char *choose_name(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena);

#endif
