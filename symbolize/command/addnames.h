/*
 * What hsym does: a dump goes in, the same dump with the names of its addresses goes out.
 *
 * addnames_read() takes in what there is to name; addnames_resolve() asks for it; addnames_copy()
 * passes every byte of the dump through and puts the new name lines before the end mark. Where a dump
 * was cut inside an entry or a line, that stays the last: behind it a stack would look whole.
 */
#ifndef SYMBOLIZE_ADDNAMES_H
#define SYMBOLIZE_ADDNAMES_H

#include "core/module_list.h"
#include "core/out.h"
#include "symbolize/command/input.h"
#include "symbolize/symbolize.h"

struct addnames {
	struct arena arena;
	struct module_list modules;
	uint64_t *addrs; /* every return address, until addnames_resolve() */
	size_t addr_count, addr_cap;
	size_t tidy_at; /* so many: some of them are there more than once */
	struct seen_stack *seen; /* some of the stacks whose addresses are all there */
	struct symbol_query *queries; /* one for each, by address */
	size_t count;
	struct symbol_names *names; /* that the dump has already */
	struct symbolizer *symbolizer;
	bool is_ours; /* there are notes in it that only hsnap writes */
	bool is_cut; /* the end of the dump is missing */
	int bad_lines; /* of the dump, passed over */
	struct err first_bad;
	uint64_t whole_bytes; /* when it is: where the unfinished entry or line begins */
};

/* options may be NULL, or must outlive work. Returns 0, -ERR_NOMEM, or -ERR_USAGE when the options make no
 * sense; addnames_release() in any case. */
int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err);
void addnames_release(struct addnames *work);

/* Errors are those of dump_scan(); -ERR_CUT only unless accept_cut, or else -ERR_OPEN. */
int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err);

/* Returns 0 or -ERR_NOMEM. */
int addnames_resolve(struct addnames *work, struct err *err);

/* Reads input from its first byte; failures to write are kept in out. Returns 0 or -ERR_READ,
 * -ERR_NOMEM. */
int addnames_copy(
	const struct addnames *work, struct input *input, struct out *out, struct err *err);

/* How many of the addresses have names. */
size_t addnames_named(const struct addnames *work);

/* Whether the dump is one of UMDH's, which tells path and size of a module, and nothing of its build. */
#define LACKS_BUILDS "UMDH recorded no GUID: files are taken by name and size alone"
bool addnames_lacks_builds(const struct addnames *work);

/* "41 of 45 addresses named" and, if that is not all, the modules that lack names, what went wrong
 * while they were looked up, and which lines of the dump could not be read. */
void addnames_summary(const struct addnames *work, FILE *to, const char *program);

#endif
