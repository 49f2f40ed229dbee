/* llvm-symbolizer: the program, talking to it, and the files it is asked about. */
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

/*
 * Adds to list, each ended by NUL, the full paths of those that are here, the best first: the one that
 * HSYM_LLVM names, which is then the only one; those beside this program (Windows) and in the folders of
 * PATH, in their order, and of one folder the latest version (Debian calls them llvm-symbolizer-19).
 * Never in the current folder. helper_posix.c or helper_windows.c.
 */
void llvm_program_list(struct buf *list);

/* Questions and answers under way, for llvm-undname too. */
struct llvm_talk {
	struct helper *helper;
	const struct symbol_options *options; /* whom to ask whether to go on */
	struct buf questions, answers;
	size_t sent; /* of questions */
	unsigned patience_ms; /* for one answer */
	int64_t deadline_ms; /* of os_clock_ms(): when patience ends */
};

/* Both are borrowed. */
void llvm_talk_init(
	struct llvm_talk *talk, struct helper *helper, const struct symbol_options *options);
void llvm_talk_release(struct llvm_talk *talk);

/* Sends what it takes of the questions and adds what it says to the answers, whose lines then end in "\n"; waits
 * a tenth of a second at most. 0; -ERR_READ: it will say nothing any more; -ERR_BUSY: it is too late;
 * -ERR_INTERRUPTED: the listener cancelled. After any of these the helper is of no more use. */
int llvm_talk_step(struct llvm_talk *talk);

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

/* Does nothing yet. */
struct staging *staging_new(void);
void staging_free(struct staging *staging);

/* Adds to name how to ask about the PDB in files, or about the image when there is none; number is that of the
 * subject, which always is about the same. false: it cannot be done. */
bool staging_file(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name);

/* Puts into stub an image without code that names pdb: that of the image in files, where there is one, as far as
 * it matters. */
void staging_stub(struct buf *stub, const struct module_files *files, const char *pdb);

#endif
