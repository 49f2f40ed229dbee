#include "symbolize/judge.h"

#include <string.h>

#include "symbolize/keep.h"
#include "symbolize/tables/demangle.h"

static bool has_line(const struct symbols *found)
{
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

/* Where in text name stands with parameters behind it; before it there may be only what a function made
 * from a template returns, which is not shown. NULL: nowhere. */
static const char *whole_name(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at || at[strlen(name)] != '(' || (at > text && at[-1] != ' '))
		return NULL;
	return memchr(text, '(', (size_t)(at - text)) ? NULL : at;
}

/* The name with its parameters, where tables know it and the backend did not say them. */
static int complete_name(
	struct subject *subject, struct lookup *lookup, bool no_demangle, struct arena *arena)
{
	struct symbol function = lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;
	const char *raw, *whole;
	struct buf text;
	int rc;

	if (!function.offset_bytes || function.offset_bytes > end || strchr(function.function, '('))
		return 0;
	raw = tables_name_at(subject->tables, (uint32_t)(end - function.offset_bytes));
	if (!raw || !is_mangled(raw) || is_mangled(function.function))
		return 0;
	buf_init(&text);
	rc = demangle(raw, &text);
	whole = rc == 1 ? whole_name(text.data, function.function) : NULL;
	if (whole) {
		function.function = no_demangle ? raw : whole;
		rc = replace_function(lookup, &function, arena);
	}
	buf_release(&text);
	return rc < 0 ? rc : 0;
}

static int complete(
	struct subject *subject, struct lookup *lookup, bool no_demangle, struct arena *arena)
{
	struct symbol function = lookup->found.list[lookup->found.count - 1];

	if (!function.offset_bytes) {
		function.offset_bytes = tables_offset(subject->tables, lookup->rva);
		if (function.offset_bytes && replace_function(lookup, &function, arena))
			return -ERR_NOMEM;
	}
	return complete_name(subject, lookup, no_demangle, arena);
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

static bool is_believable(struct subject *subject, const struct lookup *lookup)
{
	const struct symbol *function = &lookup->found.list[lookup->found.count - 1];
	uint64_t end = (uint64_t)lookup->rva + 1;

	return function->offset_bytes && function->offset_bytes <= end &&
	       tables_reach(subject->tables, (uint32_t)(end - function->offset_bytes), lookup->rva);
}

int judge(struct subject *subject, struct lookup *lookup, bool no_demangle, struct arena *arena,
	const char **by)
{
	struct symbols *found = &lookup->found;
	const char *said = found->count ? found->list[found->count - 1].function : NULL;
	struct symbol symbol;
	int rc;

	*by = NULL;
	if (has_line(found))
		return complete(subject, lookup, no_demangle, arena);
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
