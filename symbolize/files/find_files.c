/*
 * Searches for the image and the PDB of a module (module_files.h). A finder contains the parsed
 * options and the places of the symbol path. A search tries candidate files in order. It uses a
 * file that fits, and records any other file as a misfit. At the end, misfits become warnings, and
 * reasons for missing names.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/os.h"
#include "core/base/text.h"
#include "symbolize/files/local_path.h"
#include "symbolize/files/module_files.h"
#include "symbolize/names.h"

#define MISFITS_MAX 8 /* limit per module; further misfits are not reported */
#define MISFITS_IN_REASON 3
#define MISSING_FOLDERS_MAX 3
/* Format of a path in a one-line message. */
#define SHOWN "%.600s"

/*
 * A map "FROM=TO": paths that begin with FROM are searched for at TO. FROM must end at the end of a
 * component and may have a trailing slash. ASCII case and the kind of slash are ignored. The first
 * "=" separates FROM and TO.
 */
struct finder_map {
	const char *from, *to;
	size_t from_len;
	bool is_looked;
	enum local_kind kind; /* kind of `to` */
	struct buf here; /* place of `to` on this machine */
};

struct finder {
	const struct symbol_options *options;
	char *path_text; /* text of the symbol path, or NULL */
	struct finder_map *maps;
	struct symbol_path symbol_path;
	bool is_looked; /* the places of the symbol path were looked up */
	struct local_paths *local;
	struct table warned; /* warnings that have been reported */
};

/* A candidate file that does not fit. */
struct misfit {
	bool is_pdb;
	const char *path;
	const char *how; /* predicate for a message, such as "is a different build: ..." */
	bool is_build; /* the file is valid but is another build */
	bool is_quiet; /* expected, so not reported as a warning */
};

struct search {
	struct finder *finder;
	const struct module *module;
	struct module_files *files;
	struct arena arena; /* owns the strings */
	struct table tried; /* paths of files that were tried */
	struct misfit misfits[MISFITS_MAX];
	size_t misfit_count;
	bool is_quiet, is_guess; /* properties of the current place */
	bool has_damaged; /* an unreadable PDB was found */
	/* First image of another build, for --allow-mismatch. */
	const char *other_image;
	/* The PDB of the module, or of the image in use. pdb_name is NULL if the PDB is unknown. */
	const char *pdb_name; /* name without a path */
	const char *pdb_owner; /* file that names the PDB: "dump" or "image" */
};

/* ---------------------------------------------------------------- the finder */

static int parse_maps(struct finder *finder, struct err *err)
{
	const struct symbol_options *options = finder->options;

	finder->maps = xcalloc(options->map_count, sizeof(*finder->maps));
	for (size_t i = 0; i < options->map_count; i++) {
		const char *from = options->maps[i], *equals = strchr(from, '=');

		if (!equals || equals == from || !equals[1])
			return err_set(err, ERR_USAGE, from, "expected FROM=TO");
		finder->maps[i] = (struct finder_map){
			.from = from, .from_len = (size_t)(equals - from), .to = equals + 1};
	}
	return 0;
}

static int parse_symbol_path(struct finder *finder, struct err *err)
{
	const char *given = finder->options->symbol_path;

	finder->path_text = given ? xstrdup(given) : os_env("_NT_SYMBOL_PATH");
	if (finder->path_text)
		symbol_path_parse(&finder->symbol_path, finder->path_text);
	/* An invalid environment variable is not an error, because other programs also use it.
	 * open_places() only warns. */
	if (!finder->symbol_path.strange || !given)
		return 0;
	return err_set(err, ERR_USAGE, finder->symbol_path.strange,
		"only srv, symsrv and cache may stand before * in a symbol path");
}

struct finder *finder_new(const struct symbol_options *options, struct err *err)
{
	struct finder *finder = xcalloc(1, sizeof(*finder));

	finder->options = options;
	symbol_path_init(&finder->symbol_path);
	table_init(&finder->warned);
	finder->local = local_paths_new();
	if (!parse_maps(finder, err) && !parse_symbol_path(finder, err))
		return finder;
	finder_free(finder);
	return NULL;
}

void finder_free(struct finder *finder)
{
	if (!finder)
		return;
	for (size_t i = 0; i < finder->options->map_count; i++)
		buf_release(&finder->maps[i].here);
	local_paths_free(finder->local);
	symbol_path_release(&finder->symbol_path);
	table_release(&finder->warned);
	free(finder->path_text);
	free(finder->maps);
	free(finder);
}

