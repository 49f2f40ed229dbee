#include <stdlib.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/table.h"
#include "symbolize/keep.h"
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
	rc = symbols_keep(&names->texts, &symbol, 1, &kept);
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
