/* The inside of the finder (module_files.h): what its parts share. */
#ifndef SYMBOLIZE_FINDER_H
#define SYMBOLIZE_FINDER_H

#include "core/arena.h"
#include "core/table.h"
#include "symbolize/files/build_match.h"
#include "symbolize/files/local_path.h"
#include "symbolize/files/module_files.h"
#include "symbolize/files/path_map.h"
#include "symbolize/files/symbol_path.h"
#include "symbolize/files/symbol_store.h"

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

/* Each fills files. 0, also when there is none, or -ERR_NOMEM. */
int search_image(struct search *search);
int search_pdb(struct search *search);

/* With --allow-mismatch, when there is no better. */
int search_other_image(struct search *search);
int search_other_pdb(struct search *search);

/* Fills files->reason and tells the listener. 0 or -ERR_NOMEM. */
int search_explain(struct search *search);

#endif
