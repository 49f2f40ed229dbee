#include "symbolize/lookup/lookup.h"

#include <string.h>

#include "symbolize/names.h"

/* Lines, and what is inlined, are known to true debug information alone. */
static bool is_from_debug_info(const struct symbols *found)
{
	if (found->count > 1)
		return true;
	for (size_t i = 0; i < found->count; i++) {
		if (found->list[i].line)
			return true;
	}
	return false;
}

/* Keeps the chain with another function at its end, the one that is not inlined. */
static int replace_function(
	struct lookup *lookup, const struct symbol *function, struct arena *arena)
{
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count = lookup->found.count;

	if (count > SYMBOL_CHAIN_MAX)
		return 0;
	memcpy(chain, lookup->found.list, count * sizeof(*chain));
	chain[count - 1] = *function;
	return names_keep(arena, chain, count, &lookup->found);
}

/* How far the function has begun before the address, where tables tell. Those that do not know where all
 * functions begin may mean another one: a public one before it. */
static int find_offset(
	struct sym_module *subject, const struct lookup *lookup, struct symbol *function)
{
	uint64_t end = (uint64_t)lookup->rva + 1;
	bool is_sure;
	uint64_t offset = tables_offset(subject->tables, lookup->rva, &is_sure);
	struct table_name name;
	int rc = 1;

	if (offset && !is_sure) {
		rc = offset <= end ? tables_name_at(subject->tables, (uint32_t)(end - offset),
					     function->function, &name) :
				     0;
		if (rc == 1)
			rc = name.is_said;
	}
	if (rc == 1)
		function->offset_bytes = offset;
	return rc < 0 ? rc : 0;
}

/* The name that the tables have for what begins where the function does: when the backend tells that place and
 * another name, as a helper may that prefers a linker's label, or only a part of the name, without the
 * parameters that tell overloads apart. */
static int find_name(struct sym_module *subject, const struct lookup *lookup,
	struct symbol *function, const struct backend_kind *given_by, bool is_start_told,
	struct arena *arena)
{
	uint64_t end = (uint64_t)lookup->rva + 1;
	struct table_name name;
	int rc;

	if (!function->offset_bytes || function->offset_bytes > end)
		return 0;
	rc = tables_name_at(subject->tables, (uint32_t)(end - function->offset_bytes),
		function->function, &name);
	if (rc != 1)
		return rc;
	if (name.is_said ? !subject->files.pdb &&
				   (given_by->says_parameters || strchr(function->function, '(')) :
			   name.is_for_others || !is_start_told)
		return 0;
	function->function = tables_shown(subject->tables, name.raw, arena);
	return function->function ? 0 : -ERR_NOMEM;
}

/* A symbol whose name begins with a dot is a label within a function. */
static int find_function_of_label(struct sym_module *subject, const struct lookup *lookup,
	struct symbol *function, struct arena *arena)
{
	struct symbol found;
	const char *by;
	int rc = tables_find(subject->tables, lookup->rva, NULL, arena, &found, &by);

	if (rc == 1) {
		function->function = found.function;
		function->offset_bytes = found.offset_bytes;
	}
	return rc < 0 ? rc : 0;
}

static int complete(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena)
{
	const struct symbol *said = &lookup->found.list[lookup->found.count - 1];
	struct symbol function = *said;
	bool is_start_told = said->offset_bytes || subject->files.pdb; /* of a PDB, by the tables */
	int rc = 0;

	if (function.function[0] == '.')
		rc = find_function_of_label(subject, lookup, &function, arena);
	if (!rc && !function.offset_bytes)
		rc = find_offset(subject, lookup, &function);
	if (!rc)
		rc = find_name(subject, lookup, &function, given_by, is_start_told, arena);
	if (rc || (function.function == said->function &&
			  function.offset_bytes == said->offset_bytes))
		return rc;
	return replace_function(lookup, &function, arena);
}

static bool is_believable(struct sym_module *subject, const struct lookup *lookup)
{
	const struct symbol *function = &lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;

	return function->offset_bytes && function->offset_bytes <= end &&
	       tables_reach(subject->tables, (uint32_t)(end - function->offset_bytes), lookup->rva);
}

static bool is_denied(struct sym_module *subject, const struct lookup *lookup)
{
	const struct symbols *found = &lookup->found;
	uint64_t offset = found->count ? found->list[found->count - 1].offset_bytes : 0;
	uint64_t end = (uint64_t)lookup->rva + 1;

	return offset && offset <= end &&
	       tables_deny(subject->tables, (uint32_t)(end - offset), lookup->rva);
}

int choose_name(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena, const char **by)
{
	struct symbols *found = &lookup->found;
	struct symbol symbol;
	int rc;

	*by = NULL;
	/* A helper may prefer the nearest symbol's name to that of the debug information. */
	if (is_denied(subject, lookup))
		*found = (struct symbols){0};
	if (found->count && (lookup->is_sure || is_from_debug_info(found)))
		return complete(subject, lookup, given_by, arena);
	rc = tables_find(subject->tables, lookup->rva,
		found->count ? found->list[found->count - 1].function : NULL, arena, &symbol, by);
	if (rc == 1)
		return names_keep(arena, &symbol, 1, found);
	*by = NULL;
	if (rc || (found->count && !is_believable(subject, lookup)))
		*found = (struct symbols){0};
	return rc;
}
