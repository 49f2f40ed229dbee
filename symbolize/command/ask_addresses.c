#include "symbolize/command/ask_addresses.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/hex.h"
#include "core/text.h"
#include "symbolize/command/asked_module.h"

#define TEXT_BYTES 5000 /* of a line of standard input */
#define ADDRESSES_MAX ((size_t)10 << 20)

struct asking {
	const struct address_request *request;
	struct asked_module *asked;
	uint64_t *offsets; /* in the module, as they were given */
	size_t count, cap;
	struct symbol_query *queries;
};

/* ---------------------------------------------------------------- what is asked */

static bool same_name(const char *text, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++) {
		char x = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 0x20) : text[i];
		char y = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];

		if (x != y)
			return false; /* also where name ends */
	}
	return !name[len];
}

/* Hexadecimal digits, all of text: 0, or -1. */
static int read_hex(const char *text, uint64_t *value)
{
	size_t digits = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	*value = 0;
	for (; hex_digits[(unsigned char)text[digits]]; digits++) {
		if (*value >> 60)
			return -1;
		*value = *value << 4 | (uint64_t)(hex_digits[(unsigned char)text[digits]] - 1);
	}
	return digits && !text[digits] ? 0 : -1;
}

static int take_address(struct asking *asking, const char *text, const char *place, struct err *err)
{
	const struct asked_module *asked = asking->asked;
	const char *plus = strrchr(text, '+');
	size_t name_len = plus ? (size_t)(plus - text) : 0;
	uint64_t offset;

	if (name_len && !same_name(text, name_len, asked->name) &&
		!same_name(text, name_len, path_base(asked->path)))
		return err_set(
			err, ERR_USAGE, place, "it lies in another module than %s", asked->name);
	if (read_hex(plus ? plus + 1 : text, &offset))
		return err_set(err, ERR_USAGE, place, "an address is hexadecimal, as +1A2B");
	if (!plus && asked->preferred_base && offset >= asked->preferred_base &&
		offset - asked->preferred_base <= asked->module.size_bytes)
		offset -= asked->preferred_base;
	if (asking->count == ADDRESSES_MAX)
		return err_set(err, ERR_USAGE, place, "these are too many at once");
	if (array_grow((void **)&asking->offsets, &asking->cap, asking->count,
		    sizeof(*asking->offsets)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	asking->offsets[asking->count++] = offset;
	return 0;
}

/* Without blanks around it. Returns where it begins. */
static char *trim(char *text)
{
	size_t len = strlen(text);

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' ' ||
			      text[len - 1] == '\t'))
		text[--len] = '\0';
	return text + strspn(text, " \t");
}

/* One line of standard input, without its end: 1, 0 when there is none left, or -1: it is longer than any
 * address, or has a NUL in it. */
static int next_line(char line[TEXT_BYTES])
{
	size_t len = 0;
	int c;

	while ((c = getc(stdin)) != EOF && c != '\n') {
		if (!c || len + 1 == TEXT_BYTES)
			return -1;
		line[len++] = (char)c;
	}
	line[len] = '\0';
	return len || c != EOF;
}

static int take_lines(struct asking *asking, struct err *err)
{
	char line[TEXT_BYTES], place[60];
	int rc = 0, got = 1;

	for (size_t number = 1; !rc && (got = next_line(line)); number++) {
		char *text = got > 0 ? trim(line) : line;

		snprintf(place, sizeof(place), "standard input:%zu", number);
		if (got < 0)
			rc = err_set(err, ERR_USAGE, place, "no address is written so");
		else if (*text)
			rc = take_address(asking, text, place, err);
	}
	if (!rc && ferror(stdin))
		rc = err_set(err, ERR_READ, "standard input", NULL);
	return rc;
}

static int take_all(struct asking *asking, struct err *err)
{
	const struct address_request *request = asking->request;
	int rc = 0;

	if (!request->count)
		return take_lines(asking, err);
	for (size_t i = 0; !rc && i < request->count; i++)
		rc = take_address(asking, request->texts[i], request->texts[i], err);
	return rc;
}

/* ---------------------------------------------------------------- what is known */

