/* The parts of the program hsym. */
#ifndef SYMBOLIZE_HSYM_HSYM_H
#define SYMBOLIZE_HSYM_HSYM_H

#include <stdbool.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "core/io/out.h"
#include "symbolize/symbolize.h"

/*
 * A dump that is read twice, unpacked: a file is read again, what cannot be (a pipe) is kept in
 * memory, within bounds: what has no end is refused.
 */

struct input {
	const char *path, *name; /* name is for messages */
	bool is_pipe, is_over; /* is_over: all of it is in memory */
	struct buf text; /* of a pipe */
	size_t at;
	size_t line_bytes; /* of it behind the last line end */
	size_t max_bytes; /* so much is kept */
	struct source *source; /* NULL: closed */
};

/* Opens path, "-" is standard input: 0, or an error of source_open(). */
int input_open(struct input *input, const char *path, struct err *err);

/* Back to the first byte: as input_open(). */
int input_rewind(struct input *input, struct err *err);

/* Also after input_open() failed. */
void input_close(struct input *input);

/*
 * What hsym does: a dump goes in, the same dump with the names of its addresses goes out.
 *
 * addnames_read() takes in what there is to name; addnames_resolve() asks for it; addnames_copy()
 * passes every byte of the dump through and puts the new name lines before the end mark. Where a dump
 * was cut inside an entry or a line, that stays the last: behind it a stack would look whole.
 */

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

/* options may be NULL, or must outlive work. Returns 0, or -ERR_USAGE when the options make no sense;
 * addnames_release() in any case. */
int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err);
void addnames_release(struct addnames *work);

/* Errors are those of dump_scan(); -ERR_CUT only unless accept_cut. */
int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err);

void addnames_resolve(struct addnames *work);

/* Reads input from its first byte; failures to write are kept in out. is_shown: on a terminal, which must obey nothing
 * of it. Returns 0 or -ERR_READ. */
int addnames_copy(const struct addnames *work, struct input *input, struct out *out, bool is_shown,
	struct err *err);

/* Distinct addresses of a dump that lie in one of its modules. */
struct addnames_module {
	const struct module *module; /* NULL: in none */
	size_t seen, named, carried; /* carried: of the named, by the dump itself */
};

/* Those of all modules that any lie in, in their order, and last of those that lie in none. Returns how many;
 * the caller frees *rows. */
size_t addnames_modules(const struct addnames *work, struct addnames_module **rows);

/* Whether the dump is one of UMDH's, which tells path and size of a module, and nothing of its build. */
#define LACKS_BUILDS "UMDH recorded no GUID: files are taken by name and size alone"
bool addnames_lacks_builds(const struct addnames *work);

/* "41 of 45 addresses named" and, if that is not all, the modules that lack names, what went wrong
 * while they were looked up, and which lines of the dump could not be read. */
void addnames_summary(const struct addnames *work, FILE *to, const char *program);

/*
 * Why addresses of a dump have names, and why not: writes a row for each module that addresses lie in, the
 * one with the most nameless ones first: how many distinct addresses were seen, how many have names, who
 * knew them, the module's file on this machine; below it, indented, its PDB, and why there are no names or
 * poor ones. work has resolved what it read. Failures to write are kept in out.
 */
void explain_write(const struct addnames *work, struct out *out);

/* Names for addresses in one file: an image, or a PDB alone. */

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
 * have none, and why, is a line on standard error. Failures to write are kept in out. Returns 0;
 * -ERR_OPEN, also when the file is neither an image nor a PDB, or damaged; -ERR_READ; -ERR_USAGE: what is no
 * address.
 */
int addr2name_ask(const struct address_request *request, struct out *out, struct err *err);

#endif
