#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "symbolize/files/find_parts.h"
#include "symbolize/files/module_files.h"

static int take_pdb(struct search *search, const char *path)
{
	char *copy = malloc(strlen(path) + 1);

	if (!copy)
		return -ERR_NOMEM;
	memcpy(copy, path, strlen(path) + 1);
	search->files->pdb = copy;
	return 1;
}

/* Takes the file at path when it is the PDB; 1, 0 or -ERR_NOMEM. */
static int try_pdb(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct pdb_identity pdb;
	struct err err;
	char how[DIFFERENCE_BYTES];
	int rc = 0;

	if (!search_is_new(search, path, &rc))
		return rc;
	rc = pdb_read_identity(path, &pdb, &err);
	if (rc == -ERR_NOMEM)
		return rc;
	if (rc)
		return search_misfit(search, true, false, path, "cannot be used: %s", err.detail);
	if (!build_pdb_differs(
		    search->files->guid, search->files->age, &pdb, search->pdb_owner, how))
		return take_pdb(search, path);
	return search_misfit(search, true, true, path, "is another build: %s", how);
}

static int packed_pdb(void *ctx, const char *file, const char *remedy)
{
	return search_misfit(ctx, true, false, file, "%s", remedy);
}

/* Fills files->guid and age, and search->pdb_name; false: nobody knows which PDB it is. full becomes
 * the PDB's path as the one who names it does. */
static bool know_pdb(struct search *search, const char **full)
{
	const struct pe_image *pe = search->files->pe;
	const struct module *module = search->module;
	const char *said = module->has_identity && module->pdb && *module->pdb ? module->pdb : NULL;
	char guid[33];

	if (pe && (!pe->pdb[0] || !build_guid_is_known(pe->pdb_guid, guid)))
		return false;
	if (!pe && (!said || !build_guid_is_known(module->pdb_guid, guid)))
		return false;
	/* A name that fills its field was cut: then the dump may know more. */
	*full = pe && (!said || strlen(pe->pdb) < sizeof(pe->pdb) - 1) ? pe->pdb : said;
	search->pdb_name = module_path_base(*full);
	search->pdb_owner = pe ? "image" : "dump";
	memcpy(search->files->guid, guid, sizeof(guid));
	search->files->age = pe ? pe->pdb_age : module->pdb_age;
	return *search->pdb_name != '\0';
}

/* In the folder of the file at path; foreign: as the dump gives it. */
static int try_beside(struct search *search, const char *path, bool is_foreign)
{
	struct finder *finder = search->finder;
	size_t folder = (size_t)(module_path_base(path) - path);
	struct buf file;
	int rc;

	if (!folder)
		return 0;
	buf_init(&file);
	rc = buf_add(&file, path, folder);
	if (!rc && is_foreign) {
		rc = buf_add_text(&file, search->pdb_name);
		if (!rc)
			rc = finder_meanings(finder, file.data, try_pdb, search);
	} else if (!rc) {
		file.data[--file.len] = '\0';
		rc = local_below(finder->local, &file, search->pdb_name);
		rc = rc == LOCAL_FILE ? try_pdb(search, file.data) : rc < 0 ? rc : 0;
	}
	buf_release(&file);
	return rc;
}

static int try_places(struct search *search)
{
	char key[48];
	struct store_question question = {.name = search->pdb_name,
		.image = search->module->path,
		.key = key,
		.use = try_pdb,
		.is_packed = packed_pdb,
		.ctx = search};

	snprintf(key, sizeof(key), "%s%lX", search->files->guid, (unsigned long)search->files->age);
	return finder_places(search->finder, &question);
}

/* Each fills files. 0, also when there is none, or -ERR_NOMEM. */
static int search_pdb(struct search *search)
{
	const char *full;
	int rc;

	if (!know_pdb(search, &full))
		return 0;
	rc = finder_meanings(search->finder, full, try_pdb, search);
	if (!rc && search->files->image)
		rc = try_beside(search, search->files->image, false);
	if (!rc)
		rc = try_beside(search, search->module->path, true);
	if (!rc)
		rc = try_places(search);
	return rc < 0 ? rc : 0;
}

