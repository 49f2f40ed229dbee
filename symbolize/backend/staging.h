/*
 * Files as llvm-symbolizer can be asked about them.
 *
 * It is asked about images, and takes any PDB that lies where an image says, of whatever build. So a
 * PDB that was found and checked is asked through a stub: a PE file of a kilobyte without code, which
 * names that very PDB. Stubs, and files whose paths cannot be written into a question, get a name of
 * ours: staging_posix.c or staging_windows.c. Names stay as long as the staging, and nothing of it
 * stays behind when this process ends, by Ctrl-C or otherwise; but for an empty folder on Windows.
 */
#ifndef SYMBOLIZE_BACKEND_STAGING_H
#define SYMBOLIZE_BACKEND_STAGING_H

#include <stdint.h>

#include "core/base/memory.h"
#include "symbolize/files/module_files.h"

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
