/*
 * Short names of functions, for people. Names of C++ templates can fill a screen. Parts are removed
 * until the name fits: first the return type and template arguments, then long parameters, then all
 * parameters, then outer scopes. Each removed part is replaced with three dots, except parameters
 * at the end.
 *
 * Reports for programs contain whole names. */
#include <string.h>

#include "core/base/text.h"
#include "diff/report/clean.h"

#define INSIDE_MIN 12 /* text in brackets is replaced with three dots only if it is longer */
/* maximum number of parts of a name that are kept; parts before them (outer scopes) are left out */
#define SCOPES 16

/* Returns the position of the bracket that closes the bracket at `at`, or NULL. */
static const char *find_close(const char *name, const char *at)
{
	size_t depth = 0;

	for (const char *past, *from = at; *at; at = past) {
		past = function_pass_operator(name, at);
		if (past > at)
			continue;
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(")]}", *at) || (*at == '>' && (at == from || at[-1] != '-')))
			depth--;
		if (!depth)
			return at;
		past = at + 1;
	}
	return NULL;
}

/* Returns true if a bracket at `at` is part of a name, as in "<lambda", "(anonymous namespace)" and
 * Go's "main.(*Cache).Put". */
static bool begins_name(const char *name, const char *at)
{
	return at == name || strchr(": .", at[-1]);
}

/* Appends a name. Replaces long texts in brackets of the kind `open` with three dots. Keeps
 * brackets that are part of a name. */
static void add_without(struct buf *to, const char *name, char open)
{
	const char *from = name;

	for (const char *at = name; *at;) {
		const char *past = function_pass_operator(name, at), *close = NULL;
		bool is_name = begins_name(name, at);

		if (past == at && *at == open && !is_name)
			close = find_close(name, at);
		if (close && close - at > INSIDE_MIN) {
			buf_add(to, from, (size_t)(at + 1 - from));
			buf_add_text(to, "...");
			from = close;
		}
		at = close ? close + 1 : past > at ? past : at + 1;
	}
	buf_add_text(to, from);
}

/* Splits a name at its scopes into parts. Stores the starts of the last SCOPES parts, outermost
 * first. Returns the end of the last part, before its parameters. */
static const char *find_parts(const char *name, const char *parts[SCOPES])
{
	const char *close, *past, *end = NULL;

	for (size_t i = 0; i < SCOPES; i++)
		parts[i] = name;
	for (const char *at = name; *at; at = past) {
		bool is_name = begins_name(name, at);

		past = function_pass_operator(name, at);
		close = past == at && strchr("<([{", *at) ? find_close(name, at) :
			*at == '`'			  ? strchr(at, '\'') :
							    NULL;
		if (close && *at == '(' && !is_name)
			end = at;
		if (past == at && at[0] == ':' && at[1] == ':') {
			memmove(parts, parts + 1, (SCOPES - 1) * sizeof(*parts));
			parts[SCOPES - 1] = at + 2;
			end = NULL;
			past = at + 1;
		}
		past = close ? close + 1 : past > at ? past : at + 1;
	}
	return end ? end : name + strlen(name);
}

/* Replaces the text in `words` from index `at` to the end with `by`, which may itself be part of
 * `words`. */
static void replace(struct buf *words, size_t at, const char *by)
{
	struct buf copy;

	buf_init(&copy);
	buf_add_text(&copy, by);
	words->len = at;
	buf_add(words, copy.data, copy.len);
	buf_release(&copy);
}

/* Replaces the outer scopes of the name that begins at `at` with three dots. */
static void replace_scopes(struct buf *words, size_t at, const char *rest)
{
	struct buf shorter;

	buf_init(&shorter);
	buf_add_text(&shorter, "...");
	buf_add_text(&shorter, rest);
	replace(words, at, shorter.data);
	buf_release(&shorter);
}

/* Removes the parameters of the name that begins at index `at`. After that, removes outer scopes
 * until the name fits or only two parts remain. */
static void leave_out_scopes(struct buf *words, size_t at, unsigned columns)
{
	const char *parts[SCOPES], *end = find_parts(words->data + at, parts);
	unsigned module;
	size_t part = 0;

	words->len = (size_t)(end - words->data);
	words->data[words->len] = '\0';
	module = text_columns(words->data) - text_columns(words->data + at);
	for (; part + 2 < SCOPES; part++) {
		size_t mark = parts[part] > words->data + at ? strlen("...") : 0;

		if (module + text_columns(parts[part]) + mark <= columns)
			break;
	}
	if (parts[part] > words->data + at)
		replace_scopes(words, at, parts[part]);
}

void report_shorten(struct buf *words, size_t from, unsigned columns)
{
	static const char brackets[] = "<(";
	size_t module, at;
	struct buf shorter;

	if (words->len <= from || text_columns(words->data) <= columns)
		return;
	module = strcspn(words->data + from, "! <(:");
	at = from + (words->data[from + module] == '!' ? module + 1 : 0);
	replace(words, at, function_own(words->data + at));
	for (size_t i = 0; i < 2 && text_columns(words->data) > columns; i++) {
		buf_init(&shorter);
		add_without(&shorter, words->data + at, brackets[i]);
		replace(words, at, shorter.data);
		buf_release(&shorter);
	}
	if (text_columns(words->data) > columns)
		leave_out_scopes(words, at, columns);
}
