/*
 * Names for addresses: address -> module!function+offset (file, line).
 *
 * The only header of this room that others include. A dump may carry names (hsym writes them);
 * else the module's own file is asked, through the backends that this platform has, in this order:
 * DbgHelp (Windows), llvm-symbolizer (elsewhere), the image's own symbol and export tables. A file
 * that is not the build which the dump recorded is not asked, and no symbol that merely lies
 * somewhere below an address is given: no name is better than a wrong one.
 * What no backend knows is found == 0, and the caller shows module+offset.
 */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/kv.h"
#include "core/model.h"
#include "core/out.h"

struct symbol {
	const char *function;
	/* From the function's start to the return address; 0: not known (a return address is never
	 * at a start). What is inlined often has none. */
	uint64_t offset_bytes;
	const char *file; /* or NULL */
	uint32_t line; /* 1 and up; 0: not known */
};

/* What one return address stands for: functions inlined there first, the function itself last. */
struct symbols {
	const struct symbol *list;
	size_t count; /* 0: no name */
};

/* The names one dump carries ("// hsnap: name" lines), by return address. */
struct symbol_names;
struct symbol_names *symbol_names_new(void); /* NULL: out of memory */
void symbol_names_free(struct symbol_names *names);

/* Takes in one note of kind "name". Returns 0, -ERR_BAD_LINE or -ERR_NOMEM. */
int symbol_names_note(struct symbol_names *names, const struct kv *pairs);

/* count 0 when the dump has no name for it; valid as long as names is. */
struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr);

/* Writes the "// hsnap: name" lines for one address, each ended by eol. */
void symbol_names_write(
	struct out *out, uint64_t addr, const struct symbols *symbols, const char *eol);

struct symbol_query {
	uint64_t addr; /* a return address in the dump's process: looked up at addr - 1 */
	const struct module *module; /* module_of_return(); NULL: there is no name */
	const struct symbol_names *names; /* of the dump, asked first; or NULL */
	struct symbols found; /* out */
};

struct symbolizer;

/* Starts nothing yet. Returns NULL and fills err when memory is out. */
struct symbolizer *symbolizer_new(struct err *err);

/* Ends helper processes and frees all names it gave. */
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Answers queries, as many at once as there are: each distinct address is resolved once. The names
 * live as long as the symbolizer. Returns 0 (also when there are no names) or -ERR_NOMEM.
 */
int symbolizer_resolve(
	struct symbolizer *symbolizer, struct symbol_query *queries, size_t count, struct err *err);

/* How long a helper process may take for one answer, in milliseconds: without it 20000. */
void symbolizer_set_patience(struct symbolizer *symbolizer, unsigned ms);

/* Why there may be fewer names than there could be, a few words; NULL: nothing went wrong. */
const char *symbolizer_trouble(const struct symbolizer *symbolizer);

#endif
