#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "symbolize/files/find_parts.h"
#include "symbolize/names.h"

#define MISFITS_IN_REASON 3

/* Adds one more reason. */
static int add(struct search *search, const char *format, ...) PRINTF_LIKE(2, 3);

static int add(struct search *search, const char *format, ...)
{
	struct buf *reason = &search->files->reason;
	char text[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return buf_printf(reason, "%s%s", reason->len ? "; " : "", text_harmless(text));
}

/* It is used nevertheless. */
static bool is_used(const struct search *search, const struct misfit *misfit)
{
	const char *used = misfit->is_pdb ? search->files->pdb : search->files->image;

	return used && !strcmp(used, misfit->path);
}

/* Whether the file that a misfit stands for was found elsewhere, and is right. */
static bool is_settled(const struct search *search, const struct misfit *misfit)
{
	for (size_t i = 0; i < search->misfit_count; i++) {
		const struct misfit *other = &search->misfits[i];

		if (other->is_pdb == misfit->is_pdb && is_used(search, other))
			return false;
	}
	return misfit->is_pdb ? search->files->pdb : search->files->image;
}

/* Says a sentence, once. */
static int say(struct finder *finder, const char *sentence)
{
	if (table_find(&finder->said, sentence, strlen(sentence)))
		return 0;
	listener_warn(finder->options, "%s", sentence);
	return table_add(&finder->said, sentence, strlen(sentence), 0);
}

static int say_misfit(struct search *search, const struct misfit *misfit)
{
	const char *remedy = "";
	char sentence[3000];

	if (misfit->is_quiet || is_settled(search, misfit))
		return 0;
	if (is_used(search, misfit))
		remedy = "; it is used nevertheless (--allow-mismatch)";
	else if (misfit->is_build && !search->finder->options->allow_mismatch)
		remedy = "; --allow-mismatch uses it nevertheless";
	snprintf(sentence, sizeof(sentence), "%.200s: " SHOWN " %s%s",
		module_path_base(search->module->path), misfit->path, misfit->how, remedy);
	return say(search->finder, sentence);
}

static int add_misfit(struct search *search, const struct misfit *misfit)
{
	if (search->finder->options->is_one_file && !misfit->is_quiet)
		return 0; /* it was warned of */
	return add(search, SHOWN " %s%s", misfit->path, misfit->how,
		is_used(search, misfit) ? ", and used nevertheless" : "");
}

/* Adds the reasons why files of one kind do not fit. Returns how many there are, or -ERR_NOMEM. */
static int add_misfits(struct search *search, bool is_pdb)
{
	int added = 0;

	for (size_t i = 0; i < search->misfit_count && added < MISFITS_IN_REASON; i++) {
		const struct misfit *misfit = &search->misfits[i];

		if (misfit->is_pdb != is_pdb || is_settled(search, misfit))
			continue;
		if (add_misfit(search, misfit))
			return -ERR_NOMEM;
		added++;
	}
	return added;
}

static int explain_image(struct search *search)
{
	const struct module *module = search->module;
	int rc = add_misfits(search, false);

	if (rc < 0)
		return rc;
	if (!search->files->image && search->finder->options->is_one_file)
		return 0;
	if (!search->files->image && !rc && search->finder->options->no_local_files)
		return add(search, SHOWN " was not looked for (--no-local-files)", module->path);
	if (!search->files->image && local_is_remote(module->path))
		return add(search,
			SHOWN " is on another machine or a device, which is not opened: copy it "
			      "here and name its place with --map",
			module->path);
	if (!search->files->image && !rc)
		return add(search, "no file " SHOWN " here", module->path);
	if (search->files->image && build_is_unknown(module))
		return add(search, "%s: the file fits by name%s only",
			module->has_identity ? "the dump does not say which build it is" :
					       "UMDH recorded no GUID",
			module->size_bytes ? " and size" : "");
	return 0;
}

static int explain_missing_pdb(struct search *search)
{
	const struct finder *finder = search->finder;

	return add(search, "%.300s (%s %lX) was not found: it is not %s%s", search->pdb_name,
		search->files->guid, (unsigned long)search->files->age,
		search->files->image ? "beside the image" : "where the dump says",
		finder->places.count || finder->places.server ?
			" nor in the symbol path" :
			", and there is no symbol path (-y)");
}

static int explain_pdb(struct search *search)
{
	const struct module_files *files = search->files;
	int rc = add_misfits(search, true);

	if (rc || files->pdb) /* those say it all */
		return rc < 0 ? rc : 0;
	if (search->pdb_name)
		return explain_missing_pdb(search);
	if (!files->image || files->has_dwarf)
		return 0;
	return add(search, "%s",
		files->pe->coff_symbols ? "no debug information in it, but a table of symbols" :
					  "no debug information in it (stripped?)");
}

/* Where nobody asks servers they are told of. */
static int explain_servers(struct search *search)
{
	const struct module_files *files = search->files;
	const char *server = search->finder->places.server;
	bool is_missing = search->pdb_name ? !files->pdb : !files->image;
	char sentence[1000];
	int rc = 0;

	if (!server || !is_missing || local_asks_servers())
		return 0;
	if (!search->finder->options->is_one_file) /* else the warning says it */
		rc = add(search, "servers are not asked here: %.300s", server);
	snprintf(sentence, sizeof(sentence),
		"the symbol path names a server, and servers are not asked here: %.300s; copy what "
		"is "
		"missing into a folder or store that the symbol path names",
		server);
	return rc ? rc : say(search->finder, sentence);
}

int search_explain(struct search *search)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < search->misfit_count; i++)
		rc = say_misfit(search, &search->misfits[i]);
	if (!rc)
		rc = explain_image(search);
	if (!rc)
		rc = explain_pdb(search);
	return rc ? rc : explain_servers(search);
}

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
		"the symbol path names " SHOWN ", which is not a folder here; check -y or "
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
