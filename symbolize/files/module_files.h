/*
 * The files of a module on this machine: its image and its PDB, found and checked to be those that the
 * dump means.
 *
 * Where is looked, in this order, for the image: the path that the dump gives (through each --map that
 * fits, then as it is: through the Wine prefix elsewhere than on Windows); the folders and stores of the
 * symbol path; elsewhere than on Windows, for the system's own DLLs, where Wine keeps its own. For the
 * PDB: the path that the image gives, or else the dump, as above; beside the image, or where the dump has
 * it; the symbol path. Only what is the dump's build is taken: a PDB by GUID and age, an image by size and
 * time stamp and, where they are known, GUID and age or else the checksum. UMDH's dumps record but path
 * and size. What is found and does not fit is said once through the listener, with both values and the
 * path, unless the right file is found elsewhere; so is one that is damaged or packed. Paths in dumps and
 * images that lead to other machines or devices are not opened; nor is anything that is no regular file.
 */
#ifndef SYMBOLIZE_FILES_MODULE_FILES_H
#define SYMBOLIZE_FILES_MODULE_FILES_H

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/pe/pe.h"
#include "symbolize/files/pdb.h"
#include "symbolize/symbolize.h"

struct module_files {
	bool is_searched;
	char *image; /* UTF-8 path here; NULL: there is none */
	struct pe_image
		*pe; /* its headers; NULL when image is. Large, and most files are not there. */
	char *pdb; /* the PDB; NULL: there is none. It can be here without the image. */
	char guid
		[33]; /* of the PDB that belongs to the module, 32 upper-case digits; "": not known */
	uint32_t age;
	bool has_dwarf; /* in the image */
	bool is_mismatch; /* taken for --allow-mismatch: what they say may be wrong */
	bool is_pdb_damaged; /* a PDB is here that cannot be read, and none of this build is */
	struct buf reason; /* why something is missing or poor: one line, may be empty */
};

struct finder;

/* Parses the symbol path and the maps; touches no file. NULL and ERR_USAGE in err: they make no sense. options
 * must outlive it. */
struct finder *finder_new(const struct symbol_options *options, struct err *err);
void finder_free(struct finder *finder);

/* Warns of folders in the symbol path that are missing, once, also before a search does. */
void finder_check_places(struct finder *finder);

/* Fills *files, which is zeroed the first time; later calls change nothing. */
void finder_find(struct finder *finder, const struct module *module, struct module_files *files);
void module_files_release(struct module_files *files);

/* The symbol path for one who asks servers too (DbgHelp), or NULL when it names none. Owned by finder. */
const char *finder_servers(const struct finder *finder);

/* Whether a file is of the build that a dump recorded. */

/* How one differs: "time stamp 5F3A0001 in the dump, 60112233 in the file". */
#define DIFFERENCE_BYTES 160

/* True when it does, then with a text of DIFFERENCE_BYTES at how. */
bool build_image_differs(const struct module *module, const struct pe_image *pe, char *how);

/* The same of a PDB that must have this GUID (32 upper-case digits) and age; by whom says whose they
 * are: "dump" or "image". */
bool build_pdb_differs(const char *guid, uint32_t age, const struct pdb_identity *pdb,
	const char *by_whom, char *how);

/* True for 32 hexadecimal digits that are not all 0: then also *upper, of 33 bytes, in upper case. */
bool build_guid_is_known(const char *guid, char *upper);

/* True when the dump says no more of the module's build than a size. */
bool build_is_unknown(const struct module *module);

/* True when one of the image's sections is called ".debug_info" or ".zdebug_info": it carries DWARF. source is
 * its file. */
bool build_has_dwarf(const struct pe_source *source, const struct pe_image *image);

#endif
