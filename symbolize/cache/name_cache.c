#include "symbolize/cache/name_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/table.h"
#include "symbolize/cache/section_file.h"

/* What is known of one module. */
struct module_names {
	const char *key;
	struct section *sections; /* the newest first */
	size_t section_count;
	struct section_answer *added;
	size_t added_count, added_cap;
};

struct name_cache {
	char *path;
	uint64_t limit;
	bool is_own_place;
	bool is_open; /* the file is there and looks like a cache */
	bool is_damaged; /* a section was not what its head says */
	struct os_file file;
	struct section_refs refs;
	struct arena arena; /* keys */
	struct table numbers; /* key -> index into modules */
	struct module_names *modules;
	size_t module_count, module_cap;
	size_t last; /* of the modules: most questions follow one about the same */
};

static void read_file(struct name_cache *cache)
{
	if (own_file_open(&cache->file, cache->path))
		return;
	cache->is_open = !section_refs_read(&cache->refs, &cache->file, cache->limit);
	if (!cache->is_open) {
		section_refs_release(&cache->refs);
		os_close(&cache->file);
	}
}

/* Takes path over, which may be NULL. */
static struct name_cache *open_at(char *path, uint64_t limit, bool is_own_place)
{
	struct name_cache *cache = path ? calloc(1, sizeof(*cache)) : NULL;

	if (!cache) {
		free(path);
		return NULL;
	}
	cache->path = path;
	cache->limit = limit;
	cache->is_own_place = is_own_place;
	section_refs_init(&cache->refs);
	arena_init(&cache->arena);
	table_init(&cache->numbers);
	read_file(cache);
	return cache;
}

static char *default_path(void)
{
	char *folder = own_cache_folder();
	struct buf path;

	buf_init(&path);
	if (folder && buf_printf(&path, "%s/names", folder))
		buf_release(&path);
	free(folder);
	return path.data;
}

struct name_cache *name_cache_open(const char *path)
{
	char *said = path ? strdup(path) : os_env("HSYM_CACHE");

	if (!path && said && (!*said || !strcmp(said, "off"))) {
		free(said);
		return NULL;
	}
	if (said || path)
		return open_at(said, NAME_CACHE_BYTES, false);
	return open_at(default_path(), NAME_CACHE_BYTES, true);
}

struct name_cache *name_cache_open_small(const char *path, size_t limit)
{
	return open_at(strdup(path), limit, false);
}

/* ---------------------------------------------------------------- finding */

/* A section that cannot be had is one that is not there. */
static void read_sections(struct name_cache *cache, struct module_names *names)
{
	const uint32_t key_hash = section_key_hash(names->key);
	size_t cap = 0;

	for (size_t i = cache->refs.count; cache->is_open && i-- > 0;) {
		int rc;

		if (cache->refs.list[i].head.key_hash != key_hash)
			continue;
		if (array_grow((void **)&names->sections, &cap, names->section_count,
			    sizeof(*names->sections)))
			return;
		rc = section_read(&cache->file, &cache->refs.list[i], names->key,
			&names->sections[names->section_count]);
		names->section_count += !rc;
		cache->is_damaged |= rc == -ERR_READ;
	}
}

static int add_module(struct name_cache *cache, const char *key, size_t len)
{
	struct module_names names = {.key = arena_text(&cache->arena, key, len)};

	if (!names.key ||
		array_grow((void **)&cache->modules, &cache->module_cap, cache->module_count,
			sizeof(*cache->modules)) ||
		table_add(&cache->numbers, key, len, cache->module_count))
		return -ERR_NOMEM;
	read_sections(cache, &names);
	cache->last = cache->module_count;
	cache->modules[cache->module_count++] = names;
	return 0;
}

/* The module of that key, known from now on; NULL: out of memory. */
static struct module_names *names_of(struct name_cache *cache, const char *key)
{
	size_t len;
	const uint64_t *number;

	if (cache->module_count && !strcmp(cache->modules[cache->last].key, key))
		return &cache->modules[cache->last];
	len = strlen(key);
	number = table_find(&cache->numbers, key, len);
	if (number)
		cache->last = (size_t)*number;
	else if (add_module(cache, key, len))
		return NULL;
	return &cache->modules[cache->last];
}

int name_cache_find(struct name_cache *cache, const char *key, uint32_t rva, struct arena *arena,
	struct symbols *found)
{
	struct module_names *names = cache ? names_of(cache, key) : NULL;

	if (!names)
		return cache ? -ERR_NOMEM : 0;
	for (size_t i = 0; i < names->section_count; i++) {
		struct section *section = &names->sections[i];
		uint32_t index = section_find(section, rva);

		if (index < section->answer_count)
			return section_answer(section, index, arena, found) ? -ERR_NOMEM : 1;
	}
	return 0;
}

/* ---------------------------------------------------------------- adding */

int name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols)
{
	struct module_names *names;

	if (!cache || !symbols->count || strlen(key) > SECTION_KEY_MAX)
		return 0;
	names = names_of(cache, key);
	if (!names || array_grow((void **)&names->added, &names->added_cap, names->added_count,
			      sizeof(*names->added)))
		return -ERR_NOMEM;
	names->added[names->added_count] = (struct section_answer){
		.rva = rva, .age = (uint32_t)names->added_count, .symbols = *symbols};
	names->added_count++;
	return 0;
}

static void write_added(const struct name_cache *cache)
{
	struct section_additions *additions = calloc(cache->module_count + 1, sizeof(*additions));
	struct section_job job = {.path = cache->path,
		.limit = cache->limit,
		.is_own_place = cache->is_own_place,
		.is_damaged = cache->is_damaged,
		.additions = additions};

	for (size_t i = 0; additions && i < cache->module_count; i++) {
		const struct module_names *names = &cache->modules[i];

		if (names->added_count)
			additions[job.count++] = (struct section_additions){
				names->key, names->added, names->added_count};
	}
	if (job.count)
		section_file_add(&job);
	free(additions);
}

void name_cache_close(struct name_cache *cache)
{
	if (!cache)
		return;
	if (cache->is_open)
		os_close(&cache->file);
	write_added(cache);
	for (size_t i = 0; i < cache->module_count; i++) {
		for (size_t j = 0; j < cache->modules[i].section_count; j++)
			section_release(&cache->modules[i].sections[j]);
		free(cache->modules[i].sections);
		free(cache->modules[i].added);
	}
	free(cache->modules);
	table_release(&cache->numbers);
	arena_release(&cache->arena);
	section_refs_release(&cache->refs);
	free(cache->path);
	free(cache);
}
