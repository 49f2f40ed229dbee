/*
 * Files of a module on this machine: its image and its PDB, found and checked against the build in
 * the dump.
 *
 * The image is searched for in this order: at its path in the dump (through each matching --map,
 * then unmapped; through the Wine prefix if not on Windows); in the folders and stores of the
 * symbol path; if not on Windows, for system DLLs, in the folders of an installed Wine. The PDB: at
 * its path in the image, or in the dump, as above; beside the image, or at that place in the dump;
 * in the symbol path.
 *
 * Only files of the dump's build are used. A PDB is checked by GUID and age. An image is checked by
 * size and time stamp and, if known, GUID and age, otherwise the checksum. UMDH's dumps record only
 * path and size. A file of another build is reported once through the listener, with both values
 * and the path, unless the right file is found elsewhere. Damaged and compressed files are reported
 * too. Paths in dumps and images that lead to other machines or devices are not opened; only
 * regular files are.
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
	char *image; /* UTF-8 path here; or NULL */
	/* Its headers; NULL if image is. Allocated because they are large and most files are missing. */
	struct pe_image *pe;
	char *pdb; /* path of the PDB; or NULL. It can exist without the image. */
	char guid[33]; /* of the PDB of the module, 32 upper-case digits; "": unknown */
	uint32_t age;
	bool has_dwarf; /* in the image */
	bool is_mismatch; /* used because of --allow-mismatch: names may be wrong */
	bool is_pdb_damaged; /* a PDB was found but is unreadable, and none of this build is here */
	struct buf reason; /* why something is missing or poor: one line, may be empty */
};

struct finder;

/* Parses the symbol path and the maps; opens no file. Returns NULL and ERR_USAGE in err if one is
 * invalid. options must outlive the finder. */
struct finder *finder_new(const struct symbol_options *options, struct err *err);
void finder_free(struct finder *finder);

/* Warns of missing folders in the symbol path, once, even if no search follows. */
void finder_check_places(struct finder *finder);

/* Searches for the files. *files must start zeroed; later calls change nothing. */
void finder_find(struct finder *finder, const struct module *module, struct module_files *files);
void module_files_release(struct module_files *files);

/* Returns the symbol path for a program that queries servers (DbgHelp), or NULL if it names no
 * server. Owned by finder. */
const char *finder_servers(const struct finder *finder);

/* Checks of a file against the build in a dump. */

/* Size of a difference's text: "time stamp 5F3A0001 in the dump, 60112233 in the file". */
#define DIFFERENCE_BYTES 160

/* Returns true if the image is another build, with the difference in how (DIFFERENCE_BYTES). */
bool build_image_differs(const struct module *module, const struct pe_image *pe, char *how);

/* Returns true if the PDB does not have this GUID (32 upper-case digits) and age. by_whom names
 * their source in the text: "dump" or "image". */
bool build_pdb_differs(const char *guid, uint32_t age, const struct pdb_identity *pdb,
	const char *by_whom, char *how);

/* Returns true for 32 hexadecimal digits that are not all 0; *upper (33 bytes) is then the same in
 * upper case. */
bool build_guid_is_known(const char *guid, char *upper);

/* Returns true if the dump records at most the size of the module's build. */
bool build_is_unknown(const struct module *module);

/* Returns true if a section of the image is named ".debug_info" or ".zdebug_info": the image has
 * DWARF. source reads its file. */
bool build_has_dwarf(const struct pe_source *source, const struct pe_image *image);

#endif
