/*
 * Options: each command has one table, used by the parser, --help and the test of the man page.
 *
 * Spellings: --long, --long VALUE, --long=VALUE; -s, -s VALUE and -sVALUE for one-letter options;
 * -name VALUE for longer short names; UMDH's -s:VALUE ("-p:12", "-pn:app.exe"); and long names
 * after a single dash. "--" ends the options; "-" is an argument.
 */
#ifndef CORE_BASE_OPT_H
#define CORE_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

struct opt {
	int id; /* > 0; returned by opt_next() */
	const char *short_name; /* one or more letters, without the dash; or NULL */
	const char *long_name; /* name without the dashes; or NULL */
	const char *value; /* name of the value in --help; NULL: takes no value */
	const char *help; /* one line; NULL: accepted for compatibility with UMDH, but not listed */
};

struct opt_state {
	const struct opt *table; /* terminated by an entry with id 0 */
	int argc, at;
	char **argv;
	/* stops parsing options at the first argument ("hsnap run PROG -x") */
	bool stop_at_argument;
	bool ended;
	const char *value; /* value of the last option, or the argument */
};

/* Starts parsing at argv[1]. */
void opt_init(struct opt_state *state, const struct opt *table, int argc, char **argv);

/* Returns the id of the next option; OPT_ARGUMENT for an argument, with `value` set; 0 at the end;
 * or -ERR_USAGE. */
#define OPT_ARGUMENT (-1000)
int opt_next(struct opt_state *state, struct err *err);

/* Prints the options that have a help line. */
void opt_help(const struct opt *table, FILE *to);

#endif
