#include "symbolize/names.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "symbolize/symbolize.h"

/* Most addresses have one name, and none many: no room is kept for more. */
struct named {
	struct symbol *list;
	size_t count;
};

struct symbol_names {
	struct table addrs; /* address -> index into named */
	struct named *named;
	size_t count, cap;
	struct arena texts;
};

struct symbol_names *symbol_names_new(void)
{
	struct symbol_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	table_init(&names->addrs);
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
	table_release(&names->addrs);
	arena_release(&names->texts);
	free(names);
}

/* The names of addr, a place for them when there are none yet, or NULL: out of memory. */
static struct named *named_at(struct symbol_names *names, uint64_t addr)
{
	uint64_t *index = table_find(&names->addrs, &addr, sizeof(addr));

	if (index)
		return &names->named[*index];
	if (array_grow((void **)&names->named, &names->cap, names->count, sizeof(*names->named)) ||
		table_add(&names->addrs, &addr, sizeof(addr), names->count))
		return NULL;
	names->named[names->count] = (struct named){0};
	return &names->named[names->count++];
}

/* A number that must be there. */
static int number(const struct kv *pairs, const char *key, uint64_t *value)
{
	return kv_get(pairs, key) ? kv_get_number(pairs, key, 16, value) : -ERR_BAD_LINE;
}

static int line_number(const struct kv *pairs, uint32_t *line)
{
	uint64_t value = 1;
	int rc = kv_get_number(pairs, "line", 10, &value);

	if (rc || !value || value > UINT32_MAX)
		return -ERR_BAD_LINE;
	*line = kv_get(pairs, "line") ? (uint32_t)value : 0;
	return 0;
}

int symbol_names_note(struct symbol_names *names, const struct kv *pairs)
{
	struct symbol symbol = {
		.function = kv_get(pairs, "function"), .file = kv_get(pairs, "file")};
	struct symbols kept;
	struct symbol *list;
	struct named *named;
	uint64_t addr;
	int rc;

	if (number(pairs, "addr", &addr) || number(pairs, "offset", &symbol.offset_bytes) ||
		line_number(pairs, &symbol.line) || !symbol.function || !*symbol.function)
		return -ERR_BAD_LINE;
	named = named_at(names, addr);
	if (!named)
		return -ERR_NOMEM;
	if (named->count == SYMBOL_CHAIN_MAX)
		return -ERR_BAD_LINE;
	list = realloc(named->list, (named->count + 1) * sizeof(*list));
	if (!list)
		return -ERR_NOMEM;
	named->list = list;
	if (symbol.file && !*symbol.file)
		symbol.file = NULL;
	rc = names_keep(&names->texts, &symbol, 1, &kept);
	if (rc)
		return rc;
	named->list[named->count++] = *kept.list;
	return 0;
}

struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr)
{
	const uint64_t *index = table_find(&names->addrs, &addr, sizeof(addr));

	if (!index)
		return (struct symbols){0};
	return (struct symbols){
		.list = names->named[*index].list, .count = names->named[*index].count};
}

/* What a note may hold of a text from elsewhere. */
static void write_quoted(struct out *out, struct buf *text, const char *value)
{
	size_t len = kv_plain_len(value);

	buf_clear(text);
	if (!value[len]) {
		out_char(out, '"');
		out_write(out, value, len);
		out_char(out, '"');
	} else if (kv_quote(text, value))
		err_set(&out->err, ERR_NOMEM, out->path, NULL);
	else
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

static const char *text_keep(struct arena *arena, const char *text)
{
	const char *end = memchr(text, '\0', SYMBOL_TEXT_MAX + 1);
	size_t len = end ? (size_t)(end - text) : SYMBOL_TEXT_MAX;
	char *copy;

	if (!end) {
		while (len &&
			((unsigned char)text[len] & 0xc0) == 0x80) /* not inside a character */
			len--;
	}
	copy = arena_text(arena, text, len);
	return copy ? text_harmless(copy) : NULL;
}

int names_keep(struct arena *arena, const struct symbol *list, size_t count, struct symbols *kept)
{
	struct symbol *copy = arena_alloc(arena, count * sizeof(*copy));

	if (!copy)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		copy[i] = list[i];
		copy[i].function = text_keep(arena, list[i].function);
		if (list[i].file)
			copy[i].file = text_keep(arena, list[i].file);
		if (!copy[i].function || (list[i].file && !copy[i].file))
			return -ERR_NOMEM;
	}
	*kept = (struct symbols){.list = copy, .count = count};
	return 0;
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
			break; /* the parameters */
	}
	*len = strcspn(own, "<(");
	return own;
}

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

static bool is_windows(const char *path)
{
	return strchr(path, '\\') || (path[0] && path[1] == ':');
}

static bool same(char a, char b, bool any_case)
{
	return a == b || (is_slash(a) && is_slash(b)) ||
	       (any_case && text_lower(a) == text_lower(b));
}

/* The bytes of file that the prefix and the slash behind it take; 0: it does not begin so. */
static size_t bytes_of_prefix(const char *file, const char *prefix, bool any_case)
{
	size_t len = 0;

	while (prefix[len] && file[len] && same(file[len], prefix[len], any_case))
		len++;
	if (prefix[len] || !len)
		return 0;
	if (is_slash(prefix[len - 1]))
		return len;
	return is_slash(file[len]) ? len + 1 : 0;
}

const char *names_strip_path(const char *file, const char *const *prefixes, size_t count)
{
	bool any_case = is_windows(file);
	size_t longest = 0;

	for (size_t i = 0; i < count; i++) {
		size_t len = bytes_of_prefix(file, prefixes[i], any_case);

		if (len > longest && file[len])
			longest = len;
	}
	return file + longest;
}
