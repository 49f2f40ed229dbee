#include "symbolize/judge.h"

#include <string.h>

#include "symbolize/keep.h"
#include "symbolize/own_name.h"
#include "symbolize/tables/demangle.h"

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
	return symbols_keep(arena, chain, count, &lookup->found);
}

/* Whether text is name with more said: parameters, scopes, a result. Both are of what begins at one
 * address, but a linker may have folded functions that have the same code. */
static bool is_whole_name(const char *text, const char *name)
{
	size_t len;
	const char *own = own_name(name, &len), *at = text;

	while (len && (at = strchr(at, *own))) {
		if (!strncmp(at, own, len) && (at[len] == '(' || at[len] == '<') &&
			(at == text || strchr(": ", at[-1])))
			return true;
		at++;
	}
	return false;
}

/* The name with its parameters, where tables know it and the backend did not say them. */
static int complete_name(
	struct subject *subject, struct lookup *lookup, bool no_demangle, struct arena *arena)
{
	struct symbol function = lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;
	const char *raw;
	struct buf text;
	int rc;

	if (!function.offset_bytes || function.offset_bytes > end || strchr(function.function, '('))
		return 0;
	raw = tables_name_at(subject->tables, (uint32_t)(end - function.offset_bytes));
	if (!raw || !is_mangled(raw) || is_mangled(function.function))
		return 0;
	buf_init(&text);
	rc = demangle(raw, &text);
	if (rc == 1 && is_whole_name(text.data, function.function)) {
		function.function = no_demangle ? raw : text.data;
		rc = replace_function(lookup, &function, arena);
	}
	buf_release(&text);
	return rc < 0 ? rc : 0;
}

/* "?grab@Pool@app@@QEAAPEAXN@Z" and "app::Pool::grab(double)": does the first name in the one stand in
 * the other? */
static bool is_same_function(const char *mangled, const char *text)
{
	size_t len = strcspn(mangled + 1, "@?$");
	const char *at = text;

	while (len && (at = strchr(at, mangled[1]))) {
		if (!strncmp(at, mangled + 1, len))
			return true;
		at++;
	}
	return false;
}

/* Whether a name as a compiler made it is that of the function: 1, 0 or -ERR_NOMEM. */
static int is_name_of(const char *raw, const char *function)
{
	struct buf text;
	int rc;

	if (!is_mangled(raw) || !strcmp(raw, function))
		return !strcmp(raw, function);
	if (raw[0] == '?')
		return is_same_function(raw, function);
	buf_init(&text);
	rc = demangle(raw, &text);
	if (rc == 1)
		rc = !strcmp(text.data, function) || is_whole_name(text.data, function);
	buf_release(&text);
	return rc;
}

/* How far the function has begun before the address, where tables tell. Those that do not know where all
 * functions begin may mean another one: a public one before it. */
static int find_offset(
	struct subject *subject, const struct lookup *lookup, struct symbol *function)
{
	uint64_t end = (uint64_t)lookup->rva + 1;
	bool is_sure;
	uint64_t offset = tables_offset(subject->tables, lookup->rva, &is_sure);
	const char *raw;
	int rc = 1;

	if (offset && !is_sure) {
		raw = offset <= end ? tables_name_at(subject->tables, (uint32_t)(end - offset)) :
				      NULL;
		rc = raw ? is_name_of(raw, function->function) : 0;
	}
	if (rc == 1)
		function->offset_bytes = offset;
	return rc < 0 ? rc : 0;
}

static int complete(struct subject *subject, struct lookup *lookup,
	const struct backend_kind *given_by, bool no_demangle, struct arena *arena)
{
	struct symbol function = lookup->found.list[lookup->found.count - 1];

	if (!function.offset_bytes) {
		int rc = find_offset(subject, lookup, &function);

		if (rc)
			return rc;
		if (function.offset_bytes && replace_function(lookup, &function, arena))
			return -ERR_NOMEM;
	}
	return given_by->says_parameters ? 0 : complete_name(subject, lookup, no_demangle, arena);
}

static bool is_believable(struct subject *subject, const struct lookup *lookup)
{
	const struct symbol *function = &lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;

	return function->offset_bytes && function->offset_bytes <= end &&
	       tables_reach(subject->tables, (uint32_t)(end - function->offset_bytes), lookup->rva);
}

static bool is_denied(struct subject *subject, const struct lookup *lookup)
{
	const struct symbols *found = &lookup->found;
	uint64_t offset = found->count ? found->list[found->count - 1].offset_bytes : 0;
	uint64_t end = (uint64_t)lookup->rva + 1;

	return offset && offset <= end &&
	       tables_deny(subject->tables, (uint32_t)(end - offset), lookup->rva);
}

int judge(struct subject *subject, struct lookup *lookup, const struct backend_kind *given_by,
	bool no_demangle, struct arena *arena, const char **by)
{
	struct symbols *found = &lookup->found;
	const char *said = found->count ? found->list[found->count - 1].function : NULL;
	struct symbol symbol;
	int rc;

	*by = NULL;
	/* A helper may prefer the nearest symbol's name to that of the debug information. */
	if (is_denied(subject, lookup)) {
		*found = (struct symbols){0};
		said = NULL;
	}
	if (found->count && (lookup->is_sure || is_from_debug_info(found)))
		return complete(subject, lookup, given_by, no_demangle, arena);
	rc = tables_find(subject->tables, lookup->rva, arena, &symbol, by);
	if (rc == 1) {
		/* Nobody here can read the table's name, but the backend could. */
		if (said && !no_demangle && symbol.function[0] == '?' && said[0] != '?' &&
			is_same_function(symbol.function, said))
			symbol.function = said;
		return symbols_keep(arena, &symbol, 1, found);
	}
	*by = NULL;
	if (rc || (found->count && !is_believable(subject, lookup)))
		*found = (struct symbols){0};
	return rc;
}
