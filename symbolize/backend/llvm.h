/* llvm-symbolizer: its programs, the exchange with one, and the files to look up. */
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
 * Appends the full paths of the available programs to list, each ended by NUL, best first. If
 * HSYM_LLVM is set, its program is the only one. Otherwise they are beside this program (Windows),
 * then in the folders of PATH in their order. The latest version of a folder is first (Debian names
 * them llvm-symbolizer-19). Never in the current folder. Defined in helper_posix.c and
 * helper_windows.c.
 */
void llvm_program_list(struct buf *list);

/* Questions and answers in progress, also for llvm-undname. */
struct llvm_talk {
	struct helper *helper;
	const struct symbol_options *options; /* source of the listener, which may cancel */
	struct buf questions, answers;
	size_t sent; /* bytes of questions */
	unsigned patience_ms; /* for one answer */
	int64_t deadline_ms; /* end of the patience, by os_clock_ms() */
};

/* helper and options are borrowed. */
void llvm_talk_init(
	struct llvm_talk *talk, struct helper *helper, const struct symbol_options *options);
void llvm_talk_release(struct llvm_talk *talk);

/* Sends as many questions as the helper accepts, and appends output to answers, with lines ended by
 * "\n". Waits at most 0.1 s. Returns 0; -ERR_READ: the helper has ended; -ERR_BUSY: the deadline
 * has passed; -ERR_INTERRUPTED: the listener cancelled. After an error the helper must not be used
 * again. */
int llvm_talk_step(struct llvm_talk *talk);

/*
 * Files in the form that llvm-symbolizer accepts.
 *
 * It takes images, and uses any PDB at the path in an image, of whatever build. So a PDB that was
 * found and checked is named by a stub: a PE file of 1 KB without code whose debug directory names
 * that PDB. Stubs, and files whose paths cannot be written in a question, get temporary names:
 * staging_posix.c or staging_windows.c. The names are valid as long as the staging. No file remains
 * after this process ends, by Ctrl-C or otherwise, except for an empty folder on Windows.
 */

struct staging;

/* Creates no file yet. */
struct staging *staging_new(void);
void staging_free(struct staging *staging);

/* Appends to name the path for questions about the PDB in files, or about the image if there is no
 * PDB. number is the subject's number, always for the same files. Returns false on failure. */
bool staging_file(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name);

/* Writes into stub an image without code that names pdb. Its properties are those of the image in
 * files, if there is one, where they matter. */
void staging_stub(struct buf *stub, const struct module_files *files, const char *pdb);

#endif