const char *finder_servers(const struct finder *finder)
{
	return finder->symbol_path.server ? finder->path_text : NULL;
}

/* Adds `text` to the table. Returns false if the table already contained it. */
static bool is_new(struct table *table, const char *text)
{
	if (table_find(table, text, strlen(text)))
		return false;
	table_add(table, text, strlen(text), 0);
	return true;
}

/* ---------------------------------------------------------------- places */

/* Uses a map to translate `path`, and tries the resulting file. */
static bool use_map(struct search *search, struct finder_map *map, const char *path, local_use *use)
{
	const char *rest = names_behind(path, map->from, map->from_len, true);
	struct local_paths *local = search->finder->local;
	struct buf here;
	bool is_used = false;

	if (!rest)
		return false;
	if (!map->is_looked)
		map->kind = local_typed(local, map->to, &map->here);
	map->is_looked = true;
	if (map->kind == LOCAL_NONE || (map->kind == LOCAL_FILE && *rest))
		return false;
	buf_init(&here);
	buf_add_text(&here, map->here.data);
	if (map->kind == LOCAL_FILE || local_below(local, &here, rest) == LOCAL_FILE)
		is_used = use(search, here.data);
	buf_release(&here);
	return is_used;
}

/* Calls `use` for each local file that a full path may denote. Returns true if a file was
 * accepted. */
static bool search_path(struct search *search, const char *path, local_use *use)
{
	struct finder *finder = search->finder;
	bool is_used = false;
	struct buf here;

	path = local_plain(path);
	for (size_t i = 0; !is_used && i < finder->options->map_count; i++)
		is_used = use_map(search, &finder->maps[i], path, use);
	if (is_used || finder->options->no_local_files)
		return is_used;
	buf_init(&here);
	if (local_foreign(finder->local, path, &here) == LOCAL_FILE)
		is_used = use(search, here.data);
	buf_release(&here);
	return is_used;
}

static void open_places(struct finder *finder)
{
	struct symbol_path *path = &finder->symbol_path;
	struct buf here;
	size_t reported = 0;

	finder->is_looked = true;
	if (path->strange)
		listener_warn(finder->options,
			"_NT_SYMBOL_PATH: " SHOWN " is ignored: it cannot be used on this system",
			path->strange);
	buf_init(&here);
	for (size_t i = 0; i < path->count; i++) {
		struct symbol_place *place = &path->places[i];

		if (local_typed(finder->local, place->path, &here) == LOCAL_FOLDER)
			place->root = arena_text(&path->arena, here.data, here.len);
		/* A missing store may be created later by a fetch, but a missing folder is a
		 * mistake. */
		else if (!place->is_store && !finder->options->is_path_checked &&
			 reported++ < MISSING_FOLDERS_MAX)
			listener_warn(finder->options,
				"the symbol path names " SHOWN
				", which is not a folder here; check -y or _NT_SYMBOL_PATH",
				place->path);
	}
	buf_release(&here);
}

void finder_check_places(struct finder *finder)
{
	if (!finder->is_looked)
		open_places(finder);
}

static bool search_places(struct finder *finder, const struct store_question *question)
{
	finder_check_places(finder);
	for (size_t i = 0; i < finder->symbol_path.count; i++) {
		const struct symbol_place *place = &finder->symbol_path.places[i];

		if (i % 256 == 255 && listener_is_cancelled(finder->options))
			break;
		if (place->root && store_search(finder->local, place, question))
			return true;
	}
	return false;
}

/* Records a misfit; `how` is printf-formatted. Always returns false, so that the caller can return
 * the result. */
static bool add_misfit(struct search *search, bool is_pdb, bool is_build, const char *file,
	const char *how, ...) PRINTF_LIKE(5, 6);

static bool add_misfit(
	struct search *search, bool is_pdb, bool is_build, const char *file, const char *how, ...)
{
	char text[1000];
	va_list args;

	if (search->misfit_count == MISFITS_MAX)
		return false;
	va_start(args, how);
	vsnprintf(text, sizeof(text), how, args);
	va_end(args);
	search->misfits[search->misfit_count++] = (struct misfit){.is_pdb = is_pdb,
		.is_build = is_build,
		.is_quiet = search->is_quiet,
		.path = arena_text(&search->arena, file, strlen(file)),
		.how = arena_text(&search->arena, text, strlen(text))};
	return false;
}

/* ---------------------------------------------------------------- PDBs */

