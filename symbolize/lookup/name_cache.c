/*
 * The name cache (lookup.h) is a text file. Its first line is the format. Chunks follow, the newest
 * last. A chunk contains the names that one run found in one module: an empty line, and then
 *
 *	module CHECK BYTES KEY
 *	RVA FUNCTION OFFSET FILE LINE ...
 *
 * with one line per address. Fields are separated by tabs. The last four fields are repeated for
 * each function into which the previous function is inlined. Numbers are hexadecimal. FILE is empty
 * if it is unknown; "=" repeats the last file named in the chunk. BYTES is the size from KEY to the
 * end of the chunk. CHECK is a hash of these bytes: without it, a damaged digit could turn a name
 * into a plausible wrong name.
 *
 * An incomplete chunk is ignored, and the next chunk is found by searching for its first line. So
 * the file can be read without a lock while another program writes it. That is why new chunks are
 * written in place. The alternative, renaming a new file to the old name, would need extra disk
 * space. On Windows it would also need the cooperation of programs that have the file open.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "symbolize/lookup/lookup.h"
#include "symbolize/names.h"

#define FORMAT "hsnap's names "
#define FIRST_LINE FORMAT "2\n"
#define FIRST_BYTES (sizeof(FIRST_LINE) - 1)
#define MARK "\nmodule "
#define MARK_BYTES (sizeof(MARK) - 1)
#define HEAD_MAX 40 /* maximum bytes of mark, check and length */
#define PAD_BYTES 16 /* NULs required after the file in memory, for hex_parse() */

struct name_chunk {
	char *key; /* not NUL-terminated; the chunk's lines follow the key */
	size_t key_bytes, bytes;
	uint64_t check;
};

struct cached_module {
	const char *key;
	struct buf lines; /* key and lines to be written */
	const char *file; /* last file named in lines, or NULL */
};

struct name_cache {
	char *path;
	size_t limit;
	bool is_own_place;
	/* content of the file when it was opened; parsed lines have been split into strings */
	struct buf bytes;
	struct name_chunk *chunks;
	size_t chunk_count, chunk_cap;
	struct table numbers; /* maps a key to an index into modules */
	struct cached_module *modules; /* modules that have been looked up */
	size_t module_count, module_cap;
	size_t last; /* index of the last module used, because most look-ups repeat it */
	struct u64map locations; /* maps module number and rva to an index into answers */
	struct symbols *answers;
	size_t answer_count, answer_cap;
	struct arena arena; /* keys, and symbols of answers */
	size_t added_bytes;
};

static uint32_t check_of(const char *bytes, size_t len)
{
	/* fixed key, because the check guards only against accidents */
	static const struct hash_key key = {{1, 2}};
	struct hasher hasher = hasher_begin(&key);

	hasher_add_bytes(&hasher, bytes, len);
	return hasher_end(&hasher);
}

/* ---------------------------------------------------------------- the file */

/* Returns true if the file is empty or a cache in any version of the format. */
static bool is_cache(struct os_file *file)
{
	char start[sizeof(FORMAT) - 1];
	uint64_t size = os_size(file);
	size_t len = size < sizeof(start) ? (size_t)size : sizeof(start);

	return !os_read_at(file, 0, start, len) && !memcmp(start, FORMAT, len);
}

/* Reads a whole cache in this version of the format. Reads nothing and returns false for any other
 * file and for a file larger than `limit`. */
static bool read_file(struct os_file *file, size_t limit, struct buf *bytes)
{
	uint64_t size = os_size(file);

	if (size < FIRST_BYTES || size > limit)
		return false;
	buf_reserve(bytes, (size_t)size + PAD_BYTES);
	if (os_read_at(file, 0, bytes->data, (size_t)size) ||
		memcmp(bytes->data, FIRST_LINE, FIRST_BYTES) != 0)
		return false;
	bytes->len = (size_t)size;
	memset(bytes->data + bytes->len, 0, PAD_BYTES);
	return true;
}

