/*
 * An image without code that names a PDB.
 *
 * Layout after Microsoft's "PE Format": headers, and one section with a debug directory that has one
 * entry, of type CodeView ("RSDS": GUID, age, name).
 */
#ifndef SYMBOLIZE_STAGING_STUB_H
#define SYMBOLIZE_STAGING_STUB_H

#include "core/buf.h"
#include "symbolize/files/module_files.h"

/* Puts the image into stub: that of the image in files, where there is one, as far as it matters; its PDB
 * is called pdb. 0 or -ERR_NOMEM. */
int staging_stub(struct buf *stub, const struct module_files *files, const char *pdb);

#endif
