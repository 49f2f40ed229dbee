/* PDB files: whom they belong to, and their functions. */
#ifndef SYMBOLIZE_FILES_PDB_H
#define SYMBOLIZE_FILES_PDB_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/pe/pe.h"

/*
 * PDB files ("MSF 7.00"), as far as they are read here.
 *
 * Layout after LLVM's published description of the format ("The PDB File Format": MSF, PDB info
 * stream, DBI stream, symbol records). Nothing in a file is trusted: every block, offset, size and
 * count is checked, memory is bounded by the size of the file. Lines and types are for the backends.
 */

struct pdb_identity {
	char guid[33]; /* 32 upper-case digits, as pe_image.pdb_guid */
	uint32_t age; /* that of the DBI stream, which is the one that images record */
};

/* Returns 0; -ERR_OPEN, -ERR_READ with err filled; -ERR_TARGET: it is no PDB or it is damaged (cut),
 * err's detail says which. */
int pdb_read_identity(const char *path, struct pdb_identity *identity, struct err *err);

/* The functions among its public symbols, by rva then name; their ordinals are 0. Names are as the
 * compiler made them, those of 32-bit images without the '_' before what the source says. Errors as
 * above, also when the image was rearranged after it was linked (OMAP): the places of its symbols are
 * those of before. The caller releases *functions after success. */
int pdb_read_functions(const char *path, struct pe_exports *functions, struct err *err);

struct pdb_parts {
	struct pe_range *list; /* by rva; the caller frees it */
	size_t count, cap;
};

/* The functions of its object files, static ones and those that a compiler made too, as debuggers have
 * them ("private symbols"), and how far each reaches. Names are as in the source, without parameters. None in a
 * PDB that was stripped. Errors as above. The caller releases both after success. */
int pdb_read_private_functions(
	const char *path, struct pe_exports *functions, struct pdb_parts *ranges, struct err *err);

/* What it knows of the image it belongs to: machine, bits and sections, without what they are for; all
 * else is 0. Errors as above. */
int pdb_read_sections(const char *path, struct pe_image *image, struct err *err);

/* The pieces that the linker put the image together from, as far as each was compiled by itself (COMDAT):
 * of one function each. None when it does not say. Errors as above. */
int pdb_read_parts(const char *path, struct pdb_parts *parts, struct err *err);

#endif
