/* llvm-symbolizer: the program, its answers, and the files it is asked about. */
#ifndef SYMBOLIZE_BACKEND_LLVM_H
#define SYMBOLIZE_BACKEND_LLVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/helper.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"

/* Which llvm-symbolizer is run. llvm.c, helper_posix.c or helper_windows.c. */

/*
 * Adds to list, each ended by NUL, the full paths of those that are here, the best first: the one that
 * HSYM_LLVM names, which is then the only one; those beside this program (Windows) and in the folders of
 * PATH, in their order, and of one folder the latest version (Debian calls them llvm-symbolizer-19).
 * Never in the current folder. 0 or -ERR_NOMEM.
 */
int llvm_program_list(struct buf *list);

/* Starts the first that can be, with arguments as for helper_start(), and puts its path into path. NULL:
 * there is none. */
struct helper *llvm_program_start(const char *const *args, struct buf *path);

/* The major version that a program says it has; 0: it does not say, or the listener cancelled. Takes some
 * 10 ms. */
unsigned llvm_program_version(const char *path, const struct symbol_options *options);

/*
 * What llvm-symbolizer --output-style=LLVM --addresses --verbose prints for one address: the address,
 * for each function its name and lines that begin with two blanks, and an empty line. (Its JSON says
 * the same, at half as much time again.)
 *
 * Its text comes, by way of that program, from files that nobody vouches for: a name may have line
 * breaks in it and look like anything. So an answer is looked for only where it is expected, and
 * what is not as expected gives no names.
 */

struct llvm_frame {
	const char *function, *file; /* in the text that was parsed; "" when not known */
	uint64_t start; /* address where the function begins; 0: not known */
	uint32_t line; /* 0: not known */
};

/* Whether a line, without its end, is the address that an answer begins with. */
bool llvm_answer_address(const char *line, size_t len, uint64_t *addr);

/* Whether a line can only be the rest of an answer. */
bool llvm_answer_continues(const char *line, size_t len);

/* The length of what follows that line, with the empty line at its end; 0: it is not whole yet. No
 * function's name at all is an empty line, too: the text that follows tells. *searched is how far it
 * was looked at before, 0 the first time. */
size_t llvm_answer_length(const char *text, size_t len, size_t *searched);

/* Takes it apart, without the line of its address; text is overwritten. Fills up to max frames, innermost
 * first; of more only the outermost is kept behind the first ones. Returns how many, 0 when it is
 * not well formed. */
size_t llvm_answer_parse(char *text, size_t len, struct llvm_frame *frames, size_t max);

/*
 * Asking llvm-symbolizer about the addresses of one file.
 *
 * A question is a line 'CODE "path" 0xRVA'. All are under way at once, and answers are taken as they
 * come, in the order of the questions. An answer begins with the address it is about: one about another
 * address ends the talk, a line that is no answer is passed over. The last question is about an
 * address that nobody can foresee, so that whatever a file makes llvm-symbolizer say about it ends with
 * that file.
 */

struct llvm_talk {
	struct helper *helper;
	const struct symbol_options *options; /* whom to tell how far it is, and whether to go on */
	const char *module; /* what it is called there */
	const char *file; /* to ask about; llvm_can_ask() */
	struct lookup *lookups; /* those without a name are asked about */
	size_t count;
	size_t at; /* the first to ask about; then the first that has no answer */
	unsigned patience_ms; /* for one answer */
	/* Takes an answer: 0 or -ERR_NOMEM. */
	int (*take)(
		void *ctx, struct lookup *lookup, const struct llvm_frame *frames, size_t count);
	void *ctx;

	/* The rest is for llvm_talk() alone. */
	struct buf questions, answers;
	size_t sent; /* of questions */
	size_t next; /* of lookups, to ask about */
	bool is_all_asked;
	struct lookup *last; /* that was answered */
	uint64_t end_addr; /* that nobody can foresee */
	bool is_inside, is_done; /* behind the address of an answer; of the last one */
	size_t searched, stray_count;
	int64_t deadline_ms, told_ms;
};

/* Whether a question can have this path in it. */
bool llvm_can_ask(const char *path);

/*
 * Asks, and marks those that were answered. 0 when all were; -ERR_READ: it died or talks nonsense;
 * -ERR_BUSY: it is silent; -ERR_INTERRUPTED: the listener cancelled; -ERR_NOMEM. After any of these the
 * helper is of no more use.
 */
int llvm_talk(struct llvm_talk *talk);

/*
 * Files as llvm-symbolizer can be asked about them.
 *
 * It is asked about images, and takes any PDB that lies where an image says, of whatever build. So a
 * PDB that was found and checked is asked through a stub: a PE file of a kilobyte without code, which
 * names that very PDB. Stubs, and files whose paths cannot be written into a question, get a name of
 * ours: staging_posix.c or staging_windows.c. Names stay as long as the staging, and nothing of it
 * stays behind when this process ends, by Ctrl-C or otherwise; but for an empty folder on Windows.
 */

struct staging;

/* Does nothing yet. NULL: out of memory. */
struct staging *staging_new(void);

/* staging may be NULL. */
void staging_free(struct staging *staging);

/*
 * Puts into name (which is cleared first) how to ask about a file, or about the PDB in files; number is
 * that of the subject, which always is about the same. 0; -ERR_CREATE when it cannot be done;
 * -ERR_NOMEM.
 */
int staging_file(struct staging *staging, uint32_t number, const char *path, struct buf *name);
int staging_pdb(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name);

/*
 * An image without code that names a PDB.
 *
 * Layout after Microsoft's "PE Format": headers, and one section with a debug directory that has one
 * entry, of type CodeView ("RSDS": GUID, age, name).
 */

/* Puts the image into stub: that of the image in files, where there is one, as far as it matters; its PDB
 * is called pdb. 0 or -ERR_NOMEM. */
int staging_stub(struct buf *stub, const struct module_files *files, const char *pdb);

#endif