/* With --allow-mismatch, when there is no better. */
static int search_other_pdb(struct search *search)
{
	for (size_t i = 0; i < search->misfit_count; i++) {
		const struct misfit *misfit = &search->misfits[i];
		int rc;

		if (!misfit->is_pdb || !misfit->is_build)
			continue;
		rc = take_pdb(search, misfit->path);
		search->files->is_mismatch |= rc == 1;
		return rc < 0 ? rc : 0;
	}
	return 0;
}

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

/* Uses an image. 1 or -ERR_NOMEM. */
static int take_image(struct search *search, const char *path, const struct pe_source *source,
	const struct pe_image *pe)
{
	struct module_files *files = search->files;
	char *image = malloc(strlen(path) + 1);
	struct pe_image *headers = malloc(sizeof(*headers));

	if (!image || !headers) {
		free(image);
		free(headers);
		return -ERR_NOMEM;
	}
	memcpy(image, path, strlen(path) + 1);
	*headers = *pe;
	files->image = image;
	files->pe = headers;
	files->has_dwarf = build_has_dwarf(source, pe);
	return 1;
}

static int judge(struct search *search, const char *path, const struct pe_source *source,
	const struct pe_image *pe)
{
	char how[DIFFERENCE_BYTES];

	if (!build_image_differs(search->module, pe, how))
		return take_image(search, path, source, pe);
	if (!search->other_image && !search->is_guess) {
		search->other_image = arena_text(&search->arena, path, strlen(path));
		if (!search->other_image)
			return -ERR_NOMEM;
	}
	return search_misfit(search, false, true, path, "is another build: %s", how);
}

/* Takes the file at path when it is the image; 1, 0 or -ERR_NOMEM. */
static int try_image(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	struct err err;
	char why[400];
	int rc = 0;

	if (!search_is_new(search, path, &rc))
		return rc;
	if (os_open(&file, path, &err)) {
		snprintf(why, sizeof(why), "%.399s", err.detail);
		return search_misfit(search, false, false, path, "cannot be opened (%s)", why);
	}
	rc = pe_read_headers(&source, &pe);
	rc = rc ? search_misfit(search, false, false, path, "is not a PE image, or is damaged") :
		  judge(search, path, &source, &pe);
	os_close(&file);
	return rc;
}

static int packed_image(void *ctx, const char *file, const char *remedy)
{
	return search_misfit(ctx, false, false, file, "%s", remedy);
}

/* Stores keep images by time stamp and size. */
static int search_stores(struct search *search)
{
	const struct module *module = search->module;
	char key[40];
	struct store_question question = {.name = module_path_base(module->path),
		.image = module->path,
		.use = try_image,
		.is_packed = packed_image,
		.ctx = search};

	if (module->has_identity && module->size_bytes && module->size_bytes <= UINT32_MAX) {
		snprintf(key, sizeof(key), "%08lX%lx", (unsigned long)module->timestamp,
			(unsigned long)module->size_bytes);
		question.key = key;
	}
	return finder_places(search->finder, &question);
}

/* A file that has but the name of the one that is meant must prove who it is. */
static int search_guesses(struct search *search)
{
	struct buf file;
	size_t next = 0;
	int rc = LOCAL_FILE;

	if (build_is_unknown(search->module) || search->finder->options->no_local_files)
		return 0;
	buf_init(&file);
	search->is_guess = true;
	search->is_quiet = true;
	while (rc == LOCAL_FILE) {
		rc = local_guess(search->finder->local, search->module->path, &next, &file);
		if (rc != LOCAL_FILE)
			break;
		rc = try_image(search, file.data);
		if (rc)
			break;
		rc = LOCAL_FILE;
	}
	search->is_guess = false;
	search->is_quiet = false;
	buf_release(&file);
	return rc;
}

static int search_image(struct search *search)
{
	const char *path = search->module->path;
	int rc;

	search->is_quiet = local_is_other_system(path);
	rc = finder_meanings(search->finder, path, try_image, search);
	search->is_quiet = false;
	if (!rc)
		rc = search_stores(search);
	if (!rc)
		rc = search_guesses(search);
	return rc < 0 ? rc : 0;
}

