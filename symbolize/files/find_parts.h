/* The inside of the finder of symbol files: symbol paths, stores, places, and the search. */
#ifndef SYMBOLIZE_FILES_FIND_PARTS_H
#define SYMBOLIZE_FILES_FIND_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/pe/pe.h"
#include "symbolize/files/local_path.h"
#include "symbolize/files/module_files.h"

/*
 * "FROM=TO": paths that begin with FROM are looked for at TO. FROM is compared without regard to case
 * (of ASCII letters) or to which slash it is, and ends where a component ends; a slash at its end means
 * nothing. The first "=" parts the two.
 */

struct path_map {
	const char *from, *to; /* in the text it was made of; from does not end in NUL */
	size_t from_len;
};

/* Fills *map, which borrows text. 0 or -ERR_USAGE. */
int path_map_parse(struct path_map *map, const char *text, struct err *err);

/* What is left of path behind FROM, without slashes before it ("" when it is FROM itself), or NULL: the
 * map is not about it. */
const char *path_map_rest(const struct path_map *map, const char *path);

/*
 * A symbol path, as Microsoft documents _NT_SYMBOL_PATH: elements parted by ";", each a folder, or
 * "srv*STORE*...*SERVER", "symsrv*DLL*STORE*...*SERVER", "cache*STORE". Here it becomes the list of
 * places on disks that are searched, in order, each once. Servers are only named.
 */

struct symbol_place {
	const char *path; /* as it was written */
	bool is_store; /* files lie at NAME/KEY/NAME; else it is a folder with files in it */
};

struct symbol_path {
	struct symbol_place *places;
	size_t count, cap;
	const char
		*server; /* the first that is named, "srv*" for the one nobody names; NULL: none */
	const char
		*strange; /* the first element that makes no sense and was passed over; or NULL */
	struct arena arena; /* owns the texts */
	struct table known;
};

void symbol_path_init(struct symbol_path *path);
void symbol_path_release(struct symbol_path *path);

/* Takes in the text of a symbol path. 0 or -ERR_NOMEM. */
int symbol_path_parse(struct symbol_path *path, const char *text);

/*
 * A place of the symbol path, looked through for one file.
 *
 * A folder holds NAME, symbols/EXT/NAME and EXT/NAME, EXT being how the image's name ends, or the
 * file's; a store, as symbol servers and their caches are
 * laid out, NAME/KEY/NAME or, with another tier, NA/NAME/KEY/NAME. A folder may be a store too.
 */

struct store_question {
	const char *name; /* of the file, without a path */
	const char *image; /* name or path of the image that it belongs to, or is */
	const char *key; /* of its build; NULL: not known, stores cannot be asked */
	/* Returns 1 to take the file, 0 to look on, or -ERR_NOMEM. */
	int (*use)(void *ctx, const char *file);
	/* The file is there in a form that is not read: said with what to do about it. 0 or
	 * -ERR_NOMEM. */
	int (*is_packed)(void *ctx, const char *file, const char *remedy);
	void *ctx;
};

/* root is a folder here. Returns 1 when a file was taken, 0, or -ERR_NOMEM. */
int store_search(struct local_paths *paths, const char *root, bool is_store,
	const struct store_question *question);

/* The inside of the finder (module_files.h): what its parts share. */

#define MISFITS_MAX 8 /* of one module; the rest of them is not told */
/* Of a path in a message, which is one line. */
#define SHOWN "%.600s"

struct finder_place {
	const char *root; /* in places.arena */
	bool is_store;
};

/* Where a map leads to. */
struct finder_map {
	struct path_map map;
	bool is_looked;
	int kind; /* enum local_kind of what is there */
	const char *to; /* here, in places.arena; NULL when nothing is there */
};

struct finder {
	const struct symbol_options *options;
	char *symbol_path; /* its text, or NULL */
	struct finder_map *maps;
	struct symbol_path places;
	/* Those of them that are folders here. */
	struct finder_place *roots;
	size_t root_count;
	bool is_looked; /* for them */
	struct local_paths *local;
	struct table said; /* sentences */
};

/* A file that could be meant, and is not used. */
struct misfit {
	bool is_pdb;
	const char *path;
	const char *how; /* "is ..." */
	bool is_build; /* it is another build, and nothing else is wrong with it */
	bool is_quiet; /* nothing to wonder about */
};

/* The search for the files of one module. */
struct search {
	struct finder *finder;
	const struct module *module;
	struct module_files *files;
	struct arena arena; /* owns the texts */
	struct table tried; /* files */
	struct misfit misfits[MISFITS_MAX];
	size_t misfit_count;
	bool is_quiet, is_guess; /* where it looks at the moment */
	/* The first image that is another build, where it may be used. */
	const char *other_image;
	/* The PDB that belongs to the module, or to the image that is used; "": not known. */
	const char *pdb_name; /* without a path; or NULL */
	const char *pdb_owner; /* "dump" or "image" */
};

/* Calls use for the files here that a full path may mean. Returns 1 when it took one, 0, -ERR_NOMEM. */
int finder_meanings(struct finder *finder, const char *path,
	int (*use)(void *ctx, const char *file), void *ctx);

/* The same for the files of the symbol path. */
int finder_places(struct finder *finder, const struct store_question *question);

/* True when this file is looked at the first time; remembers it. */
bool search_is_new(struct search *search, const char *file, int *rc);

/* Remembers a misfit, how being printf-formatted. 0 or -ERR_NOMEM. */
int search_misfit(struct search *search, bool is_pdb, bool is_build, const char *file,
	const char *how, ...) PRINTF_LIKE(5, 6);

/* Forgets what is known of PDBs, to look for another one. */
void search_forget_pdbs(struct search *search);

/* Fills files->reason and tells the listener. 0 or -ERR_NOMEM. */
int search_explain(struct search *search);

/* Whether an image file carries DWARF. */

/* True when one of its sections is called ".debug_info" or ".zdebug_info". source is its file. */
bool build_has_dwarf(const struct pe_source *source, const struct pe_image *image);

#endif
