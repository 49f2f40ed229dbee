/*
 * What hsym does: a dump goes in, the same dump with the names of its addresses goes out.
 *
 * addnames_read() takes in what there is to name; addnames_resolve() asks for it; addnames_copy()
 * passes every byte of the dump through and puts the new name lines before the end mark.
 */
#ifndef SYMBOLIZE_ADDNAMES_H
#define SYMBOLIZE_ADDNAMES_H

#include "core/module_list.h"
#include "core/out.h"
#include "core/table.h"
#include "symbolize/input.h"
#include "symbolize/symbolize.h"

struct addnames {
	struct arena arena;
	struct module_list modules;
	struct table addrs; /* every return address once */
	struct symbol_query *queries; /* one for each, by address */
	size_t count, cap;
	struct symbol_names *names; /* that the dump has already */
	struct symbolizer *symbolizer;
	bool is_cut; /* the end of the dump is missing */
};

/* Returns 0 or -ERR_NOMEM; addnames_release() in both cases. */
int addnames_init(struct addnames *work, struct err *err);
void addnames_release(struct addnames *work);

/* Errors are those of dump_scan(); -ERR_CUT only unless accept_cut. */
int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err);

/* Returns 0 or -ERR_NOMEM. */
int addnames_resolve(struct addnames *work, struct err *err);

/* Reads input from where it stands; failures to write are kept in out. Returns 0 or -ERR_READ,
 * -ERR_NOMEM. */
int addnames_copy(
	const struct addnames *work, struct input *input, struct out *out, struct err *err);

/* "41 of 45 addresses named" and, if that is not all, the modules that lack names. */
void addnames_summary(const struct addnames *work, FILE *to, const char *program);

#endif
