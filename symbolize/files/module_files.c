#include "symbolize/files/module_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "symbolize/files/finder.h"

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
