/* A names cache in its own folder. The names are computed from key and address. */
#ifndef TESTS_UNIT_NAME_CACHE_SCENE_H
#define TESTS_UNIT_NAME_CACHE_SCENE_H

#include "tests/unit/scratch.h"

#include "symbolize/lookup/lookup.h"

static char scene_path[340];

static inline int scene_begin(void **state)
{
	int rc = scratch_begin(state);

	snprintf(scene_path, sizeof(scene_path), "%s/names", dir);
	return rc;
}

static inline int scene_end(void **state)
{
	(void)state;
	unlink(scene_path);
	return rmdir(dir);
}

/* Returns the names at an address: one to three functions, some of them without a source file. */
static inline struct symbols scene_symbols(struct arena *arena, unsigned key, uint32_t rva)
{
	size_t count = 1 + rva % 3;
	struct symbol *list = arena_alloc(arena, count * sizeof(*list));
	char text[100];

	for (size_t i = 0; i < count; i++) {
		list[i] = (struct symbol){
			.line = rva % 1000, .offset_bytes = (uint64_t)rva << 20 | i};
		snprintf(text, sizeof(text), "space%u::function%u(int, %zu)", key, rva, i);
		list[i].function = arena_text(arena, text, strlen(text));
		snprintf(text, sizeof(text), "/src/%u/file %u.c", key,
			(rva / 9 + (uint32_t)i / 2) % 7);
		if ((rva + i) % 5)
			list[i].file = arena_text(arena, text, strlen(text));
	}
	return (struct symbols){list, count};
}

static inline const char *scene_key(unsigned key)
{
	static char text[100];

	snprintf(text, sizeof(text), "1000 1 5f3a%04x 0 {GUID-%u} 1 C:\\app\\module%u.dll", key,
		key, key);
	return text;
}

static inline void scene_add(
	struct name_cache *cache, struct arena *arena, unsigned key, uint32_t rva)
{
	struct symbols symbols = scene_symbols(arena, key, rva);

	name_cache_add(cache, scene_key(key), rva, &symbols);
}

/* Returns true if the cache contains names at an address; checks that they are those of
 * scene_add(). */
static inline bool scene_find(struct name_cache *cache, unsigned key, uint32_t rva)
{
	struct symbols found, truth;
	struct arena arena;

	if (!name_cache_find(cache, scene_key(key), rva, &found))
		return false;
	arena_init(&arena);
	truth = scene_symbols(&arena, key, rva);
	assert_int_equal(found.count, truth.count);
	for (size_t i = 0; i < found.count; i++) {
		const struct symbol *is = &found.list[i], *should = &truth.list[i];

		assert_string_equal(is->function, should->function);
		assert_string_equal(is->file ? is->file : "", should->file ? should->file : "");
		assert_int_equal(is->line, should->line);
		assert_int_equal(is->offset_bytes, should->offset_bytes);
		assert_null(is->recorded_function);
		assert_null(is->recorded_file);
	}
	arena_release(&arena);
	return true;
}

/* Adds names for `count` addresses, step bytes apart, starting at `first`. */
static inline void scene_write(
	size_t limit, unsigned key, uint32_t first, size_t count, uint32_t step)
{
	struct name_cache *cache = name_cache_open(scene_path, limit);
	struct arena arena;

	assert_non_null(cache);
	arena_init(&arena);
	for (size_t i = 0; i < count; i++)
		scene_add(cache, &arena, key, first + (uint32_t)i * step);
	name_cache_close(cache);
	arena_release(&arena);
}

/* Returns the number of addresses whose names are found; parameters as in scene_add(). */
static inline size_t scene_read(
	size_t limit, unsigned key, uint32_t first, size_t count, uint32_t step)
{
	struct name_cache *cache = name_cache_open(scene_path, limit);
	size_t found = 0;

	assert_non_null(cache);
	for (size_t i = 0; i < count; i++)
		found += scene_find(cache, key, first + (uint32_t)i * step);
	name_cache_close(cache);
	return found;
}

static inline size_t scene_size(void)
{
	struct stat st;

	return stat(scene_path, &st) ? 0 : (size_t)st.st_size;
}

static inline void scene_put(const void *bytes, size_t len)
{
	/* Truncating the old file would make the file system write it to disk immediately. */
	unlink(scene_path);
	file_write(scene_path, bytes, len);
	assert_int_equal(chmod(scene_path, 0600), 0);
}

#endif
