/*
 * Keeping names that came from elsewhere: from debug information, from a dump.
 *
 * Such names are never trusted: they are cut to a length that fits on a line of a dump, and
 * control characters in them are made harmless, for they end on someone's terminal.
 */
#ifndef SYMBOLIZE_KEEP_H
#define SYMBOLIZE_KEEP_H

#include "core/arena.h"
#include "symbolize/symbolize.h"

#define SYMBOL_TEXT_MAX 4000 /* bytes; even if every one is written \xHH, two fit on a line */
#define SYMBOL_CHAIN_MAX 64 /* functions inlined into each other at one address */

/* Copies a chain, its texts with it. Returns 0 and *kept, or -ERR_NOMEM. */
int symbols_keep(
	struct arena *arena, const struct symbol *list, size_t count, struct symbols *kept);

#endif
