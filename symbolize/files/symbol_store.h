/*
 * A place of the symbol path, looked through for one file.
 *
 * A folder holds NAME, symbols/EXT/NAME and EXT/NAME, EXT being how the image's name ends, or the
 * file's; a store, as symbol servers and their caches are
 * laid out, NAME/KEY/NAME or, with another tier, NA/NAME/KEY/NAME. A folder may be a store too.
 */
#ifndef SYMBOLIZE_SYMBOL_STORE_H
#define SYMBOLIZE_SYMBOL_STORE_H

#include "symbolize/files/local_path.h"

struct store_question {
	const char *name; /* of the file, without a path */
	const char *image; /* name or path of the image that it belongs to, or is */
	const char *key; /* of its build; NULL: not known, stores cannot be asked */
	/* Returns 1 to take the file, 0 to look on, or -ERR_NOMEM. */
	int (*use)(void *ctx, const char *file);
	/* The file is there in a form that is not read: said with what to do about it. 0 or
	 * -ERR_NOMEM. */
	int (*is_packed)(void *ctx, const char *file, const char *remedy);
	void *ctx;
};

/* root is a folder here. Returns 1 when a file was taken, 0, or -ERR_NOMEM. */
int store_search(struct local_paths *paths, const char *root, bool is_store,
	const struct store_question *question);

#endif
