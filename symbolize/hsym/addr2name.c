/*
 * hsym -e: finds names for addresses in one file. The file is treated as the only module of a dump,
 * loaded at SAID_BASE and with the file's own identity.
 */
#include "symbolize/hsym/hsym.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "core/pe/pe.h"
#include "symbolize/files/local_path.h"
#include "symbolize/files/pdb.h"

/* Load address of the module. Any address at which backends accept 32-bit and 64-bit images would
 * do. */
#define SAID_BASE UINT64_C(0x10000000)
#define PDB_ALONE_BYTES 0x10000 /* initial module size; grows with the addresses */
#define TEXT_BYTES 5000 /* size of a line of standard input */
#define ADDRESSES_MAX ((size_t)10 << 20)

static const char pdb_magic[] = "Microsoft C/C++ ";

/* The file, described as a module, and the addresses to look up. */
struct asking {
	const struct address_request *request;
	struct module module;
	struct symbol_options options; /* the user's options, adapted to the file */
	char *path;
	struct buf name; /* file name without folder and extension */
	struct buf image_path, symbol_path;
	/* preferred base of the image; 0 for a PDB, which does not record it */
	uint64_t preferred_base;
	bool is_pdb;
	struct pe_image image;
	struct pdb_identity identity;
	uint64_t *offsets; /* offsets in the module, in the order given */
	size_t count, cap;
	struct symbol_query *queries;
};

/* ---------------------------------------------------------------- the file */

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static int open_image(struct asking *asking, struct os_file *file, struct err *err)
{
	struct pe_source source = {.read = read_file, .ctx = file};
	struct pe_image *image = &asking->image;
	struct module *module = &asking->module;

	if (pe_read_headers(&source, image))
		return err_set(err, ERR_NOT_IMAGE, asking->path, NULL);
	asking->preferred_base = image->preferred_base;
	module->size_bytes = image->size_of_image;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	if (image->pdb_guid[0]) {
		module->pdb = module_path_base(image->pdb);
		module->pdb_guid = image->pdb_guid;
		module->pdb_age = image->pdb_age;
	}
	return 0;
}

/* Describes a PDB without an image as a module. The image path must not exist, so that no image is
 * used. */
static int open_pdb(struct asking *asking, bool is_elsewhere, struct err *err)
{
	struct module *module = &asking->module;
	struct err why;
	int rc = pdb_read_identity(asking->path, &asking->identity, &why);

	if (rc) /* pdb_read_identity() reports a damaged file as ERR_TARGET */
		return err_set(err, rc == -ERR_TARGET ? ERR_SYMBOLS : why.code, asking->path, "%s",
			why.detail);
	buf_printf(&asking->image_path, "%s's image", asking->path);
	module->path = asking->image_path.data;
	module->size_bytes = PDB_ALONE_BYTES;
	module->pdb = is_elsewhere ? module_path_base(asking->path) : asking->path;
	module->pdb_guid = asking->identity.guid;
	module->pdb_age = asking->identity.age;
	return 0;
}

static int open_file(struct asking *asking, struct err *err)
{
	const char *given = asking->request->options->symbol_path;
	char magic[sizeof(pdb_magic) - 1], *environment;
	bool is_elsewhere; /* the module's path will not be searched */
	size_t folder;
	struct os_file file;
	int rc;

	if (!asking->path)
		return err_set(err, ERR_OPEN, NULL, NULL);
	if (os_is_special(asking->path))
		return err_set(err, ERR_NOT_FILE, asking->path, NULL);
	rc = os_open(&file, asking->path, err);
	if (rc)
		return rc;
	is_elsewhere = asking->options.no_local_files || local_is_remote(asking->path);
	asking->module.path = asking->path;
	asking->is_pdb = !os_read_at(&file, 0, magic, sizeof(magic)) &&
			 !memcmp(magic, pdb_magic, sizeof(magic));
	if (!asking->is_pdb)
		rc = open_image(asking, &file, err);
	os_close(&file);
	if (asking->is_pdb)
		rc = open_pdb(asking, is_elsewhere, err);
	if (rc || !is_elsewhere)
		return rc;
	/* The path in a dump is never followed to another machine, and with --no-local-files not at
	 * all. But the user typed this path. So put its folder first in the symbol path, which may
	 * lead anywhere. */
	environment = given ? NULL : os_env("_NT_SYMBOL_PATH");
	given = given ? given : environment;
	folder = (size_t)(module_path_base(asking->path) - asking->path);
	buf_add(&asking->symbol_path, asking->path, folder > 1 ? folder - 1 : folder);
	if (given && *given)
		buf_printf(&asking->symbol_path, ";%s", given);
	free(environment);
	asking->options.symbol_path = asking->symbol_path.data;
	return 0;
}

/* ---------------------------------------------------------------- addresses */

/* Parses text that consists only of hexadecimal digits. Returns 0 or -1. */
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