static bool is_mark(const struct buf *bytes, size_t at)
{
	return bytes->len - at >= MARK_BYTES && !memcmp(bytes->data + at, MARK, MARK_BYTES);
}

/* Returns the position of the first mark at or after `at`, or the end of the file. */
static size_t next_mark(const struct buf *bytes, size_t at)
{
	while (at < bytes->len && !is_mark(bytes, at)) {
		const char *line = memchr(bytes->data + at + 1, '\n', bytes->len - at - 1);

		at = line ? (size_t)(line - bytes->data) : bytes->len;
	}
	return at;
}

/* Parses the first line of the chunk at a mark. Returns false if the chunk is incomplete. */
static bool read_head(const struct buf *bytes, size_t at, struct name_chunk *chunk)
{
	const char *text = bytes->data + at + MARK_BYTES, *key_end;
	uint64_t len;

	if (!hex_parse(&text, &chunk->check) || *text++ != ' ' || !hex_parse(&text, &len) ||
		*text++ != ' ')
		return false;
	chunk->key = bytes->data + (text - bytes->data);
	if (len > bytes->len - (size_t)(text - bytes->data))
		return false;
	chunk->bytes = (size_t)len;
	key_end = memchr(text, '\n', chunk->bytes);
	chunk->key_bytes = key_end ? (size_t)(key_end - text) : 0;
	return key_end != NULL;
}

static void find_chunks(struct name_cache *cache)
{
	const struct buf *bytes = &cache->bytes;
	struct name_chunk chunk;
	size_t at = next_mark(bytes, 0), end;

	while (at < bytes->len) {
		bool is_whole = read_head(bytes, at, &chunk);

		if (is_whole) {
			array_grow((void **)&cache->chunks, &cache->chunk_cap, cache->chunk_count,
				sizeof(chunk));
			cache->chunks[cache->chunk_count++] = chunk;
		}
		end = is_whole ? (size_t)(chunk.key - bytes->data) + chunk.bytes : at;
		/* The length in a torn chunk may include bytes that other programs have
		 * overwritten. */
		at = end > at && is_mark(bytes, end) ? end : next_mark(bytes, at + 1);
	}
}

/* Returns the path of the cache, which the caller frees, or NULL if no cache is to be used. */
static char *find_path(const char *path, bool *is_own_place)
{
	char *given = path ? xstrdup(path) : os_env("HSYM_CACHE"), *folder;
	struct buf text;

	*is_own_place = !given;
	if (given && (path || (*given && strcmp(given, "off") != 0)))
		return given;
	free(given);
	folder = *is_own_place ? own_cache_folder() : NULL;
	if (!folder)
		return NULL;
	buf_init(&text);
	buf_printf(&text, "%s/names", folder);
	free(folder);
	return text.data;
}

struct name_cache *name_cache_open(const char *path, size_t limit)
{
	bool is_own_place;
	char *found = find_path(path, &is_own_place);
	struct name_cache *cache;
	struct os_file file;

	if (!found)
		return NULL;
	cache = xcalloc(1, sizeof(*cache));
	cache->path = found;
	cache->limit = limit;
	cache->is_own_place = is_own_place;
	arena_init(&cache->arena);
	table_init(&cache->numbers);
	u64map_init(&cache->locations);
	if (!own_file_open(&file, cache->path)) {
		if (read_file(&file, limit, &cache->bytes))
			find_chunks(cache);
		os_close(&file);
	}
	return cache;
}

/* ---------------------------------------------------------------- reading lines */

/* Parses the number at *at and advances *at past it. After the last field, sets *at to NULL. */
static bool read_number(char **at, uint64_t max, uint64_t *number)
{
	const char *field = *at;

	if (!field || !hex_parse(&field, number) || (*field && *field != '\t') || *number > max)
		return false;
	*at = *field ? *at + (field - *at) + 1 : NULL;
	return true;
}