static bool try_pdb(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct module_files *files = search->files;
	struct pdb_identity pdb;
	struct err err;
	char how[DIFFERENCE_BYTES];

	if (!is_new(&search->tried, path))
		return false;
	if (pdb_read_identity(path, &pdb, &err)) {
		search->has_damaged = true;
		return add_misfit(search, true, false, path, "cannot be used: %s", err.detail);
	}
	if (build_pdb_differs(files->guid, files->age, &pdb, search->pdb_owner, how))
		return add_misfit(search, true, true, path, "is a different build: %s", how);
	files->pdb = xstrdup(path);
	return true;
}

static void packed_pdb(void *ctx, const char *file, const char *remedy)
{
	add_misfit(ctx, true, false, file, "%s", remedy);
}

/* Fills in files->guid, files->age and search->pdb_name, and sets *full to the PDB's path recorded
 * in the image or the dump. Returns false if the PDB is unknown. */
static bool know_pdb(struct search *search, const char **full)
{
	const struct pe_image *pe = search->files->pe;
	const struct module *module = search->module;
	const char *recorded =
		module->has_identity && module->pdb && *module->pdb ? module->pdb : NULL;
	char guid[33];

	if ((pe ? !pe->pdb[0] : !recorded) ||
		!build_guid_is_known(pe ? pe->pdb_guid : module->pdb_guid, guid))
		return false;
	/* A name that fills its field was truncated; the dump may contain the whole name. */
	*full = pe && (!recorded || strlen(pe->pdb) < sizeof(pe->pdb) - 1) ? pe->pdb : recorded;
	search->pdb_name = module_path_base(*full);
	search->pdb_owner = pe ? "image" : "dump";
	memcpy(search->files->guid, guid, sizeof(guid));
	search->files->age = pe ? pe->pdb_age : module->pdb_age;
	return *search->pdb_name != '\0';
}

/* Searches for the PDB in the folder of the file at `path`. `is_foreign` is true if `path` comes
 * from the dump. */
static bool search_beside(struct search *search, const char *path, bool is_foreign)
{
	size_t folder = (size_t)(module_path_base(path) - path);
	struct buf file;
	bool is_used = false;

	if (!folder)
		return false;
	buf_init(&file);
	buf_add(&file, path, folder);
	if (is_foreign) {
		buf_add_text(&file, search->pdb_name);
		is_used = search_path(search, file.data, try_pdb);
	} else {
		file.data[--file.len] = '\0';
		is_used =
			local_below(search->finder->local, &file, search->pdb_name) == LOCAL_FILE &&
			try_pdb(search, file.data);
	}
	buf_release(&file);
	return is_used;
}

/* Tries all places for the PDB. The callback stores the PDB that fits in files. */
static void search_pdb(struct search *search)
{
	const struct module_files *files = search->files;
	char key[48];
	struct store_question question = {.image = search->module->path,
		.key = key,
		.use = try_pdb,
		.is_packed = packed_pdb,
		.ctx = search};
	const char *full;

	if (!know_pdb(search, &full) || search_path(search, full, try_pdb) ||
		(files->image && search_beside(search, files->image, false)) ||
		search_beside(search, search->module->path, true))
		return;
	question.name = search->pdb_name;
	snprintf(key, sizeof(key), "%s%lX", files->guid, (unsigned long)files->age);
	search_places(search->finder, &question);
}

/* ---------------------------------------------------------------- images */

static int read_file(void *ctx, uint64_t offset, void *bytes, size_t len)
{
	return os_read_at(ctx, offset, bytes, len);
}

static void add_image(struct search *search, const char *path, const struct pe_source *source,
	const struct pe_image *pe)
{
	struct module_files *files = search->files;

	files->image = xstrdup(path);
	files->pe = xmalloc(sizeof(*files->pe));
	*files->pe = *pe;
	files->has_dwarf = build_has_dwarf(source, pe);
}

static bool try_image(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;
	struct err err;
	char how[DIFFERENCE_BYTES];
	bool is_used = false;

	if (!is_new(&search->tried, path))
		return false;
	if (os_open(&file, path, &err))
		return add_misfit(
			search, false, false, path, "cannot be opened (%.399s)", err.detail);
	if (pe_read_headers(&source, &pe)) {
		add_misfit(search, false, false, path, "is not a PE image, or is damaged");
	} else if (build_image_differs(search->module, &pe, how)) {
		if (!search->other_image && !search->is_guess)
			search->other_image = arena_text(&search->arena, path, strlen(path));
		add_misfit(search, false, true, path, "is a different build: %s", how);
	} else {
		add_image(search, path, &source, &pe);
		is_used = true;
	}
	os_close(&file);
	return is_used;
}

