#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/files/finder.h"
#include "symbolize/listen.h"

#define MISSING_FOLDERS_SAID 3

static int look_for_target(struct finder *finder, struct finder_map *map)
{
	struct buf here;
	int kind;

	buf_init(&here);
	kind = local_typed(finder->local, map->map.to, &here);
	if (kind == LOCAL_FILE || kind == LOCAL_FOLDER) {
		map->to = arena_text(&finder->places.arena, here.data, here.len);
		if (!map->to)
			kind = -ERR_NOMEM;
	}
	buf_release(&here);
	map->is_looked = kind >= 0;
	map->kind = kind;
	return kind < 0 ? kind : 0;
}

/* What map leads path to. */
static int use_map(struct finder *finder, struct finder_map *map, const char *path,
	int (*use)(void *ctx, const char *file), void *ctx)
{
	const char *rest = path_map_rest(&map->map, path);
	struct buf here;
	int rc;

	if (!rest || (map->is_looked && !map->to))
		return 0;
	rc = map->is_looked ? 0 : look_for_target(finder, map);
	if (rc || !map->to || (map->kind == LOCAL_FILE && *rest))
		return rc;
	buf_init(&here);
	rc = buf_add_text(&here, map->to);
	if (!rc)
		rc = map->kind == LOCAL_FILE ? LOCAL_FILE : local_below(finder->local, &here, rest);
	if (rc == LOCAL_FILE)
		rc = use(ctx, here.data);
	else if (rc > 0)
		rc = 0;
	buf_release(&here);
	return rc;
}

int finder_meanings(
	struct finder *finder, const char *path, int (*use)(void *ctx, const char *file), void *ctx)
{
	struct buf here;
	int rc = 0;

	path = local_plain(path);
	for (size_t i = 0; !rc && i < finder->options->map_count; i++)
		rc = use_map(finder, &finder->maps[i], path, use, ctx);
	if (rc || finder->options->no_local_files)
		return rc;
	buf_init(&here);
	rc = local_foreign(finder->local, path, &here);
	if (rc == LOCAL_FILE)
		rc = use(ctx, here.data);
	else if (rc > 0)
		rc = 0;
	buf_release(&here);
	return rc;
}

/* Stores may come to be when something is fetched; that a folder is missing is a mistake. */
static void say_missing(struct finder *finder, const struct symbol_place *place, size_t *said)
{
	if (place->is_store || (*said)++ >= MISSING_FOLDERS_SAID)
		return;
	listener_warn(finder->options,
		"the symbol path names " SHOWN ", which is no folder here; check -y or "
		"_NT_SYMBOL_PATH",
		place->path);
}

static int open_place(
	struct finder *finder, const struct symbol_place *place, struct buf *here, size_t *said)
{
	int rc = local_typed(finder->local, place->path, here);
	const char *root;

	if (rc < 0)
		return rc;
	if (rc != LOCAL_FOLDER) {
		say_missing(finder, place, said);
		return 0;
	}
	root = arena_text(&finder->places.arena, here->data, here->len);
	if (!root)
		return -ERR_NOMEM;
	finder->roots[finder->root_count++] =
		(struct finder_place){.root = root, .is_store = place->is_store};
	return 0;
}

static int open_places(struct finder *finder)
{
	struct buf here;
	size_t said = 0;
	int rc = 0;

	finder->roots = calloc(finder->places.count + 1, sizeof(*finder->roots));
	if (!finder->roots)
		return -ERR_NOMEM;
	finder->is_looked = true;
	if (finder->places.strange)
		listener_warn(finder->options,
			"_NT_SYMBOL_PATH: " SHOWN " is passed over: it makes no sense here",
			finder->places.strange);
	buf_init(&here);
	for (size_t i = 0; !rc && i < finder->places.count; i++)
		rc = open_place(finder, &finder->places.places[i], &here, &said);
	buf_release(&here);
	return rc;
}

int finder_places(struct finder *finder, const struct store_question *question)
{
	int rc = finder->is_looked ? 0 : open_places(finder);

	for (size_t i = 0; !rc && i < finder->root_count; i++) {
		if (i % 256 == 255 && listener_is_cancelled(finder->options))
			break;
		rc = store_search(
			finder->local, finder->roots[i].root, finder->roots[i].is_store, question);
	}
	return rc;
}

bool search_is_new(struct search *search, const char *file, int *rc)
{
	if (table_find(&search->tried, file, strlen(file)))
		return false;
	*rc = table_add(&search->tried, file, strlen(file), 0);
	return !*rc;
}

int search_misfit(
	struct search *search, bool is_pdb, bool is_build, const char *file, const char *how, ...)
{
	char text[1000];
	struct misfit *misfit = &search->misfits[search->misfit_count];
	va_list args;

	if (search->misfit_count == MISFITS_MAX)
		return 0;
	va_start(args, how);
	vsnprintf(text, sizeof(text), how, args);
	va_end(args);
	*misfit = (struct misfit){.is_pdb = is_pdb,
		.is_build = is_build,
		.is_quiet = search->is_quiet,
		.path = arena_text(&search->arena, file, strlen(file)),
		.how = arena_text(&search->arena, text, strlen(text))};
	if (!misfit->path || !misfit->how)
		return -ERR_NOMEM;
	search->misfit_count++;
	return 0;
}

void search_forget_pdbs(struct search *search)
{
	size_t kept = 0;

	table_release(&search->tried);
	table_init(&search->tried);
	for (size_t i = 0; i < search->misfit_count; i++) {
		if (!search->misfits[i].is_pdb)
			search->misfits[kept++] = search->misfits[i];
	}
	search->misfit_count = kept;
}
