/*
 * A module's own file on this machine: found, checked to be the one the dump means, and asked for
 * the function that an address belongs to by its own tables.
 */
#ifndef SYMBOLIZE_IMAGE_H
#define SYMBOLIZE_IMAGE_H

#include "core/model.h"
#include "core/os.h"
#include "core/pe.h"

struct image {
	char *path; /* of the file; NULL: none was found yet */
	struct pe_image *pe; /* its headers; NULL: as path. Large, and most files are not there. */
	struct pe_exports symbols, exports;
	bool is_absent; /* there is no file to ask */
	bool tables_read;
	bool is_open;
	struct os_file file;
	uint64_t loaded_base; /* the backend's own; 0: not loaded there */
	bool is_refused; /* by the backend */
};

/* Opens the file of a module; the first time it is looked for and image must be zeroed. Returns 0,
 * -ERR_SYMBOLS when there is none or only another build of it, or -ERR_NOMEM. */
int image_open(struct image *image, const struct module *module);

/* Closes the file; what was learned stays. */
void image_close(struct image *image);

void image_release(struct image *image);

/*
 * The last function in the file's symbol table, or else the last export, that begins at or below
 * rva and can reach it. Returns it, owned by image, or NULL. image must be open.
 */
const struct pe_export *image_function_at(struct image *image, uint32_t rva);

/* False when the function at start cannot be the one that rva belongs to: they lie in different
 * sections, or another function lies between. image must be open. */
bool image_reaches(const struct image *image, uint32_t start, uint32_t rva);

/* From the start of the function that covers rva to the byte behind rva, by the image's table of
 * functions; 0: not known. image must be open. */
uint64_t image_function_offset(const struct image *image, uint32_t rva);

#endif
