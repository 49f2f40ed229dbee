/*
 * A symbol path, as Microsoft documents _NT_SYMBOL_PATH: elements parted by ";", each a folder, or
 * "srv*STORE*...*SERVER", "symsrv*DLL*STORE*...*SERVER", "cache*STORE". Here it becomes the list of
 * places on disks that are searched, in order, each once. Servers are only named.
 */
#ifndef SYMBOLIZE_SYMBOL_PATH_H
#define SYMBOLIZE_SYMBOL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/table.h"

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

#endif
