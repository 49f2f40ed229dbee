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
 * A dump that is read twice. Compressed dumps are decompressed. A file is reopened for the second
 * reading. A pipe is stored in memory, up to a limit.
 */

struct input {
	const char *path, *name; /* name is used in messages */
	bool is_pipe, is_over; /* is_over: the whole pipe is in text */
	struct buf text; /* contents of a pipe, as far as read */
	size_t at;
	size_t line_bytes; /* number of bytes in text after the last line end */
	size_t max_bytes; /* limit for the size of text */
	struct source *source; /* NULL: closed */
};

/* Opens `path`; "-" is standard input. Returns 0, or an error of source_open(). */
int input_open(struct input *input, const char *path, struct err *err);

/* Returns to the first byte. Returns the same values as input_open(). */
int input_rewind(struct input *input, struct err *err);

/* Closes the input. Also call this if input_open() failed. */
void input_close(struct input *input);

/*
 * Adding names: copies a dump and adds names for its addresses.
 *
 * addnames_read() collects the addresses, and addnames_resolve() looks them up. addnames_copy()
 * copies every byte of the dump, and inserts the new name lines before the end mark. If a dump is
 * cut inside an entry or a line, the names are inserted before that entry or line. Names after a
 * cut stack would make it look complete.
 */

struct addnames {
	struct arena arena;
	struct module_list modules;
	uint64_t *addrs; /* all return addresses; used until addnames_resolve() */
	size_t addr_count, addr_cap;
	size_t tidy_at; /* duplicates are removed when addr_count reaches this */
	struct seen_stack *seen; /* some of the stacks whose addresses were collected */
	struct symbol_query *queries; /* one query per distinct address, sorted by address */
	size_t count;
	struct symbol_names *names; /* names that the dump already contains */
	struct symbolizer *symbolizer;
	bool is_ours; /* the dump has notes that only hsnap writes */
	bool is_cut; /* the end of the dump is missing */
	int bad_lines; /* number of lines of the dump that were skipped */
	struct err first_bad;
	uint64_t whole_bytes; /* valid if is_cut: offset of the incomplete entry or line */
};

/* `options` may be NULL; otherwise they must outlive `work`. Returns 0, or -ERR_USAGE if the
 * options are invalid. In both cases the caller must call addnames_release(). */
int addnames_init(struct addnames *work, const struct symbol_options *options, struct err *err);
void addnames_release(struct addnames *work);

/* Reads a dump and collects its addresses. Returns the same values as dump_scan(), except 0 instead
 * of -ERR_CUT if `accept_cut` is set. */
int addnames_read(struct addnames *work, struct input *input, bool accept_cut, struct err *err);

void addnames_resolve(struct addnames *work);

/* Copies `input` from its first byte. If `is_shown` is set, `out` is a terminal, so control
 * characters are replaced. Write errors are stored in `out`. Returns 0 or -ERR_READ. */
int addnames_copy(const struct addnames *work, struct input *input, struct out *out, bool is_shown,
	struct err *err);

/* Numbers of distinct addresses in one module. */
struct addnames_module {
	const struct module *module; /* NULL: addresses outside all modules */
	size_t seen, named, carried; /* carried: named by the dump itself */
};

/* Counts the addresses in each module. Sets *rows to one row per module that has addresses, in the
 * order of the modules; a row for addresses outside all modules comes last. Returns the number of
 * rows. The caller frees *rows. */
size_t addnames_modules(const struct addnames *work, struct addnames_module **rows);

/* Returns true for a dump written by UMDH, which records the path and size of each module but not
 * its build. */
#define LACKS_BUILDS "UMDH recorded no GUID: files are matched only by name and size"
bool addnames_lacks_builds(const struct addnames *work);

/* Prints "41 of 45 addresses named". If names are missing, also prints which modules lack names,
 * and what went wrong during the look-up. Then prints the number of bad lines in the dump. */
void addnames_summary(const struct addnames *work, FILE *to, const char *program);

/*
 * Explains why addresses do or do not have names. Writes a row for each module with addresses:
 * number of distinct addresses, number of named addresses, sources of the names, and the module's
 * file on this machine. Indented lines below contain the PDB, and the reason for missing or poor
 * names. The module with the most missing names comes first. addnames_resolve() must have been
 * called. Write errors are stored in `out`.
 */
void explain_write(const struct addnames *work, struct out *out);

/* Names for addresses in one file, which is an image or a PDB. */

struct address_request {
	const char *file; /* PE image or PDB on this machine */
	/* An address is a hexadecimal offset from the load address: "1A2B", "+1A2B", "0x1A2B" or
	 * "app+1A2B". If there is no '+', it may also be an address based on the image's preferred
	 * base. If `count` is 0, each line of standard input is an address. */
	const char *const *texts;
	size_t count;
	/* look up the addresses themselves, not the byte before as for return addresses */
	bool is_exact;
	const struct symbol_options *options; /* must not be NULL */
};

/*
 * Writes a line for each frame, such as "app!main+1F (app.c, 12)". Functions inlined at an address
 * come first, marked " [inline]"; the function itself follows. For an address without a name,
 * writes "app+1A2B". Prints the number of such addresses, and the reason, to standard error.
 *
 * Write errors are kept in `out`. Returns 0; -ERR_OPEN, -ERR_NOT_FILE, -ERR_READ; -ERR_NOT_IMAGE;
 * -ERR_SYMBOLS for a damaged PDB; -ERR_USAGE for an invalid address.
 */
int addr2name_print(const struct address_request *request, struct out *out, struct err *err);

#endif
