/* Names for addresses in one file: an image, or a PDB alone. */
#ifndef SYMBOLIZE_ASK_ADDRESSES_H
#define SYMBOLIZE_ASK_ADDRESSES_H

#include "core/out.h"
#include "symbolize/symbolize.h"

struct address_request {
	const char *file; /* a PE image or a PDB on this machine */
	/* "1A2B", "+1A2B", "0x1A2B", "app+1A2B": hexadecimal, from where the file begins in memory, or an
	 * address within it where it asks to lie. None: they are lines of standard input. */
	const char *const *texts;
	size_t count;
	bool is_exact; /* they are no return addresses: looked up as they are, not one byte before */
	const struct symbol_options *options; /* not NULL */
};

/*
 * Writes a line for each frame, as "app!main+1F (app.c, 12)": functions inlined at an address first,
 * marked " [inline]", then the function itself; "app+1A2B" when there is no name. How many addresses
 * have none, and why, is a line on say. Failures to write are kept in out. Returns 0; what
 * asked_module_open() returns; -ERR_USAGE: what is no address; -ERR_NOMEM.
 */
int ask_addresses(
	const struct address_request *request, struct out *out, FILE *say, struct err *err);

#endif
