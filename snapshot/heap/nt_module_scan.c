/* Searches the sections of loaded modules for data whose address only the code of these modules
 * knows: keys in ntdll, and the list of page heaps in the verifier. */
#include "snapshot/heap/nt_heap.h"

#include <stdlib.h>

#include <strings.h>

#include "core/pe/pe.h"

bool nt_module_scan(struct nt_walk *nt, const char *name,
	bool (*section)(void *ctx, uint64_t addr, const struct pe_section *section), void *ctx)
{
	struct target *target = nt->memory->target;
	struct pe_image *image = malloc(sizeof(*image));
	struct snapshot modules;
	struct err err;
	bool found = false;

	snapshot_init(&modules);
	if (!image || target->ops->modules(target, &modules, &err))
		modules.module_count = 0;
	for (size_t i = 0; !found && i < modules.module_count; i++) {
		const struct module *module = &modules.modules[i];
		struct target_image at = {.target = target, .base = module->base};
		const struct pe_source source = target_image_source(&at);

		if (!module->path || strcasecmp(module_path_base(module->path), name) != 0 ||
			pe_read_headers(&source, image) || image->bits != nt->process->bits)
			continue;
		for (size_t k = 0; !found && k < image->section_count; k++)
			found = section(
				ctx, module->base + image->sections[k].rva, &image->sections[k]);
	}
	snapshot_release(&modules);
	free(image);
	return found;
}