static void packed_image(void *ctx, const char *file, const char *remedy)
{
	add_misfit(ctx, false, false, file, "%s", remedy);
}

static void search_image(struct search *search)
{
	const struct module *module = search->module;
	struct finder *finder = search->finder;
	char key[40];
	struct store_question question = {.name = module_path_base(module->path),
		.image = module->path,
		.use = try_image,
		.is_packed = packed_image,
		.ctx = search};
	bool is_found;

	search->is_quiet = local_is_other_system(module->path);
	is_found = search_path(search, module->path, try_image);
	search->is_quiet = false;
	/* Stores identify images by time stamp and size. */
	if (module->has_identity && module->size_bytes && module->size_bytes <= UINT32_MAX) {
		snprintf(key, sizeof(key), "%08lX%lx", (unsigned long)module->timestamp,
			(unsigned long)module->size_bytes);
		question.key = key;
	}
	/* A file found only by its name is used only if its build can be checked. */
	if (is_found || search_places(finder, &question) || build_is_unknown(module) ||
		finder->options->no_local_files)
		return;
	search->is_guess = search->is_quiet = true;
	local_guess(finder->local, module->path, try_image, search);
	search->is_guess = search->is_quiet = false;
}

/* ---------------------------------------------------------------- --allow-mismatch */

static void search_other_image(struct search *search)
{
	struct os_file file;
	struct pe_source source = {.read = read_file, .ctx = &file};
	struct pe_image pe;

	if (!search->other_image || os_open(&file, search->other_image, NULL))
		return;
	if (!pe_read_headers(&source, &pe)) {
		add_image(search, search->other_image, &source, &pe);
		search->files->is_mismatch = true;
	}
	os_close(&file);
}

/* Searches for the PDB again, with the GUID of the other image. */
static void search_pdb_again(struct search *search)
{
	size_t count = 0;

	table_release(&search->tried);
	table_init(&search->tried);
	for (size_t i = 0; i < search->misfit_count; i++) {
		if (!search->misfits[i].is_pdb)
			search->misfits[count++] = search->misfits[i];
	}
	search->misfit_count = count;
	search_pdb(search);
}

/* For --allow-mismatch, uses files of another build. If the right PDB was found, no image of
 * another build is needed. */
static void search_others(struct search *search)
{
	struct module_files *files = search->files;

	if (!files->image && !files->pdb)
		search_other_image(search);
	if (files->is_mismatch)
		search_pdb_again(search);
	for (size_t i = 0; !files->pdb && i < search->misfit_count; i++) {
		const struct misfit *misfit = &search->misfits[i];

		if (misfit->is_pdb && misfit->is_build) {
			files->pdb = xstrdup(misfit->path);
			files->is_mismatch = true;
		}
	}
}

/* ---------------------------------------------------------------- reasons */

static void add_reason(struct search *search, const char *format, ...) PRINTF_LIKE(2, 3);

