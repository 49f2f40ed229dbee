/*
 * How a module's name is spelt when it is to be one thing: upper and lower case are alike in it, and
 * dumps may differ in them. The newest dump's spelling is the one; of several in a dump, or in a
 * comparison that was read, the first by bytes.
 */
#ifndef DIFF_SPELLINGS_H
#define DIFF_SPELLINGS_H

#include "core/arena.h"
#include "core/buf.h"
#include "core/table.h"
#include "diff/naming.h"

struct spellings {
	struct table known; /* name in lower case -> index into items */
	struct spelt *items;
	size_t count, cap;
	struct buf lower;
};

/* Takes the names of all modules that the naming knows of, which must outlive it. Release it in any
 * case. 0 or -ERR_NOMEM. */
int spellings_make(struct spellings *spellings, const struct naming *naming);
void spellings_release(struct spellings *spellings);

/* Sets *spelling to that of a module's short name, which is itself when it is not known. 0 or
 * -ERR_NOMEM. */
int spelling_find(struct spellings *spellings, const char *module, const char **spelling);

#endif