/* A PDB alone does not tell how large its image is: as large as is asked about. */
static void fit_size(struct asking *asking)
{
	struct module *module = &asking->asked->module;

	for (size_t i = 0; asking->asked->is_pdb && i < asking->count; i++) {
		if (asking->offsets[i] >= module->size_bytes && asking->offsets[i] < UINT32_MAX / 2)
			module->size_bytes = (asking->offsets[i] | 0xffff) + 1;
	}
}

static int resolve(struct asking *asking, struct symbolizer *symbolizer, struct err *err)
{
	const struct module *module = &asking->asked->module;

	fit_size(asking);
	asking->queries = calloc(asking->count + 1, sizeof(*asking->queries));
	if (!asking->queries)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; i < asking->count; i++) {
		bool is_inside = asking->offsets[i] <= module->size_bytes;

		asking->queries[i].addr =
			module->base + asking->offsets[i] + asking->request->is_exact;
		asking->queries[i].module = is_inside ? module : NULL;
	}
	return symbolizer_resolve(symbolizer, asking->queries, asking->count, err);
}

/* As hdiff shows a frame without an address. */
static void put_frame(
	struct out *out, const char *module, const struct symbol *symbol, bool is_exact)
{
	out_harmless(out, module);
	out_char(out, '!');
	out_harmless(out, symbol->function);
	if (symbol->offset_bytes) {
		out_char(out, '+');
		out_hex(out, symbol->offset_bytes - is_exact);
	}
	if (symbol->file && symbol->line) {
		out_text(out, " (");
		out_harmless(out, symbol->file);
		out_text(out, ", ");
		out_number(out, symbol->line, 10, 0);
		out_char(out, ')');
	}
}

static void put_answer(struct out *out, const struct asking *asking, size_t number)
{
	const struct symbols *found = &asking->queries[number].found;

	for (size_t i = 0; i < found->count; i++) {
		put_frame(out, asking->asked->name, &found->list[i], asking->request->is_exact);
		out_text(out, i + 1 < found->count ? " [inline]\n" : "\n");
	}
	if (found->count)
		return;
	out_harmless(out, asking->asked->name);
	out_char(out, '+');
	out_hex(out, asking->offsets[number]);
	out_char(out, '\n');
}

static int say_lack(
	const struct asking *asking, struct symbolizer *symbolizer, FILE *say, struct err *err)
{
	const char *trouble = symbolizer_trouble(symbolizer);
	struct symbol_story story;
	size_t lack = 0;
	struct buf words;
	int rc;

	for (size_t i = 0; i < asking->count; i++)
		lack += !asking->queries[i].found.count;
	if (!lack)
		return 0;
	rc = symbolizer_story(symbolizer, &asking->asked->module, &story, err);
	buf_init(&words);
	if (!rc)
		rc = buf_printf(&words, "%zu of %zu addresses have no name", lack, asking->count);
	if (!rc && story.reason && story.reason[0])
		rc = buf_printf(&words, "; %s", story.reason);
	if (!rc && trouble)
		rc = buf_printf(&words, "; %s", trouble);
	if (!rc && symbol_console_stopped())
		rc = buf_add_text(&words, "; stopped looking for names");
	if (!rc)
		fprintf(say, "hsym: %s\n", text_harmless(words.data));
	buf_release(&words);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

static int answer(struct asking *asking, struct out *out, FILE *say, struct err *err)
{
	struct symbolizer *symbolizer = symbolizer_new(&asking->asked->options, err);
	int rc;

	if (!symbolizer)
		return -(int)err->code;
	rc = resolve(asking, symbolizer, err);
	for (size_t i = 0; !rc && i < asking->count; i++)
		put_answer(out, asking, i);
	if (!rc)
		rc = say_lack(asking, symbolizer, say, err);
	symbolizer_free(symbolizer);
	return rc;
}

int ask_addresses(
	const struct address_request *request, struct out *out, FILE *say, struct err *err)
{
	struct asked_module asked;
	struct asking asking = {.request = request, .asked = &asked};
	int rc = asked_module_open(&asked, request->file, request->options, err);

	if (rc)
		return rc;
	rc = take_all(&asking, err);
	if (!rc)
		rc = answer(&asking, out, say, err);
	free(asking.offsets);
	free(asking.queries);
	asked_module_release(&asked);
	return rc;
}
