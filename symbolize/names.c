/*
 * Names recorded in a dump, calls to the listener, and safe copies of untrusted strings. The rest
 * handles the spelling of names: clone suffixes, calling conventions, path prefixes.
 */
#include "symbolize/names.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "symbolize/symbolize.h"

/* Names of one address. Most addresses have a single name, so the list has exactly the size
 * needed. */
struct named {
	struct symbol *list;
	size_t count;
};

struct symbol_names {
	struct u64map addrs; /* maps an address to an index into named */
	struct named *named;
	size_t count, cap;
	struct arena texts;
};

struct symbol_names *symbol_names_new(void)
{
	struct symbol_names *names = xcalloc(1, sizeof(*names));

	u64map_init(&names->addrs);
	arena_init(&names->texts);
	return names;
}

void symbol_names_free(struct symbol_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++)
		free(names->named[i].list);
	free(names->named);
	u64map_release(&names->addrs);
	arena_release(&names->texts);
	free(names);
}

/* Returns the names of `addr`, adding an empty entry if `addr` has none. */
static struct named *named_at(struct symbol_names *names, uint64_t addr)
{
	uint32_t index = (uint32_t)names->count;

	if (u64map_add(&names->addrs, addr, &index)) {
		array_grow(
			(void **)&names->named, &names->cap, names->count, sizeof(*names->named));
		names->named[names->count++] = (struct named){0};
	}
	return &names->named[index];
}

int symbol_names_note(struct symbol_names *names, const struct kv *pairs)
{
	struct symbol symbol = {
		.function = kv_get(pairs, "function"), .file = kv_get(pairs, "file")};
	uint64_t addr, line = 1;
	struct symbols copy;
	struct named *named;

	if (!kv_get(pairs, "addr") || kv_get_number(pairs, "addr", 16, &addr) ||
		!kv_get(pairs, "offset") ||
		kv_get_number(pairs, "offset", 16, &symbol.offset_bytes) ||
		kv_get_number(pairs, "line", 10, &line) || !line || line > UINT32_MAX ||
		!symbol.function || !*symbol.function)
		return -ERR_BAD_LINE;
	symbol.line = kv_get(pairs, "line") ? (uint32_t)line : 0;
	if (symbol.file && !*symbol.file)
		symbol.file = NULL;
	named = named_at(names, addr);
	if (named->count == SYMBOL_CHAIN_MAX)
		return -ERR_BAD_LINE;
	names_copy(&names->texts, &symbol, 1, &copy);
	named->list = xrealloc(named->list, (named->count + 1) * sizeof(*named->list));
	named->list[named->count++] = *copy.list;
	return 0;
}

struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr)
{
	struct symbols found = {0};
	uint32_t index;

	if (u64map_find(&names->addrs, addr, &index))
		found = (struct symbols){names->named[index].list, names->named[index].count};
	return found;
}

static void write_quoted(struct out *out, struct buf *text, const char *value)
{
	size_t len = strlen(value);

	if (kv_is_plain(value, len)) {
		out_char(out, '"');
		out_write(out, value, len);
		out_char(out, '"');
		return;
	}
	buf_clear(text);
	kv_quote(text, value);
	out_write(out, text->data, text->len);
}

void symbol_names_write(
	struct out *out, uint64_t addr, const struct symbols *symbols, const char *eol)
{
	struct buf text;

	buf_init(&text);
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		out_text(out, "// hsnap: name addr=");
		out_hex(out, addr);
		out_text(out, " function=");
		write_quoted(out, &text, symbol->function);
		out_text(out, " offset=");
		out_hex(out, symbol->offset_bytes);
		if (symbol->file) {
			out_text(out, " file=");
			write_quoted(out, &text, symbol->file);
		}
		if (symbol->line) {
			out_text(out, " line=");
			out_number(out, symbol->line, 10, 0);
		}
		out_text(out, eol);
	}
	buf_release(&text);
}

#define SENTENCE_BYTES 4000

void listener_warn(const struct symbol_options *options, const char *format, ...)
{
	char sentence[SENTENCE_BYTES];
	va_list args;

	if (!options->listener.warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	options->listener.warn(options->listener.ctx, text_harmless(sentence));
}

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total)
{
	struct symbol_counts *counts = options->listener.counts;

	if (counts) {
		if (counts->told < counts->done + done)
			counts->told = counts->done + done;
		done = counts->told;
		total = counts->total;
	}
	if (options->listener.progress)
		options->listener.progress(options->listener.ctx, module, done, total);
}

void listener_busy(const struct symbol_options *options, bool is_busy)
{
	if (options->listener.busy)
		options->listener.busy(options->listener.ctx, is_busy);
}

bool listener_is_cancelled(const struct symbol_options *options)
{
	return options->listener.is_cancelled &&
	       options->listener.is_cancelled(options->listener.ctx);
}