static int search_other_image(struct search *search)
{
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	int rc = 0;

	if (!search->other_image || os_open(&file, search->other_image, NULL))
		return 0;
	if (!pe_read_headers(&source, &pe))
		rc = take_image(search, search->other_image, &source, &pe);
	os_close(&file);
	search->files->is_mismatch |= rc == 1;
	return rc < 0 ? rc : 0;
}

/* The symbol path's text, copied; NULL without code in err: there is none. */
static char *symbol_path_text(const struct symbol_options *options, struct err *err)
{
	char *text;

	if (!options->symbol_path)
		return os_env("_NT_SYMBOL_PATH");
	text = malloc(strlen(options->symbol_path) + 1);
	if (text)
		memcpy(text, options->symbol_path, strlen(options->symbol_path) + 1);
	else
		err_set(err, ERR_NOMEM, NULL, NULL);
	return text;
}

static int parse_symbol_path(struct finder *finder, struct err *err)
{
	const struct symbol_options *options = finder->options;

	finder->symbol_path = symbol_path_text(options, err);
	if (!finder->symbol_path)
		return options->symbol_path ? -ERR_NOMEM : 0;
	if (symbol_path_parse(&finder->places, finder->symbol_path))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	/* The environment is meant for others, too: see open_places(). */
	if (!finder->places.strange || !options->symbol_path)
		return 0;
	return err_set(err, ERR_USAGE, finder->places.strange,
		"in a symbol path only srv, symsrv and cache stand before *");
}

static int parse_maps(struct finder *finder, struct err *err)
{
	const struct symbol_options *options = finder->options;
	int rc = 0;

	finder->maps = calloc(options->map_count + 1, sizeof(*finder->maps));
	if (!finder->maps)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; !rc && i < options->map_count; i++)
		rc = path_map_parse(&finder->maps[i].map, options->maps[i], err);
	return rc;
}

struct finder *finder_new(const struct symbol_options *options, struct err *err)
{
	struct finder *finder = calloc(1, sizeof(*finder));
	int rc;

	if (!finder) {
		err_set(err, ERR_NOMEM, NULL, NULL);
		return NULL;
	}
	finder->options = options;
	symbol_path_init(&finder->places);
	table_init(&finder->said);
	finder->local = local_paths_new();
	rc = finder->local ? 0 : err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc)
		rc = parse_maps(finder, err);
	if (!rc)
		rc = parse_symbol_path(finder, err);
	if (rc) {
		finder_free(finder);
		finder = NULL;
	}
	return finder;
}

void finder_free(struct finder *finder)
{
	if (!finder)
		return;
	local_paths_free(finder->local);
	symbol_path_release(&finder->places);
	table_release(&finder->said);
	free(finder->symbol_path);
	free(finder->maps);
	free(finder->roots);
	free(finder);
}

const char *finder_servers(const struct finder *finder)
{
	return finder->places.server ? finder->symbol_path : NULL;
}

/* The files of another build, when the user wants them rather than none. An image of another build is
 * not needed beside the right PDB. */
static int search_others(struct search *search)
{
	struct module_files *files = search->files;
	int rc = 0;

	if (!files->image && !files->pdb)
		rc = search_other_image(search);
	if (!rc && files->image && files->is_mismatch) {
		search_forget_pdbs(search);
		rc = search_pdb(search); /* the one that belongs to this image */
	}
	if (!rc && !files->pdb)
		rc = search_other_pdb(search);
	return rc;
}

int finder_find(struct finder *finder, const struct module *module, struct module_files *files)
{
	struct search search = {.finder = finder, .module = module, .files = files};
	int rc;

	if (files->is_searched)
		return 0;
	files->is_searched = true;
	arena_init(&search.arena);
	table_init(&search.tried);
	rc = search_image(&search);
	if (!rc)
		rc = search_pdb(&search);
	if (!rc && finder->options->allow_mismatch)
		rc = search_others(&search);
	if (!rc)
		rc = search_explain(&search);
	table_release(&search.tried);
	arena_release(&search.arena);
	return rc;
}

void module_files_release(struct module_files *files)
{
	free(files->image);
	free(files->pe);
	free(files->pdb);
	buf_release(&files->reason);
	*files = (struct module_files){0};
}
