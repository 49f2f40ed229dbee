/*
 * Names of functions for people: those of C++'s templates fill whole screens. What is too long loses, one after the other
 * until it fits: the type of the result and the arguments of templates, parameters, and outer scopes.
 *
 * Forms for programs have names whole.
 */
#include <string.h>

#include "diff/report/report_parts.h"

#define INSIDE_MIN 12 /* bytes in brackets that are worth three dots */

/* Returns the end of an operator's name, whose signs are no brackets, or at. */
static const char *pass_operator(const char *name, const char *at)
{
	static const char *const words[] = {"operator<=>",
		"operator<<=", "operator>>=", "operator->*", "operator<<", "operator>>",
		"operator<=", "operator>=", "operator->", "operator()", "operator<", "operator>"};

	if (*at != 'o' || (at > name && !strchr(": *&", at[-1])))
		return at;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t len = strlen(words[i]);

		if (!strncmp(at, words[i], len))
			return at + len;
	}
	return at;
}

/* Returns the bracket that closes the one at at, or NULL. */
static const char *find_close(const char *at)
{
	size_t depth = 0;

	for (const char *from = at; *at; at++) {
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(")]}", *at) || (*at == '>' && (at == from || at[-1] != '-')))
			depth--;
		if (!depth)
			return at;
	}
	return NULL;
}

/* Appends a name without what is in brackets that begin with open and contain much. "<lambda" and "(anonymous namespace)" are
 * names. */
static void add_without(struct buf *to, const char *name, char open)
{
	const char *from = name;

	for (const char *at = name; *at;) {
		const char *past = pass_operator(name, at), *close = NULL;
		bool is_name = at == name || at[-1] == ':' || at[-1] == ' ';

		if (past == at && *at == open && !is_name)
			close = find_close(at);
		if (close && close - at > INSIDE_MIN) {
			buf_add(to, from, (size_t)(at + 1 - from));
			buf_add_text(to, "...");
			from = close;
		}
		at = close ? close + 1 : past > at ? past : at + 1;
	}
	buf_add_text(to, from);
}

/* Returns the last two parts of a name, "Heap::allocate". */
static const char *inner_scopes(const char *name)
{
	const char *last[2] = {name, name};
	size_t depth = 0;

	for (const char *at = name; *at; at++) {
		if (strchr("<([{", *at))
			depth++;
		else if (strchr(">)]}", *at) && depth)
			depth--;
		else if (!depth && at[0] == ':' && at[1] == ':') {
			last[0] = last[1];
			last[1] = at + 2;
		}
	}
	return last[0];
}

/* Replaces the words from at on by a text that is part of them, or not. */
static void replace(struct buf *words, size_t at, const char *by)
{
	struct buf copy;

	buf_init(&copy);
	buf_add_text(&copy, by);
	words->len = at;
	buf_add(words, copy.data, copy.len);
	buf_release(&copy);
}

void report_shorten(struct buf *words, size_t from, unsigned columns)
{
	static const char brackets[] = "<(";
	size_t module, at;
	struct buf shorter;

	if (words->len <= from || report_columns(words->data) <= columns)
		return;
	module = strcspn(words->data + from, "! <(:");
	at = from + (words->data[from + module] == '!' ? module + 1 : 0);
	replace(words, at, function_own(words->data + at));
	for (size_t i = 0; i < 2 && report_columns(words->data) > columns; i++) {
		buf_init(&shorter);
		add_without(&shorter, words->data + at, brackets[i]);
		replace(words, at, shorter.data);
		buf_release(&shorter);
	}
	if (report_columns(words->data) > columns)
		replace(words, at, inner_scopes(words->data + at));
}
