/* Chooses between a backend's name and the names in the module's tables (lookup.h). */
#include "symbolize/lookup/lookup.h"

#include <string.h>

#include "symbolize/names.h"

/* Replaces the last function of the chain: the outermost function, which is not inlined. */
static void replace_function(
	struct lookup *lookup, const struct symbol *function, struct arena *arena)
{
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count = lookup->found.count;

	if (count > SYMBOL_CHAIN_MAX)
		return;
	memcpy(chain, lookup->found.list, count * sizeof(*chain));
	chain[count - 1] = *function;
	names_copy(arena, chain, count, &lookup->found);
}

/* Sets the function's offset from its start, if the tables contain the start. Tables that lack some
 * starts may return the start of an earlier public function instead. So, if the tables are not
 * sure, the function at that start must have the right name. */
static void find_offset(
	struct sym_module *subject, const struct lookup *lookup, struct symbol *function)
{
	uint64_t end = (uint64_t)lookup->rva + 1;
	bool is_sure;
	uint64_t offset = tables_offset(subject->tables, lookup->rva, &is_sure);
	struct table_name name;

	if (!offset || is_sure ||
		(offset <= end &&
			tables_name_at(subject->tables, (uint32_t)(end - offset),
				function->function, &name) == 1 &&
			name.is_said))
		function->offset_bytes = offset;
}

/* Replaces the backend's name with the tables' name for the function's start, if that is better.
 * There are two cases. The backend may know the start but have another name: llvm-symbolizer may
 * prefer a linker's label. Or the backend may have only a part of the name, without the parameters
 * that distinguish overloads. */
static void find_name(struct sym_module *subject, const struct lookup *lookup,
	struct symbol *function, const struct backend_kind *given_by, bool has_start,
	struct arena *arena)
{
	uint64_t end = (uint64_t)lookup->rva + 1;
	struct table_name name;
	bool is_better;

	if (!function->offset_bytes || function->offset_bytes > end ||
		tables_name_at(subject->tables, (uint32_t)(end - function->offset_bytes),
			function->function, &name) != 1)
		return;
	if (name.is_said)
		is_better = subject->files.pdb ||
			    !(given_by->says_parameters || strchr(function->function, '('));
	else
		is_better = has_start && !name.is_for_others;
	if (is_better)
		function->function = tables_shown(subject->tables, name.raw, arena);
}

static void complete(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena)
{
	const struct symbol *symbol = &lookup->found.list[lookup->found.count - 1];
	struct symbol function = *symbol, found;
	/* for a PDB, the tables may supply the start */
	bool has_start = symbol->offset_bytes || subject->files.pdb;
	const char *by;

	/* A symbol whose name begins with a dot is a label inside a function. */
	if (function.function[0] == '.' &&
		tables_find(subject->tables, lookup->rva, NULL, arena, &found, &by) == 1) {
		function.function = found.function;
		function.offset_bytes = found.offset_bytes;
	}
	if (!function.offset_bytes)
		find_offset(subject, lookup, &function);
	find_name(subject, lookup, &function, given_by, has_start, arena);
	if (function.function != symbol->function || function.offset_bytes != symbol->offset_bytes)
		replace_function(lookup, &function, arena);
}

/* Computes the start of the found function. Returns false if the start is unknown or impossible. */
static bool find_start(const struct lookup *lookup, uint32_t *start)
{
	const struct symbols *found = &lookup->found;
	uint64_t offset = found->count ? found->list[found->count - 1].offset_bytes : 0;
	uint64_t end = (uint64_t)lookup->rva + 1;

	*start = (uint32_t)(end - offset);
	return offset && offset <= end;
}

const char *choose_name(struct sym_module *subject, struct lookup *lookup,
	const struct backend_kind *given_by, struct arena *arena)
{
	struct symbols *found = &lookup->found;
	struct symbol symbol;
	const char *by;
	uint32_t start;

	/* Drop the name of a wrong function: llvm-symbolizer may return the nearest symbol, even if
	 * the debug information contains the right function. */
	if (find_start(lookup, &start) && tables_deny(subject->tables, start, lookup->rva))
		*found = (struct symbols){0};
	/* Lines and inlined functions come only from real debug information. */
	if (found->count && (lookup->is_sure || found->count > 1 || symbols_count_lines(found))) {
		complete(subject, lookup, given_by, arena);
		return NULL;
	}
	if (tables_find(subject->tables, lookup->rva,
		    found->count ? found->list[found->count - 1].function : NULL, arena, &symbol,
		    &by) == 1) {
		names_copy(arena, &symbol, 1, found);
		return by;
	}
	if (!find_start(lookup, &start) || !tables_reach(subject->tables, start, lookup->rva))
		*found = (struct symbols){0};
	return NULL;
}
