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
#ifndef SYMBOLIZE_SOURCES_H
#define SYMBOLIZE_SOURCES_H

#include "symbolize/backend/backend.h"
#include "symbolize/cache/name_cache.h"

struct sources {
	struct symbol_options options; /* the user's, but that progress counts all there is to do */
	struct finder *finder;
	struct backend *backends[BACKENDS_MAX];
	size_t backend_count;
	struct name_cache *cache;
	bool is_cache_tried;
	struct symbol_listener listener; /* the user's */
	/* Of the addresses asked for now. What a second backend asks again was told before. */
	size_t done_count, total_count, told_count;
};

/* 0, -ERR_NOMEM or -ERR_USAGE; sources_release() in any case. sources must not move. */
int sources_init(struct sources *sources, const struct symbol_options *options, struct err *err);
void sources_release(struct sources *sources);

/* Fills in found for lookups of one subject, sorted by rva; what is new is kept in the arena, which must
 * live as long as the sources. When the listener cancels, the rest stays without names. 0 or -ERR_NOMEM. */
int sources_ask(struct sources *sources, struct subject *subject, struct lookup *lookups,
	size_t count, struct arena *arena);

/* Why there may be fewer names than there could be, or NULL. */
const char *sources_trouble(const struct sources *sources);

/* Adds who gave names to the subject, "cache, llvm-symbolizer", to text. 0 or -ERR_NOMEM. */
int sources_say(const struct subject *subject, struct buf *text);

#endif
