/* Parts of the program hsym. */
#ifndef SYMBOLIZE_HSYM_HSYM_H
#define SYMBOLIZE_HSYM_HSYM_H

#include <stdbool.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "core/io/out.h"
#include "symbolize/symbolize.h"

/*
 * A dump that is read twice, decompressed. A file is read again. A pipe is kept in memory, up to a
 * limit.
 */

struct input {
	const char *path, *name; /* name is for messages */
	bool is_pipe, is_over; /* is_over: all of it is in memory */
	struct buf text; /* of a pipe */
	size_t at;
	size_t line_bytes; /* bytes of text after the last line end */
	size_t max_bytes; /* limit of text */
	struct source *source; /* NULL: closed */
};

/* Opens path; "-" is standard input. Returns 0, or an error of source_open(). */
int input_open(struct input *input, const char *path, struct err *err);

/* Returns to the first byte. Errors as input_open(). */
int input_rewind(struct input *input, struct err *err);

/* Closes the input, also after input_open() failed. */
void input_close(struct input *input);

/*
 * Adding of names: copies a dump and adds the names of its addresses.
 *
 * addnames_read() collects the addresses; addnames_resolve() looks them up; addnames_copy() copies
 * every byte of the dump and inserts the new name lines before the end mark. If a dump is cut
 * inside an entry or a line, the names are inserted before that. After it, they would make a cut
 * stack look complete.
 */

struct addnames {
	struct arena arena;
	struct module_list modules;
	uint64_t *addrs; /* all return addresses, until addnames_resolve() */
	size_t addr_count, addr_cap;
	size_t tidy_at; /* addr_count at which duplicates are removed */
	struct seen_stack *seen; /* some of the stacks whose addresses are collected */
	struct symbol_query *queries; /* one per distinct address, sorted by address */
	size_t count;
	struct symbol_names *names; /* names that the dump has already */
	struct symbolizer *symbolizer;
	bool is_ours; /* the dump has notes that only hsnap writes */
	bool is_cut; /* the end of the dump is missing */
	int bad_lines; /* lines of the dump that were skipped */
	struct err first_bad;
	uint64_t whole_bytes; /* if is_cut: offset of the incomplete entry or line */
};

/* options may be NULL, otherwise must outlive work. Returns 0, or -ERR_USAGE if the options are
 * invalid; call addnames_release() in any case. */
int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err);
void addnames_release(struct addnames *work);

/* Errors are those of dump_scan(); -ERR_CUT only if not accept_cut. */
int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err);

void addnames_resolve(struct addnames *work);

/* Copies input from its first byte; write errors are kept in out. is_shown: out is a terminal, so
 * control characters are replaced. Returns 0 or -ERR_READ. */
int addnames_copy(const struct addnames *work, struct input *input, struct out *out, bool is_shown,
	struct err *err);

/* Counts of distinct addresses in one module. */
struct addnames_module {
	const struct module *module; /* NULL: outside all modules */
	size_t seen, named, carried; /* carried: named by the dump itself */
};

/* Counts the addresses of each module that has any, in order of the modules; addresses outside all
 * modules are last. Returns the number of rows; the caller frees *rows. */
size_t addnames_modules(const struct addnames *work, struct addnames_module **rows);

/* Returns true for a dump by UMDH, which records path and size of a module but no build. */
#define LACKS_BUILDS "UMDH recorded no GUID: files are taken by name and size alone"
bool addnames_lacks_builds(const struct addnames *work);

/* Prints "41 of 45 addresses named". If names are missing, also prints the modules that lack them
 * and what went wrong during the look-up. Prints the bad lines of the dump. */
void addnames_summary(const struct addnames *work, FILE *to, const char *program);

/*
 * Explains why addresses have names or not. Writes a row for each module with addresses: distinct
 * addresses, named ones, the sources of the names, the module's file on this machine. Indented
 * below are its PDB, and the reason for missing or poor names. The module with the most missing
 * names is first. work must be resolved. Write errors are kept in out.
 */
void explain_write(const struct addnames *work, struct out *out);

/* Names for addresses in one file: an image, or a PDB alone. */

struct address_request {
	const char *file; /* PE image or PDB on this machine */
	/* "1A2B", "+1A2B", "0x1A2B", "app+1A2B": hexadecimal offset from the load address, or an
	 * address relative to the preferred base. If count is 0, the texts are lines of standard
	 * input. */
	const char *const *texts;
	size_t count;
	bool is_exact; /* looked up as they are, not one byte before like return addresses */
	const struct symbol_options *options; /* not NULL */
};

/*
 * Writes a line for each frame, such as "app!main+1F (app.c, 12)": functions inlined at an address
 * first, marked " [inline]", then the function itself; "app+1A2B" without a name. Prints the number
 * of addresses without names, and the reason, to standard error. Write errors are kept in out.
 * Returns 0; -ERR_OPEN, -ERR_NOT_FILE, -ERR_READ; -ERR_NOT_IMAGE; -ERR_SYMBOLS for a damaged PDB;
 * -ERR_USAGE for an invalid address.
 */
int addr2name_ask(const struct address_request *request, struct out *out, struct err *err);

#endif
