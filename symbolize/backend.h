/*
 * Who reads debug information on this platform: llvm_posix.c (the program llvm-symbolizer) or
 * dbghelp_windows.c. A backend that is not there, or dies, is no error: it knows no names.
 */
#ifndef SYMBOLIZE_BACKEND_H
#define SYMBOLIZE_BACKEND_H

#include "core/arena.h"
#include "symbolize/image.h"
#include "symbolize/symbolize.h"

struct lookup {
	uint32_t rva; /* of the call: one byte before the return address */
	struct symbols found; /* offsets are those of the return address */
};

struct backend;

/* Starts nothing yet. NULL: out of memory. */
struct backend *backend_new(void);
void backend_free(struct backend *backend);

/* How long another process may take for one answer. */
void backend_set_patience(struct backend *backend, unsigned ms);

/* What made it give up, a few words, or NULL. That it is not there is no trouble. */
const char *backend_trouble(const struct backend *backend);

/* Fills in found where the backend knows a name, in the arena. Returns 0 or -ERR_NOMEM. */
int backend_resolve(struct backend *backend, struct image *image, struct lookup *lookups,
	size_t count, struct arena *arena);

#endif