/* Parses a string field, which must not be the last field. */
static bool read_text(char **at, const char **text)
{
	char *field = *at, *end = field ? strchr(field, '\t') : NULL;

	if (!end || end - field > SYMBOL_TEXT_MAX)
		return false;
	*end = '\0';
	*at = end + 1;
	*text = text_is_plain(field, (size_t)(end - field)) ? field : text_harmless(field);
	return true;
}

/* Parses a symbol. *file is the last file named in the chunk. */
static bool read_symbol(char **at, const char **file, struct symbol *symbol)
{
	uint64_t line;

	*symbol = (struct symbol){0}; /* show() sets the recorded names later */
	if (!read_text(at, &symbol->function) || !*symbol->function ||
		!read_number(at, UINT64_MAX, &symbol->offset_bytes) ||
		!read_text(at, &symbol->file) || !read_number(at, UINT32_MAX, &line))
		return false;
	symbol->line = (uint32_t)line;
	if (!*symbol->file)
		symbol->file = NULL;
	else if (!strcmp(symbol->file, "="))
		symbol->file = *file;
	else
		*file = symbol->file;
	return true;
}

static uint64_t location_of(size_t module, uint64_t rva)
{
	return (uint64_t)module << 32 | rva;
}

static void read_line(struct name_cache *cache, size_t module, char *at, const char **file)
{
	struct symbol list[SYMBOL_CHAIN_MAX], *copy;
	uint32_t index = (uint32_t)cache->answer_count;
	size_t count = 0;
	uint64_t rva;

	if (!read_number(&at, UINT32_MAX, &rva))
		return;
	do {
		if (count == SYMBOL_CHAIN_MAX || !read_symbol(&at, file, &list[count++]))
			return;
	} while (at);
	copy = arena_alloc(&cache->arena, count * sizeof(*copy));
	memcpy(copy, list, count * sizeof(*copy));
	array_grow((void **)&cache->answers, &cache->answer_cap, cache->answer_count,
		sizeof(*cache->answers));
	/* A newer answer replaces an older answer for the same place. */
	cache->answer_count +=
		(size_t)u64map_add(&cache->locations, location_of(module, rva), &index);
	cache->answers[index] = (struct symbols){copy, count};
}

static void read_chunk(struct name_cache *cache, size_t module, const struct name_chunk *chunk)
{
	char *line = chunk->key + chunk->key_bytes + 1, *end = chunk->key + chunk->bytes, *line_end;
	const char *file = NULL;

	if (check_of(chunk->key, chunk->bytes) != chunk->check)
		return;
	for (; (line_end = memchr(line, '\n', (size_t)(end - line))); line = line_end + 1) {
		*line_end = '\0';
		read_line(cache, module, line, &file);
	}
}

/* Returns the number of the module with that key. Parses the module's chunks when the key is first
 * used. */
static size_t module_of(struct name_cache *cache, const char *key)
{
	size_t len, number = cache->module_count;
	const uint64_t *known;

	if (number && !strcmp(cache->modules[cache->last].key, key))
		return cache->last;
	len = strlen(key);
	known = table_find(&cache->numbers, key, len);
	if (known)
		return cache->last = (size_t)*known;
	table_add(&cache->numbers, key, len, number);
	array_grow((void **)&cache->modules, &cache->module_cap, number, sizeof(*cache->modules));
	cache->modules[number] = (struct cached_module){.key = arena_text(&cache->arena, key, len)};
	cache->module_count++;
	for (size_t i = 0; i < cache->chunk_count; i++) {
		if (cache->chunks[i].key_bytes == len && !memcmp(cache->chunks[i].key, key, len))
			read_chunk(cache, number, &cache->chunks[i]);
	}
	return cache->last = number;
}

bool name_cache_find(struct name_cache *cache, const char *key, uint32_t rva, struct symbols *found)
{
	uint32_t index;

	if (!cache ||
		!u64map_find(&cache->locations, location_of(module_of(cache, key), rva), &index))
		return false;
	*found = cache->answers[index];
	return true;
}

/* ---------------------------------------------------------------- adding */

