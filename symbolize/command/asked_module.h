/* A file on this machine, as the module of a dump that means just this file. */
#ifndef SYMBOLIZE_ASKED_MODULE_H
#define SYMBOLIZE_ASKED_MODULE_H

#include "core/pe.h"
#include "symbolize/files/pdb.h"
#include "symbolize/symbolize.h"

struct asked_module {
	struct module module;
	struct symbol_options options; /* those that were asked for */
	char *name; /* without folder and extension */
	uint64_t preferred_base; /* of the image; 0 for a PDB, which does not tell */
	bool is_pdb;
	char *path, *image_path, *symbol_path;
	struct pe_image image;
	struct pdb_identity identity;
};

/* Opens the image or PDB at path. options must outlive it. 0; -ERR_OPEN, also when it is
 * neither or damaged; -ERR_READ; -ERR_NOMEM. After success the caller releases it. */
int asked_module_open(struct asked_module *asked, const char *path,
	const struct symbol_options *options, struct err *err);
void asked_module_release(struct asked_module *asked);

#endif
