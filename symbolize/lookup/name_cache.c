#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "symbolize/lookup/lookup.h"
#include "symbolize/lookup/name_cache_file.h"

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

/* When the oldest go, so many go that the next ones find room. */
#define ROOM_PARTS 4

/* One who writes, while it has the lock. */
struct writing {
	const struct section_job *job;
	struct os_file file;
	struct section_refs refs;
	struct arena arena; /* names of sections that are made one */
	struct buf added; /* sections */
	bool is_moving; /* sections go, or may have to */
};

/* ---------------------------------------------------------------- making one of many */

/* One of a key's sections that are worth being made one. */
static bool is_small(
	const struct writing *writing, const struct section_ref *ref, uint32_t key_hash)
{
	return ref->head.key_hash == key_hash &&
	       section_bytes(&ref->head) <= writing->job->limit / 64;
}

static int take_answers(struct writing *writing, struct section *section,
	struct section_answer **answers, size_t *count, size_t *cap)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < section->answer_count; i++) {
		rc = array_grow((void **)answers, cap, *count, sizeof(**answers));
		if (rc)
			break;
		(*answers)[*count] = (struct section_answer){
			.rva = section_rva(section, i), .age = (uint32_t)*count};
		rc = section_answer(section, i, &writing->arena, &(*answers)[*count].symbols);
		*count += !rc;
	}
	return rc;
}

/* All answers of a key's small sections and the new ones, in an array that the caller frees; those
 * sections go. */
static int merge(struct writing *writing, const struct section_additions *additions,
	struct section_answer **answers, size_t *count)
{
	const uint32_t key_hash = section_key_hash(additions->key);
	size_t cap = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < writing->refs.count; i++) {
		struct section_ref *ref = &writing->refs.list[i];
		struct section section;

		if (!is_small(writing, ref, key_hash))
			continue;
		rc = section_read(&writing->file, ref, additions->key, &section);
		if (!rc) {
			rc = take_answers(writing, &section, answers, count, &cap);
			section_release(&section);
			ref->is_dropped = true;
		} else if (rc == -ERR_READ) { /* another key's, or damaged */
			rc = 0;
		}
	}
	for (size_t i = 0; !rc && i < additions->count; i++) {
		rc = array_grow((void **)answers, &cap, *count, sizeof(**answers));
		if (!rc) {
			(*answers)[*count] = additions->answers[i];
			(*answers)[*count].age = (uint32_t)*count;
			++*count;
		}
	}
	writing->is_moving = true;
	return rc;
}

/* Whether what is to be added is as much as may be, that not all others go for it. */
static bool is_full(const struct writing *writing)
{
	return writing->added.len >= writing->job->limit / 2;
}

static int build(
	struct writing *writing, const char *key, struct section_answer *answers, size_t count)
{
	size_t taken = 0;
	int rc = 0;

	count = section_sort(answers, count);
	for (size_t i = 0; !rc && i < count && !is_full(writing); i += taken)
		rc = section_build(&writing->added, key, answers + i, count - i,
			(size_t)(writing->job->limit / 8), &taken);
	return rc;
}

static int add_key(struct writing *writing, const struct section_additions *additions)
{
	const uint32_t key_hash = section_key_hash(additions->key);
	struct section_answer *merged = NULL;
	size_t small_count = 0, count = 0;
	int rc;

	for (size_t i = 0; i < writing->refs.count; i++)
		small_count += is_small(writing, &writing->refs.list[i], key_hash);
	if (small_count < SECTIONS_OF_KEY_MAX)
		return build(writing, additions->key, additions->answers, additions->count);
	rc = merge(writing, additions, &merged, &count);
	if (!rc)
		rc = build(writing, additions->key, merged, count);
	free(merged);
	return rc;
}

/* ---------------------------------------------------------------- what has to go */