static bool fits_field(const char *text)
{
	size_t len = 0;

	while (len < SYMBOL_TEXT_MAX && (unsigned char)text[len] >= ' ')
		len++;
	return !text[len];
}

/* Returns true if parsing the line would give back the same symbols. */
static bool fits_line(const char *key, const struct symbols *symbols)
{
	if (strchr(key, '\n') || !symbols->count || symbols->count > SYMBOL_CHAIN_MAX)
		return false;
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		if (!*symbol->function || !fits_field(symbol->function) ||
			(symbol->file && (!fits_field(symbol->file) || !strcmp(symbol->file, "="))))
			return false;
	}
	return true;
}

void name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols)
{
	struct cached_module *module;
	size_t before, number;
	struct buf *lines;

	/* Limit new names, so that they do not evict all others. */
	if (!cache || cache->added_bytes > cache->limit / 2 || !fits_line(key, symbols))
		return;
	number = module_of(cache, key);
	module = &cache->modules[number];
	lines = &module->lines;
	before = lines->len;
	if (!before) {
		buf_printf(lines, "%s\n", module->key);
		cache->added_bytes += HEAD_MAX;
	}
	buf_printf(lines, "%lx", (unsigned long)rva);
	for (size_t i = 0; i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];
		const char *file = symbol->file ? symbol->file : "";

		if (*file && module->file && !strcmp(file, module->file))
			file = "=";
		else if (*file)
			module->file = file;
		buf_printf(lines, "\t%s\t%llx\t%s\t%lx", symbol->function,
			(unsigned long long)symbol->offset_bytes, file,
			(unsigned long)symbol->line);
	}
	buf_add_text(lines, "\n");
	cache->added_bytes += lines->len - before;
}

/* Composes the text to write. If the new chunks fit into the file, the text consists of these
 * chunks, to be appended. Otherwise the text is a new content for the file: the newest old chunks,
 * then the new chunks. Returns the offset in the file at which to write the text; the file must end
 * after it. */
static size_t compose(const struct name_cache *cache, const struct buf *old, struct buf *text)
{
	size_t room = cache->limit / 4 * 3, at = old->len, from;

	if (!old->len || old->len + cache->added_bytes > cache->limit) {
		at = 0;
		room = room > cache->added_bytes ? room - cache->added_bytes : 0;
		from = next_mark(old, old->len > room ? old->len - room : 0);
		buf_add_text(text, FIRST_LINE);
		if (from < old->len)
			buf_add(text, old->data + from, old->len - from);
	}
	for (size_t i = 0; i < cache->module_count; i++) {
		const struct buf *lines = &cache->modules[i].lines;

		if (lines->len)
			buf_printf(text, MARK "%lx %zx %s",
				(unsigned long)check_of(lines->data, lines->len), lines->len,
				lines->data);
	}
	return at;
}

static void write_added(const struct name_cache *cache)
{
	struct buf old, text;
	struct os_file file;
	size_t at;

	if (!cache->added_bytes || own_file_lock(&file, cache->path))
		return;
	buf_init(&old);
	buf_init(&text);
	if (read_file(&file, cache->limit, &old) || cache->is_own_place || is_cache(&file)) {
		at = compose(cache, &old, &text);
		if (at + text.len <= cache->limit)
			own_file_cut(&file, own_file_write(&file, at, text.data, text.len) ?
						    at :
						    at + text.len);
	}
	buf_release(&old);
	buf_release(&text);
	os_close(&file);
}

void name_cache_close(struct name_cache *cache)
{
	if (!cache)
		return;
	write_added(cache);
	for (size_t i = 0; i < cache->module_count; i++)
		buf_release(&cache->modules[i].lines);
	free(cache->modules);
	free(cache->chunks);
	free(cache->answers);
	table_release(&cache->numbers);
	u64map_release(&cache->locations);
	arena_release(&cache->arena);
	buf_release(&cache->bytes);
	free(cache->path);
	free(cache);
}
