#include "symbolize/files/module_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "symbolize/files/local_path.h"

#define PAGE_BYTES 4096

struct finder {
	const struct symbol_options *options;
};

struct finder *finder_new(const struct symbol_options *options, struct err *err)
{
	struct finder *finder = calloc(1, sizeof(*finder));

	if (finder)
		finder->options = options;
	else
		err_set(err, ERR_NOMEM, NULL, NULL);
	return finder;
}

void finder_free(struct finder *finder)
{
	free(finder);
}

const char *finder_servers(const struct finder *finder)
{
	(void)finder;
	return NULL;
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static uint64_t in_pages(uint64_t bytes)
{
	return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

static bool same_digits(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a >= 'a' && *a <= 'f' ? (char)(*a - 'a' + 'A') : *a;
		char y = *b >= 'a' && *b <= 'f' ? (char)(*b - 'a' + 'A') : *b;

		if (x != y)
			return false;
	}
	return *a == *b;
}

/* Is this file the build that the dump's process had loaded? Time stamps may be the same on
 * purpose (builds that can be repeated), so what else is known must agree too. */
static bool is_same_build(const struct module *module, const struct pe_image *pe)
{
	if (module->size_bytes && in_pages(module->size_bytes) != in_pages(pe->size_of_image))
		return false;
	if (!module->has_identity)
		return true;
	if (module->timestamp != pe->timestamp)
		return false;
	if (module->pdb_guid && pe->pdb_guid[0])
		return same_digits(module->pdb_guid, pe->pdb_guid) &&
		       module->pdb_age == pe->pdb_age;
	return !module->checksum || !pe->checksum || module->checksum == pe->checksum;
}

struct search {
	struct module_files *files;
	const struct module *module;
	bool no_memory;
};

/* false: out of memory. */
static bool keep_file(struct module_files *files, const char *path, const struct pe_image *pe)
{
	files->image = malloc(strlen(path) + 1);
	files->pe = malloc(sizeof(*files->pe));
	if (!files->image || !files->pe) {
		free(files->image);
		free(files->pe);
		files->image = NULL;
		files->pe = NULL;
		return false;
	}
	memcpy(files->image, path, strlen(path) + 1);
	*files->pe = *pe;
	return true;
}

static bool try_file(void *ctx, const char *path, bool is_guess)
{
	struct search *search = ctx;
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	bool is_it;

	if ((is_guess && !search->module->has_identity) || os_open(&file, path, NULL))
		return false;
	is_it = !pe_read_headers(&source, &pe) && is_same_build(search->module, &pe);
	os_close(&file);
	if (is_it && !keep_file(search->files, path, &pe))
		search->no_memory = true;
	return is_it && !search->no_memory;
}

int finder_find(struct finder *finder, const struct module *module, struct module_files *files)
{
	struct search search = {.files = files, .module = module};
	struct path_user user = {.use = try_file, .ctx = &search};

	(void)finder;
	if (files->is_searched)
		return 0;
	files->is_searched = true;
	local_files(module->path, &user);
	return search.no_memory ? -ERR_NOMEM : 0;
}

void module_files_release(struct module_files *files)
{
	free(files->image);
	free(files->pe);
	free(files->pdb);
	buf_release(&files->reason);
	*files = (struct module_files){0};
}
