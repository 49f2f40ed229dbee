/* llvm-symbolizer: finding its programs, exchanging questions and answers with one, and preparing
 * the files to look up. */
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
 * Appends the full paths of the available programs to `list`, best first, each with its NUL. If
 * HSYM_LLVM is set, only its program counts. Otherwise the programs beside this program come first
 * (Windows), then those in the folders of PATH, in order. Within a folder, the latest version comes
 * first (Debian's names are like llvm-symbolizer-19). The current folder is never searched.
 * Implemented in helper_posix.c and helper_windows.c.
 */
void llvm_program_list(struct buf *list);

/* An exchange of questions and answers, also used for llvm-undname. */
struct llvm_talk {
	struct helper *helper;
	const struct symbol_options *options; /* contains the listener, which may cancel */
	struct buf questions, answers;
	size_t sent; /* number of bytes of questions already sent */
	unsigned patience_ms; /* time limit for one answer */
	int64_t deadline_ms; /* end of the current time limit, a value of os_clock_ms() */
};

/* Begins an exchange. `helper` and `options` must outlive `talk`. */
void llvm_talk_init(
	struct llvm_talk *talk, struct helper *helper, const struct symbol_options *options);
void llvm_talk_release(struct llvm_talk *talk);

/* Sends as many bytes of the questions as the helper accepts. Appends the helper's output to
 * `answers`, converting line ends to "\n". Waits at most 0.1 s. Returns 0; -ERR_READ if the helper
 * has ended; -ERR_BUSY if the deadline has passed; -ERR_INTERRUPTED if the listener cancelled.
 * After an error the helper must not be used again. */
int llvm_talk_step(struct llvm_talk *talk);

/*
 * Staging: presents files in a form that llvm-symbolizer accepts.
 *
 * llvm-symbolizer takes an image, and uses whatever PDB is at the path recorded in the image, even
 * if the PDB is another build. So for a PDB that was found and checked, the question names a stub:
 * a PE file of 1 KB without code, whose debug directory names that PDB. Stubs get temporary names,
 * and so do files whose paths cannot be used in a question (staging_posix.c, staging_windows.c).
 * The names are valid until staging_free(). However this process ends, no file remains, except for
 * an empty folder on Windows.
 */

struct staging;

/* Creates a staging without files. */
struct staging *staging_new(void);
void staging_free(struct staging *staging);

/* Appends to `name` the path to use in questions: that of a stub for the PDB in `files`, or that of
 * the image if there is no PDB. A subject's `number` must always stand for the same files. Returns
 * false on failure. */
bool staging_file(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name);

/* Writes to `stub` an image without code that names the file `pdb`. Properties that affect names
 * are copied from the image in `files`, if there is one. */
void staging_stub(struct buf *stub, const struct module_files *files, const char *pdb);

#endif
