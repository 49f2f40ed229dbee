/*
 * The files of a module on this machine: its image and its PDB, found and checked against the build
 * in the dump.
 *
 * The image is searched for at these places, in order:
 * - its path in the dump: translated by each matching --map, then unchanged (on POSIX, through
 *   the Wine prefix)
 * - the folders and stores of the symbol path
 * - on POSIX, for system DLLs: the folders of an installed Wine
 *
 * The PDB is searched for at these places:
 * - its path recorded in the image or, without an image, in the dump; translated as above
 * - the folder of the image that was found, and the folder of the image's path in the dump
 * - the symbol path
 *
 * Only files of the dump's build are used. A PDB is checked by GUID and age. An image is checked by
 * size and time stamp and, if known, by GUID and age; otherwise by the checksum. UMDH's dumps
 * record only path and size. A file of another build is reported once through the listener, with
 * both values and the path, unless the right file is found elsewhere. Damaged and compressed files
 * are also reported. Paths in dumps and images that lead to other machines or devices are not
 * opened. Only regular files are opened.
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
	char *image; /* UTF-8 path on this machine, or NULL */
	/* Headers of the image; NULL if `image` is NULL. Allocated separately, because they are
	 * large and most files are missing. */
	struct pe_image *pe;
	char *pdb; /* path of the PDB, or NULL; the PDB may exist without the image */
	char guid[33]; /* GUID of the module's PDB, 32 upper-case digits; "": unknown */
	uint32_t age;
	bool has_dwarf; /* the image contains DWARF */
	/* a file of another build is used (--allow-mismatch), so names may be wrong */
	bool is_mismatch;
	/* a PDB was found but is unreadable, and no other PDB of this build was found */
	bool is_pdb_damaged;
	struct buf reason; /* why something is missing or poor: one line, or empty */
};

struct finder;

/* Parses the symbol path and the maps; opens no file. If either is invalid, returns NULL and fills
 * `err` (ERR_USAGE). `options` must outlive the finder. */
struct finder *finder_new(const struct symbol_options *options, struct err *err);
void finder_free(struct finder *finder);

/* Warns about missing folders in the symbol path, once. Works even if no search follows. */
void finder_check_places(struct finder *finder);

/* Searches for the files. *files must be zeroed before the first call. Later calls change
 * nothing. */
void finder_find(struct finder *finder, const struct module *module, struct module_files *files);
void module_files_release(struct module_files *files);

/* Returns the symbol path, for a program that queries servers (DbgHelp), or NULL if the symbol path
 * names no server. The finder owns the result. */
const char *finder_servers(const struct finder *finder);

/* Checks whether a file is the build recorded in a dump. */

/* Buffer size for a difference: "time stamp 5F3A0001 in the dump, 60112233 in the file". */
#define DIFFERENCE_BYTES 160

/* Returns true if the image is another build, and writes the difference to `how`, a buffer of
 * DIFFERENCE_BYTES. */
bool build_image_differs(const struct module *module, const struct pe_image *pe, char *how);

/* Returns true if the PDB does not have this GUID (32 upper-case digits) and age, and writes the
 * difference to `how`. `by_whom` is the source of GUID and age: "dump" or "image". */
bool build_pdb_differs(const char *guid, uint32_t age, const struct pdb_identity *pdb,
	const char *by_whom, char *how);

/* Returns true if `guid` consists of 32 hexadecimal digits that are not all 0. Then also writes the
 * digits to `upper` (33 bytes) in upper case. */
bool build_guid_is_known(const char *guid, char *upper);

/* Returns true if the dump records nothing about the module's build except perhaps its size. */
bool build_is_unknown(const struct module *module);

/* Returns true if the image has a section named ".debug_info" or ".zdebug_info", and so contains
 * DWARF. `source` reads the image's file. */
bool build_has_dwarf(const struct pe_source *source, const struct pe_image *image);

#endif
