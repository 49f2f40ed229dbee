/*
 * Options: one table per command feeds the parser, --help and the test of the man page.
 *
 * Spellings: --long, --long VALUE, --long=VALUE, -s, -s VALUE, -sVALUE for one-letter options,
 * -name VALUE for short names of several letters, UMDH's -s:VALUE ("-p:12", "-pn:app.exe"), and
 * long names after one dash. "--" ends the options; "-" is an argument.
 */
#ifndef CORE_BASE_OPT_H
#define CORE_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

struct opt {
	int id; /* returned by opt_next(); > 0 */
	const char *short_name; /* without the dash, one or more letters; or NULL */
	const char *long_name; /* without the dashes; or NULL */
	const char *value; /* name of the value in --help; NULL: no value */
	const char *help; /* one line; NULL: accepted for compatibility with UMDH, not listed */
};

struct opt_state {
	const struct opt *table; /* ends with an entry whose id is 0 */
	int argc, at;
	char **argv;
	bool stop_at_argument; /* options end at the first argument ("hsnap run PROG -x") */
	bool ended;
	const char *value; /* of the last option, or the argument */
};

/* Starts at argv[1]. */
void opt_init(struct opt_state *state, const struct opt *table, int argc, char **argv);

/* Returns the id of the next option, 0 at the end, OPT_ARGUMENT with value set, or -ERR_USAGE. */
#define OPT_ARGUMENT (-1000)
int opt_next(struct opt_state *state, struct err *err);

/* Prints the options that have a help line. */
void opt_help(const struct opt *table, FILE *to);

#endif