static void add_reason(struct search *search, const char *format, ...)
{
	struct buf *reason = &search->files->reason;
	char text[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_printf(reason, "%s%s", reason->len ? "; " : "", text_harmless(text));
}

/* Reports a warning, unless it has already been reported. */
static void report_sentence(struct finder *finder, const char *sentence)
{
	if (is_new(&finder->warned, sentence))
		listener_warn(finder->options, "%s", sentence);
}

/* Returns true if the misfit is used nevertheless, because of --allow-mismatch. */
static bool is_used(const struct search *search, const struct misfit *misfit)
{
	const char *used = misfit->is_pdb ? search->files->pdb : search->files->image;

	return used && !strcmp(used, misfit->path);
}

/* Returns true if the right file was found elsewhere. */
static bool is_settled(const struct search *search, const struct misfit *misfit)
{
	for (size_t i = 0; i < search->misfit_count; i++) {
		const struct misfit *other = &search->misfits[i];

		if (other->is_pdb == misfit->is_pdb && is_used(search, other))
			return false;
	}
	return misfit->is_pdb ? search->files->pdb : search->files->image;
}

static void print_misfit(struct search *search, const struct misfit *misfit)
{
	const char *remedy = "";
	char sentence[3000];

	if (misfit->is_quiet || is_settled(search, misfit))
		return;
	if (is_used(search, misfit))
		remedy = "; it is used anyway (--allow-mismatch)";
	else if (misfit->is_build && !search->finder->options->allow_mismatch)
		remedy = "; --allow-mismatch uses it anyway";
	snprintf(sentence, sizeof(sentence), "%.200s: " SHOWN " %s%s",
		module_path_base(search->module->path), misfit->path, misfit->how, remedy);
	report_sentence(search->finder, sentence);
}

/* Appends the misfits of one kind as reasons. Returns true if there was an unresolved misfit of
 * this kind. */
static bool add_misfits(struct search *search, bool is_pdb)
{
	int count = 0;

	for (size_t i = 0; i < search->misfit_count && count < MISFITS_IN_REASON; i++) {
		const struct misfit *misfit = &search->misfits[i];

		if (misfit->is_pdb != is_pdb || is_settled(search, misfit))
			continue;
		count++;
		/* If this is false, a warning has already reported the misfit. */
		if (!search->finder->options->is_one_file || misfit->is_quiet)
			add_reason(search, SHOWN " %s%s", misfit->path, misfit->how,
				is_used(search, misfit) ? ", and used anyway" : "");
	}
	return count > 0;
}

static void explain_image(struct search *search)
{
	const struct symbol_options *options = search->finder->options;
	const struct module *module = search->module;
	bool has_misfits = add_misfits(search, false);

	if (search->files->image) {
		if (build_is_unknown(module))
			add_reason(search, "%s: the file matches by name%s only",
				module->has_identity ? "the dump does not record its build" :
						       "UMDH recorded no GUID",
				module->size_bytes ? " and size" : "");
	} else if (options->is_one_file) {
		return;
	} else if (!has_misfits && options->no_local_files) {
		add_reason(search, SHOWN " was not looked for (--no-local-files)", module->path);
	} else if (local_is_remote(module->path)) {
		add_reason(search,
			SHOWN " is on another machine or a device, which is not opened: copy it "
			      "here and name its place with --map",
			module->path);
	} else if (!has_misfits) {
		add_reason(search, "no file " SHOWN " here", module->path);
	}
}

static void explain_pdb(struct search *search)
{
	const struct module_files *files = search->files;
	const struct symbol_path *path = &search->finder->symbol_path;

	if (add_misfits(search, true) || files->pdb) /* no further reason is needed */
		return;
	if (search->pdb_name)
		add_reason(search, "%.300s (%s %lX) was not found: it is not %s%s",
			search->pdb_name, files->guid, (unsigned long)files->age,
			files->image ? "beside the image" : "at the path in the dump",
			path->count || path->server ? " nor in the symbol path" :
						      ", and there is no symbol path (-y)");
	else if (files->image && !files->has_dwarf)
		add_reason(search, "%s",
			files->pe->coff_symbols ?
				"contains no debug information, only a table of symbols" :
				"contains no debug information (stripped?)");
}

/* Reports that a symbol server would be needed but cannot be queried. */
static void explain_servers(struct search *search)
{
	const struct module_files *files = search->files;
	const char *server = search->finder->symbol_path.server;
	bool is_missing = search->pdb_name ? !files->pdb : !files->image;
	char sentence[1000];

	if (!server || !is_missing || local_can_query_servers())
		return;
	if (!search->finder->options->is_one_file) /* otherwise the warning below reports it */
		add_reason(search, "symbol servers cannot be used here: %.300s", server);
	snprintf(sentence, sizeof(sentence),
		"the symbol path names a server, and symbol servers cannot be used here: %.300s; "
		"copy the missing files into a folder or store that the symbol path names",
		server);
	report_sentence(search->finder, sentence);
}

void finder_find(struct finder *finder, const struct module *module, struct module_files *files)
{
	struct search search = {.finder = finder, .module = module, .files = files};

	if (files->is_searched)
		return;
	files->is_searched = true;
	arena_init(&search.arena);
	table_init(&search.tried);
	search_image(&search);
	search_pdb(&search);
	if (finder->options->allow_mismatch)
		search_others(&search);
	files->is_pdb_damaged = search.has_damaged && (!files->pdb || files->is_mismatch);
	for (size_t i = 0; i < search.misfit_count; i++)
		print_misfit(&search, &search.misfits[i]);
	explain_image(&search);
	explain_pdb(&search);
	explain_servers(&search);
	table_release(&search.tried);
	arena_release(&search.arena);
}

void module_files_release(struct module_files *files)
{
	free(files->image);
	free(files->pe);
	free(files->pdb);
	buf_release(&files->reason);
	*files = (struct module_files){0};
}
