/* Why addresses of a dump have names, and why not: a table of its modules. */
#ifndef SYMBOLIZE_EXPLAIN_H
#define SYMBOLIZE_EXPLAIN_H

#include "core/out.h"
#include "symbolize/command/addnames.h"

/*
 * Writes a row for each module that addresses lie in, the one with the most nameless ones first: how
 * many distinct addresses were seen, how many have names, who knew them, the module's file on this
 * machine; below it, indented, its PDB, and why there are no names or poor ones. work has resolved what
 * it read. Failures to write are kept in out. Returns 0 or -ERR_NOMEM.
 */
int explain_write(const struct addnames *work, struct out *out, struct err *err);

#endif
