#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "symbolize/files/local_path.h"
#include "symbolize/hsym/hsym.h"

/* Where the module is said to lie: anywhere will do, as long as the names of images of both kinds can
 * be asked for there. */
#define SAID_BASE UINT64_C(0x10000000)
#define PDB_ALONE_BYTES 0x10000 /* at first: it grows with what is asked */

static const char image_of[] = "'s image";
static const char pdb_magic[] = "Microsoft C/C++ ";

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static int open_image(struct file_module *asked, struct os_file *file, struct err *err)
{
	struct pe_source source = {.read = read_file, .ctx = file};
	struct pe_image *image = &asked->image;
	struct module *module = &asked->module;

	if (pe_read_headers(&source, image))
		return err_set(err, ERR_OPEN, asked->path, "it is neither a PE image nor a PDB");
	asked->preferred_base = image->preferred_base;
	module->size_bytes = image->size_of_image;
	module->timestamp = image->timestamp;
	module->checksum = image->checksum;
	module->has_identity = true;
	if (image->pdb_guid[0]) {
		module->pdb = module_path_base(image->pdb);
		module->pdb_guid = image->pdb_guid;
		module->pdb_age = image->pdb_age;
	}
	return 0;
}

/* Paths of dumps are not followed to other machines, or not at all; this one the user typed, as those in the
 * symbol path: there its folder comes first. */
static int make_symbol_path(struct file_module *asked)
{
	const char *given = asked->options.symbol_path;
	char *environment = given ? NULL : os_env("_NT_SYMBOL_PATH");
	size_t folder = (size_t)(module_path_base(asked->path) - asked->path);
	struct buf path;
	int rc;

	buf_init(&path);
	given = given ? given : environment;
	rc = buf_add(&path, asked->path, folder > 1 ? folder - 1 : folder);
	if (!rc && given && *given)
		rc = buf_printf(&path, ";%s", given);
	free(environment);
	if (rc) {
		buf_release(&path);
		return rc;
	}
	asked->symbol_path = path.data;
	asked->options.symbol_path = path.data;
	return 0;
}

/* Not looked for at the path of a module. */
static bool is_elsewhere(const struct file_module *asked)
{
	return asked->options.no_local_files || local_is_remote(asked->path);
}

/* There is no image, and none may be taken for it: its path is one that nobody has. */
static int open_pdb(struct file_module *asked, struct err *err)
{
	struct err why;
	int rc = pdb_read_identity(asked->path, &asked->identity, &why);

	if (rc) /* of a damaged one it speaks as of a process */
		return err_set(err, rc == -ERR_TARGET ? ERR_OPEN : why.code, asked->path, "%s",
			why.detail);
	asked->image_path = malloc(strlen(asked->path) + sizeof(image_of));
	if (!asked->image_path)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	strcat(strcpy(asked->image_path, asked->path), image_of);
	asked->module.path = asked->image_path;
	asked->module.size_bytes = PDB_ALONE_BYTES;
	asked->module.has_identity = true;
	asked->module.pdb = is_elsewhere(asked) ? module_path_base(asked->path) : asked->path;
	asked->module.pdb_guid = asked->identity.guid;
	asked->module.pdb_age = asked->identity.age;
	return 0;
}

static int open_either(struct file_module *asked, struct err *err)
{
	char magic[sizeof(pdb_magic) - 1];
	struct os_file file;
	int rc = os_is_special(asked->path) ?
			 err_set(err, ERR_READ, asked->path, "it is not a regular file") :
			 os_open(&file, asked->path, err);

	if (rc)
		return rc;
	asked->is_pdb = !os_read_at(&file, 0, magic, sizeof(magic)) &&
			!memcmp(magic, pdb_magic, sizeof(magic));
	if (!asked->is_pdb)
		rc = open_image(asked, &file, err);
	os_close(&file);
	if (asked->is_pdb)
		rc = open_pdb(asked, err);
	if (!rc && is_elsewhere(asked) && make_symbol_path(asked))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static char *short_name(const char *path)
{
	const char *base = module_path_base(path), *dot = strrchr(base, '.');
	size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);
	char *name = malloc(len + 1);

	if (name) {
		memcpy(name, base, len);
		name[len] = '\0';
	}
	return name;
}

int file_module_open(struct file_module *asked, const char *path,
	const struct symbol_options *options, struct err *err)
{
	int rc;

	*asked = (struct file_module){.options = *options};
	asked->options.is_one_file = true;
	asked->path = os_full_path(path);
	asked->name = short_name(path);
	asked->module.base = SAID_BASE;
	asked->module.path = asked->path;
	rc = asked->path && asked->name ? open_either(asked, err) :
					  err_set(err, ERR_NOMEM, path, NULL);
	if (!rc)
		return 0;
	if (err && rc != -ERR_NOMEM) /* as it was given */
		snprintf(err->place, sizeof(err->place), "%s", path);
	file_module_release(asked);
	return rc;
}

void file_module_release(struct file_module *asked)
{
	free(asked->path);
	free(asked->image_path);
	free(asked->name);
	free(asked->symbol_path);
	*asked = (struct file_module){0};
}

#define TEXT_BYTES 5000 /* of a line of standard input */
#define ADDRESSES_MAX ((size_t)10 << 20)

struct asking {
	const struct address_request *request;
	struct file_module *asked;
	uint64_t *offsets; /* in the module, as they were given */
	size_t count, cap;
	struct symbol_query *queries;
};

/* ---------------------------------------------------------------- what is asked */

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
	const struct file_module *asked = asking->asked;
	const char *plus = strrchr(text, '+');
	size_t name_len = plus ? (size_t)(plus - text) : 0;
	uint64_t offset;

	if (name_len && !text_same(text, name_len, asked->name, strlen(asked->name)) &&
		!text_same(text, name_len, module_path_base(asked->path),
			strlen(module_path_base(asked->path))))
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
			rc = err_set(err, ERR_USAGE, place, "this is not an address");
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
	struct symbol_status story;
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

int addr2name_ask(
	const struct address_request *request, struct out *out, FILE *say, struct err *err)
{
	struct file_module asked;
	struct asking asking = {.request = request, .asked = &asked};
	int rc = file_module_open(&asked, request->file, request->options, err);

	if (rc)
		return rc;
	rc = take_all(&asking, err);
	if (!rc)
		rc = answer(&asking, out, say, err);
	free(asking.offsets);
	free(asking.queries);
	file_module_release(&asked);
	return rc;
}
