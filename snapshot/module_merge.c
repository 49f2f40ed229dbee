#include "snapshot/module_merge.h"

#include <string.h>

#include "core/err.h"

/* One of the sorted modules that lies in the place of module, or NULL. */
static const struct module *in_place_of(
	const struct module *modules, size_t count, const struct module *module)
{
	const struct module *before = module_at(modules, count, module->base);
	size_t low = 0;

	if (before)
		return before;
	while (count) { /* the first whose base is not below */
		size_t half = count / 2;

		if (modules[low + half].base < module->base) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return &modules[low];
}

static bool overlaps(
	const struct module *other, const struct module *end, const struct module *module)
{
	if (other == end)
		return false;
	return other->base <= module->base || other->base - module->base < module->size_bytes;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->base == b->base && a->size_bytes == b->size_bytes &&
	       !strcmp(path_base(a->path), path_base(b->path));
}

static int copy_text(struct snapshot *snapshot, const char **text)
{
	if (*text)
		*text = arena_text(&snapshot->arena, *text, strlen(*text));
	return *text ? 0 : -ERR_NOMEM;
}

static int add(struct snapshot *snapshot, const struct module *module)
{
	struct module copy = *module;
	struct module *added;

	if (copy_text(snapshot, &copy.path) || (copy.pdb && copy_text(snapshot, &copy.pdb)) ||
		(copy.pdb_guid && copy_text(snapshot, &copy.pdb_guid)))
		return -ERR_NOMEM;
	added = snapshot_add_module(snapshot);
	if (!added)
		return -ERR_NOMEM;
	*added = copy;
	return 0;
}

int module_merge(struct snapshot *snapshot, const struct module *later, size_t count)
{
	size_t known = snapshot->module_count;
	int replaced = 0;

	for (size_t i = 0; i < count; i++) {
		const struct module *end = snapshot->modules + known;
		const struct module *other =
			known ? in_place_of(snapshot->modules, known, &later[i]) : end;

		if (overlaps(other, end, &later[i]))
			replaced += !is_same(other, &later[i]);
		else if (add(snapshot, &later[i]))
			return -ERR_NOMEM;
	}
	modules_sort(snapshot->modules, snapshot->module_count);
	return replaced;
}