static uint64_t bytes_kept(const struct section_refs *refs, size_t *count)
{
	uint64_t bytes = HEADER_BYTES;

	*count = 0;
	for (size_t i = 0; i < refs->count; i++) {
		if (!refs->list[i].is_dropped) {
			bytes += section_bytes(&refs->list[i].head);
			++*count;
		}
	}
	return bytes;
}

static void drop_oldest(struct writing *writing)
{
	const uint64_t limit = writing->job->limit, added = writing->added.len;
	size_t count;
	uint64_t bytes = bytes_kept(&writing->refs, &count);

	if (bytes + added <= limit && count < SECTIONS_MAX)
		return;
	writing->is_moving = true;
	for (size_t i = 0; i < writing->refs.count; i++) {
		struct section_ref *ref = &writing->refs.list[i];

		if (bytes + added <= limit - limit / ROOM_PARTS &&
			count <= SECTIONS_MAX - SECTIONS_MAX / ROOM_PARTS)
			break;
		if (ref->is_dropped)
			continue;
		ref->is_dropped = true;
		bytes -= section_bytes(&ref->head);
		count--;
	}
}

/* ---------------------------------------------------------------- writing */

/* Moves one section to where *to is, unless it lies there, and *to behind it. One that is damaged goes. */
static int move(struct writing *writing, const struct section_ref *ref, uint64_t *to)
{
	size_t len = (size_t)section_bytes(&ref->head);
	unsigned char *bytes;
	int rc = 0;

	if (ref->offset == *to && !writing->job->is_damaged) {
		*to += len;
		return 0;
	}
	bytes = malloc(len);
	if (!bytes)
		return -ERR_NOMEM;
	if (!os_read_at(&writing->file, ref->offset, bytes, len) &&
		section_is_whole(&ref->head, bytes + SECTION_HEAD_BYTES)) {
		if (ref->offset != *to)
			rc = own_file_write(&writing->file, *to, bytes, len);
		if (!rc)
			*to += len;
	}
	free(bytes);
	return rc;
}

static int move_all(struct writing *writing, uint64_t *end)
{
	int rc = 0;

	*end = HEADER_BYTES;
	for (size_t i = 0; !rc && i < writing->refs.count; i++) {
		if (!writing->refs.list[i].is_dropped)
			rc = move(writing, &writing->refs.list[i], end);
	}
	return rc;
}

/* Whatever happens the file ends with a whole section. */
static void write_all(struct writing *writing)
{
	uint64_t end = writing->refs.end;
	int rc = 0;

	if (!writing->refs.is_header_whole)
		rc = own_file_write(&writing->file, 0, HEADER_TEXT HEADER_TEXT, HEADER_BYTES);
	if (!rc && (writing->is_moving || writing->job->is_damaged || writing->refs.has_gaps))
		rc = move_all(writing, &end);
	if (os_size(&writing->file) > end && own_file_cut(&writing->file, end))
		return;
	if (!rc && end + writing->added.len <= writing->job->limit &&
		own_file_write(&writing->file, end, writing->added.data, writing->added.len))
		own_file_cut(&writing->file, end);
}

static int prepare(struct writing *writing)
{
	const struct section_job *job = writing->job;
	int rc = section_refs_read(&writing->refs, &writing->file, job->limit);

	if (rc == -ERR_READ && job->is_own_place)
		rc = 0;
	for (size_t i = 0; !rc && i < job->count && !is_full(writing); i++)
		rc = add_key(writing, &job->additions[i]);
	if (!rc)
		drop_oldest(writing);
	return rc;
}

void section_file_add(const struct section_job *job)
{
	struct writing writing = {.job = job};

	if (own_file_lock(&writing.file, job->path))
		return;
	section_refs_init(&writing.refs);
	arena_init(&writing.arena);
	buf_init(&writing.added);
	if (!prepare(&writing))
		write_all(&writing);
	buf_release(&writing.added);
	arena_release(&writing.arena);
	section_refs_release(&writing.refs);
	os_close(&writing.file);
}
