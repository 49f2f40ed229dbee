/* Whether a file is of the build that a dump recorded. */
#ifndef SYMBOLIZE_BUILD_MATCH_H
#define SYMBOLIZE_BUILD_MATCH_H

#include "core/model.h"
#include "core/pe.h"
#include "symbolize/files/pdb.h"

/* How one differs: "time stamp 5F3A0001 in the dump, 60112233 in the file". */
#define DIFFERENCE_BYTES 160

/* True when it does, then with a text of DIFFERENCE_BYTES at how. */
bool image_differs(const struct module *module, const struct pe_image *pe, char *how);

/* The same of a PDB that must have this GUID (32 upper-case digits) and age; by whom says whose they
 * are: "dump" or "image". */
bool pdb_differs(const char *guid, uint32_t age, const struct pdb_identity *pdb,
	const char *by_whom, char *how);

/* True for 32 hexadecimal digits that are not all 0: then also *upper, of 33 bytes, in upper case. */
bool guid_is_known(const char *guid, char *upper);

/* True when the dump says no more of the module's build than a size. */
bool build_is_unknown(const struct module *module);

#endif
