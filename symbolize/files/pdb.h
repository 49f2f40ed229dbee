/* PDB files: identity, sections and functions. */
#ifndef SYMBOLIZE_FILES_PDB_H
#define SYMBOLIZE_FILES_PDB_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/pe/pe.h"

/*
 * Subset of PDB files ("MSF 7.00") that hsym needs.
 *
 * The layout follows LLVM's published description ("The PDB File Format": MSF, PDB info stream, DBI
 * stream, symbol records). Files are untrusted: every block, offset, size and count is checked, and
 * memory is bounded by the size of the file. Lines and types are left to the backends.
 */

struct pdb_identity {
	char guid[33]; /* 32 upper-case digits, like pe_image.pdb_guid */
	uint32_t age; /* from the DBI stream, because images record that one */
};

/* Reads GUID and age. Returns 0; -ERR_OPEN or -ERR_READ with err filled; -ERR_TARGET if the file is
 * not a PDB or is damaged (cut), as err's detail explains. */
int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err);

/* Reads the public functions, sorted by rva, then name; their ordinals are 0. Names are as the
 * compiler made them, without the leading '_' in 32-bit images. Errors as above; also for an image
 * that was rearranged after linking (OMAP), because its symbols have the old places. The caller
 * releases *functions after success. */
int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err);

struct pdb_parts {
	struct pe_range *list; /* sorted by rva; the caller frees it */
	size_t count, cap;
};

/* Reads the functions of the object files ("private symbols"), including static and compiler-made
 * ones, with their ranges. Names are as in the source, without parameters. A stripped PDB has none.
 * Errors as above. The caller releases both after success. */
int pdb_read_private_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err);

/* Reads machine, bits and sections of the image, without the sections' flags; everything else is 0.
 * Errors as above. */
int pdb_read_sections(const char *path, struct pe_image *image, struct err *err);

/* Reads the linker's input sections that contain one function each (COMDAT). The list is empty if
 * the PDB does not record them. Errors as above. */
int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err);

#endif
