/*
 * ask_dbghelp.exe [WORD=VALUE...] RVA...
 *
 * Queries only DbgHelp, in the way of hsym, for return addresses in a module (hexadecimal offsets
 * from its base). Prints a line "RVA function offset file line" for each frame, separated by tabs;
 * then "reason ...", if there is one. For tests/e2e_dbghelp.t.
 *
 *   image=FILE pdb=FILE    the files that were found
 *   guid=DIGITS age=N      of the PDB
 *   dump-pdb=NAME          the dump contains that PDB, with the GUID and age given before
 *   size=N                 of the module (hexadecimal), if there is no image
 *   path=PATH              the symbol path
 *   raw, allow, mismatch   no_demangle, allow_mismatch, files.is_mismatch
 *   damaged                files.is_pdb_damaged
 *   cancel, cancel-load    the user cancels; only while the module is loaded
 *   undname=NAME           prints the undecorated name instead
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/undname.h"

struct work {
	struct symbol_options options;
	struct module module;
	struct sym_module subject;
	struct lookup lookups[20000];
	size_t count;
};

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static void take_image(struct module_files *files, char *path)
{
	static struct pe_image pe;
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};

	if (os_open(&file, path, NULL) || pe_read_headers(&source, &pe)) {
		fprintf(stderr, "%s: no image\n", path);
		exit(2);
	}
	os_close(&file);
	files->image = path;
	files->pe = &pe;
}

static bool is_cancelled(void *ctx)
{
	(void)ctx;
	return true;
}

static bool is_cancelled_once(void *ctx)
{
	bool *was_asked = ctx;
	bool is_first = !*was_asked;

	*was_asked = true;
	return is_first;
}

static void warn(void *ctx, const char *sentence)
{
	(void)ctx;
	printf("warning %s\n", sentence);
}

static void print_undname(const char *name)
{
	const struct symbol_options options = {0};
	const char *text = NULL;
	struct arena arena;

	arena_init(&arena);
	undname_find(&name, &text, 1, &arena, &options);
	printf("0 %s\n", text ? text : "");
	arena_release(&arena);
}

static bool is_word(const char *arg, const char *word, char **value)
{
	size_t len = strlen(word);

	if (strncmp(arg, word, len) != 0 || arg[len] != '=')
		return false;
	*value = (char *)arg + len + 1;
	return true;
}

static void take(struct work *work, char *arg)
{
	struct module_files *files = &work->subject.files;
	char *value;

	if (is_word(arg, "image", &value))
		take_image(files, value);
	else if (is_word(arg, "pdb", &value))
		files->pdb = value;
	else if (is_word(arg, "guid", &value))
		snprintf(files->guid, sizeof(files->guid), "%s", value);
	else if (is_word(arg, "age", &value))
		files->age = (uint32_t)strtoul(value, NULL, 10);
	else if (is_word(arg, "dump-pdb", &value)) {
		work->module.has_identity = true;
		work->module.pdb = value;
		work->module.pdb_guid = files->guid;
		work->module.pdb_age = files->age;
	} else if (is_word(arg, "size", &value))
		work->module.size_bytes = strtoull(value, NULL, 16);
	else if (is_word(arg, "path", &value))
		work->options.symbol_path = value;
	else if (is_word(arg, "undname", &value))
		print_undname(value);
	else if (!strcmp(arg, "raw"))
		work->options.no_demangle = true;
	else if (!strcmp(arg, "allow"))
		work->options.allow_mismatch = true;
	else if (!strcmp(arg, "mismatch"))
		files->is_mismatch = true;
	else if (!strcmp(arg, "damaged"))
		files->is_pdb_damaged = true;
	else if (!strcmp(arg, "cancel"))
		work->options.listener.is_cancelled = is_cancelled;
	else if (!strcmp(arg, "cancel-load"))
		work->options.listener.is_cancelled = is_cancelled_once;
	else if (work->count < sizeof(work->lookups) / sizeof(*work->lookups))
		work->lookups[work->count++].rva = (uint32_t)strtoul(arg, NULL, 16) - 1;
}

static void print(const struct work *work)
{
	for (size_t i = 0; i < work->count; i++) {
		const struct lookup *lookup = &work->lookups[i];

		for (size_t n = 0; n < lookup->found.count; n++) {
			const struct symbol *symbol = &lookup->found.list[n];

			printf("%x\t%s\t%llx\t%s\t%u\n", lookup->rva + 1, symbol->function,
				(unsigned long long)symbol->offset_bytes,
				symbol->file ? symbol->file : "-", symbol->line);
		}
	}
	if (work->subject.files.reason.len)
		printf("reason %s\n", work->subject.files.reason.data);
}

int main(int argc, char **argv)
{
	static bool was_asked;
	static struct work work = {.options.listener = {.ctx = &was_asked, .warn = warn},
		.module.path = "C:\\module.dll"};
	struct err err = {0};
	struct finder *finder;
	void *backend;
	struct arena arena;

	os_start(&argc, &argv);
	for (int i = 1; i < argc; i++)
		take(&work, argv[i]);
	if (!work.count)
		return 0;
	arena_init(&arena);
	finder = finder_new(&work.options, &err);
	backend = finder ? dbghelp_backend.make(&work.options, finder) : NULL;
	work.subject.module = &work.module;
	work.subject.tables = tables_new(&work.subject.files, work.options.no_demangle);
	if (!backend || !work.subject.tables)
		return 2;
	dbghelp_backend.resolve(backend, &work.subject, work.lookups, work.count, &arena);
	print(&work);
	dbghelp_backend.release(backend);
	return 0;
}