static int add_address(struct asking *asking, const char *text, const char *place, struct err *err)
{
	const char *plus = strrchr(text, '+'), *base = module_path_base(asking->path);
	size_t name_len = plus ? (size_t)(plus - text) : 0;
	uint64_t offset;

	if (name_len && !text_same(text, name_len, asking->name.data, asking->name.len) &&
		!text_same(text, name_len, base, strlen(base)))
		return err_set(
			err, ERR_USAGE, place, "in a different module than %s", asking->name.data);
	if (read_hex(plus ? plus + 1 : text, &offset))
		return err_set(err, ERR_USAGE, place, "an address is hexadecimal, such as +1A2B");
	if (!plus && asking->preferred_base && offset >= asking->preferred_base &&
		offset - asking->preferred_base <= asking->module.size_bytes)
		offset -= asking->preferred_base;
	if (asking->count == ADDRESSES_MAX)
		return err_set(err, ERR_USAGE, place, "too many addresses at once");
	array_grow(
		(void **)&asking->offsets, &asking->cap, asking->count, sizeof(*asking->offsets));
	asking->offsets[asking->count++] = offset;
	return 0;
}

/* Removes leading and trailing blanks. Returns the new start. */
static char *trim(char *text)
{
	size_t len = strlen(text);

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' ' ||
			      text[len - 1] == '\t'))
		text[--len] = '\0';
	return text + strspn(text, " \t");
}

/* Reads a line of standard input without its line end. Returns 1, 0 at the end, or -1 if the line
 * is longer than any address or contains a NUL. */
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

static int add_addresses(struct asking *asking, struct err *err)
{
	const struct address_request *request = asking->request;
	char line[TEXT_BYTES], place[60];
	int rc = 0, got = !request->count;

	for (size_t i = 0; !rc && i < request->count; i++)
		rc = add_address(asking, request->texts[i], request->texts[i], err);
	for (size_t number = 1; !rc && got && (got = next_line(line)); number++) {
		char *text = got > 0 ? trim(line) : line;

		snprintf(place, sizeof(place), "standard input:%zu", number);
		if (got < 0)
			rc = err_set(err, ERR_USAGE, place, "not an address");
		else if (*text)
			rc = add_address(asking, text, place, err);
	}
	if (!rc && !request->count && ferror(stdin))
		rc = err_set(err, ERR_READ, "standard input", NULL);
	return rc;
}

/* ---------------------------------------------------------------- output */

/* Writes a frame in hdiff's format, without an address. */
static void write_frame(
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

static int answer(struct asking *asking, struct out *out, struct err *err)
{
	struct symbolizer *symbolizer = symbolizer_new(&asking->options, err);
	struct module *module = &asking->module;
	bool is_exact = asking->request->is_exact;
	struct symbol_status story;
	const char *trouble;
	struct buf words;
	size_t lack = 0;

	if (!symbolizer)
		return -(int)err->code;
	/* A PDB does not record the size of its image, so make the module large enough for all
	 * addresses. */
	for (size_t i = 0; asking->is_pdb && i < asking->count; i++) {
		if (asking->offsets[i] >= module->size_bytes && asking->offsets[i] < UINT32_MAX / 2)
			module->size_bytes = (asking->offsets[i] | 0xffff) + 1;
	}
	asking->queries = xcalloc(asking->count, sizeof(*asking->queries));
	for (size_t i = 0; i < asking->count; i++)
		asking->queries[i] =
			(struct symbol_query){.addr = module->base + asking->offsets[i] + is_exact,
				.module = asking->offsets[i] <= module->size_bytes ? module : NULL};
	symbolizer_resolve(symbolizer, asking->queries, asking->count);
	for (size_t i = 0; i < asking->count; i++) {
		const struct symbols *found = &asking->queries[i].found;

		for (size_t n = 0; n < found->count; n++) {
			write_frame(out, asking->name.data, &found->list[n], is_exact);
			out_text(out, n + 1 < found->count ? " [inline]\n" : "\n");
		}
		if (found->count)
			continue;
		lack++;
		out_harmless(out, asking->name.data);
		out_char(out, '+');
		out_hex(out, asking->offsets[i]);
		out_char(out, '\n');
	}
	if (lack) {
		trouble = symbolizer_trouble(symbolizer);
		symbolizer_explain(symbolizer, module, &story);
		buf_init(&words);
		buf_printf(&words, "%zu of %zu address%s ha%s no name", lack, asking->count,
			asking->count == 1 ? "" : "es", lack == 1 ? "s" : "ve");
		if (story.reason[0])
			buf_printf(&words, "; %s", story.reason);
		if (trouble)
			buf_printf(&words, "; %s", trouble);
		if (symbol_console_stopped())
			buf_add_text(&words, "; stopped looking for names");
		fprintf(stderr, "hsym: %s\n", text_harmless(words.data));
		buf_release(&words);
	}
	symbolizer_free(symbolizer);
	return 0;
}

int addr2name_print(const struct address_request *request, struct out *out, struct err *err)
{
	const char *base = module_path_base(request->file), *dot = strrchr(base, '.');
	struct asking asking = {.request = request,
		.options = *request->options,
		.path = os_full_path(request->file),
		.module = {.base = SAID_BASE, .has_identity = true}};
	int rc;

	asking.options.is_one_file = true;
	buf_add(&asking.name, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
	rc = open_file(&asking, err);
	if (rc) /* report the path as the user typed it */
		snprintf(err->place, sizeof(err->place), "%s", request->file);
	if (!rc)
		rc = add_addresses(&asking, err);
	if (!rc)
		rc = answer(&asking, out, err);
	free(asking.offsets);
	free(asking.queries);
	free(asking.path);
	buf_release(&asking.name);
	buf_release(&asking.image_path);
	buf_release(&asking.symbol_path);
	return rc;
}