static const char *text_copy(struct arena *arena, const char *text)
{
	const char *end = memchr(text, '\0', SYMBOL_TEXT_MAX + 1);
	size_t len = end ? (size_t)(end - text) : SYMBOL_TEXT_MAX;

	while (!end && len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--; /* do not split a UTF-8 character */
	return text_harmless(arena_text(arena, text, len));
}

void names_copy(struct arena *arena, const struct symbol *list, size_t count, struct symbols *copy)
{
	struct symbol *symbols = arena_alloc(arena, count * sizeof(*symbols));

	for (size_t i = 0; i < count; i++) {
		symbols[i] = list[i];
		symbols[i].function = text_copy(arena, list[i].function);
		if (list[i].file)
			symbols[i].file = text_copy(arena, list[i].file);
	}
	*copy = (struct symbols){.list = symbols, .count = count};
}

size_t symbols_count_lines(const struct symbols *symbols)
{
	size_t count = 0;

	for (size_t i = 0; i < symbols->count; i++)
		count += symbols->list[i].line != 0;
	return count;
}

const char *names_own(const char *name, size_t *len)
{
	const char *own = name;
	size_t depth = 0;

	for (const char *at = name; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && depth)
			depth--;
		else if (!depth && at[0] == ':' && at[1] == ':')
			own = at + 2;
		else if (!depth && at[0] == '(' && strncmp(at, "(anonymous", 10) != 0)
			break; /* the parameters begin here */
	}
	*len = strcspn(own, "<(");
	return own;
}

/* If a clone suffix of gcc or clang (such as ".cold" or ".part.0") is at `at`, returns the position
 * after it; otherwise NULL. */
static const char *pass_clone(const char *at)
{
	/* Requiring a number after these suffixes distinguishes them from parts of a name, such as
	 * Go's names. */
	static const char *const numbered[] = {".isra.", ".constprop.", ".part.", ".lto_priv.",
		".specialized.", ".llvm.", ".__uniq."};
	static const char *const alone[] = {".cold", ".localalias"};
	size_t len = 0;

	for (size_t i = 0; !len && i < sizeof(numbered) / sizeof(*numbered); i++) {
		len = strlen(numbered[i]);
		if (strncmp(at, numbered[i], len) != 0 || !strspn(at + len, "0123456789"))
			len = 0;
	}
	for (size_t i = 0; !len && i < sizeof(alone) / sizeof(*alone); i++) {
		len = strlen(alone[i]);
		if (strncmp(at, alone[i], len) != 0)
			len = 0;
		else if (at[len] == '.' && strspn(at + len + 1, "0123456789"))
			len++;
	}
	return len ? at + len + strspn(at + len, "0123456789") : NULL;
}

/* Returns true if the text from `from` to `end` consists only of clone suffixes. */
static bool is_clone(const char *from, const char *end)
{
	while (from && from < end)
		from = pass_clone(from);
	return from == end;
}

/* Finds the last occurrence of `word` that ends at or before `end`, except at the start of `name`.
 * Returns NULL if there is no such occurrence. */
static const char *find_last(const char *name, const char *end, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = end; at > name + len; at--) {
		if (!strncmp(at - len, word, len))
			return at - len;
	}
	return NULL;
}

/* Returns the length of the name without clone suffixes, which libiberty's demangler prints as "
 * [clone .isra.0]" and LLVM's as " (.isra.0)". */
static size_t length_without_clones(const char *name)
{
	static const struct {
		const char *begin;
		char end;
	} forms[] = {{" [clone .", ']'}, {" (.", ')'}};
	const char *end = name + strlen(name), *last = NULL;

	while (end > name && end != last) {
		last = end;
		for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
			const char *at = end[-1] == forms[i].end ?
						 find_last(name, end, forms[i].begin) :
						 NULL;

			if (at && is_clone(at + strlen(forms[i].begin) - 1, end - 1))
				end = at;
		}
	}
	for (const char *at = name; (at = strchr(at, '.')) && at < end; at++) {
		if (at > name && !strchr(" (", at[-1]) && is_clone(at, end))
			return (size_t)(at - name);
	}
	return (size_t)(end - name);
}

/* Returns the length of a decoration such as "@8" or "@@16" at the end of a C name, or 0. */
static size_t convention_length(const char *name, size_t len)
{
	size_t digits = 0, at;

	while (digits < len && name[len - 1 - digits] >= '0' && name[len - 1 - digits] <= '9')
		digits++;
	at = len - digits;
	if (!digits || at < 2 || name[at - 1] != '@')
		return 0;
	at -= name[at - 2] == '@' ? 2 : 1;
	for (size_t i = name[0] == '@'; i < at; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("_$", name[i]))
			return 0;
	}
	return len - at;
}

const char *names_plain(struct arena *arena, const char *name)
{
	size_t len, convention;

	if (name[0] == '?' || !strpbrk(name, ".@"))
		return name;
	len = length_without_clones(name);
	convention = convention_length(name, len);
	if (convention) {
		const size_t is_led = name[0] == '@' || name[0] == '_';

		if (len - convention > is_led)
			return arena_text(arena, name + is_led, len - convention - is_led);
	}
	return name[len] && len ? arena_text(arena, name, len) : name;
}

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

const char *names_behind(const char *path, const char *prefix, size_t len, bool any_case)
{
	while (len && is_slash(prefix[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++) {
		bool is_same = path[i] == prefix[i] || (is_slash(path[i]) && is_slash(prefix[i])) ||
			       (any_case && text_lower(path[i]) == text_lower(prefix[i]));

		if (!path[i] || !is_same)
			return NULL;
	}
	if (path[len] && !is_slash(path[len]))
		return NULL;
	while (is_slash(path[len]))
		len++;
	return path + len;
}

const char *names_strip_path(const char *file, const char *const *prefixes, size_t count)
{
	bool is_windows = strchr(file, '\\') || (file[0] && file[1] == ':');
	const char *shortest = file;

	for (size_t i = 0; i < count; i++) {
		const char *rest = *prefixes[i] ? names_behind(file, prefixes[i],
							  strlen(prefixes[i]), is_windows) :
						  NULL;

		if (rest && *rest && rest > shortest)
			shortest = rest;
	}
	return shortest;
}
