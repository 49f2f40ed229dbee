/*
 * Options: one table per command feeds the parser, --help and the test against the man page.
 *
 * Spellings: --long, --long VALUE, --long=VALUE, -s, -s VALUE, -sVALUE for one-letter options,
 * -name VALUE for short names of several letters, UMDH's -s:VALUE ("-p:12", "-pn:app.exe"), and long
 * names behind one dash. "--" ends the options; "-" is an argument.
 */
#ifndef CORE_BASE_OPT_H
#define CORE_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

struct opt {
	int id; /* what opt_next() returns; > 0 */
	const char *short_name; /* without the dash, one or more letters; or NULL */
	const char *long_name; /* without the dashes; or NULL */
	const char *value; /* the value's name as --help prints it; NULL: takes none */
	const char *help; /* one line; NULL: accepted for UMDH's sake and not listed */
};

struct opt_state {
	const struct opt *table; /* ends with an entry whose id is 0 */
	int argc, at;
	char **argv;
	bool stop_at_argument; /* options end at the first argument ("hsnap run PROG -x") */
	bool ended;
	const char *value; /* of the option just returned */
};

/* Starts at argv[1]. */
void opt_init(struct opt_state *state, const struct opt *table, int argc, char **argv);

/* The next option's id, 0 when none is left, OPT_ARGUMENT with value set, or -ERR_USAGE. */
#define OPT_ARGUMENT (-1000)
int opt_next(struct opt_state *state, struct err *err);

/* Prints a table of the options that have a help line. */
void opt_help(const struct opt *table, FILE *to);

#endif
