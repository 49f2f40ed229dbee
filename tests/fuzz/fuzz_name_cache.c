#define _GNU_SOURCE /* memmem() */
/* The names cache. The text that it returns contains no control characters, and is found again
 * after more names were added. The mutator corrects the checksums of chunks, so that the fuzzer
 * reaches the code after them. */
#include "tests/fuzz/fuzz.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "symbolize/lookup/lookup.h"
#include "symbolize/names.h"

#define MARK "\nmodule "
#define LIMIT_BYTES ((size_t)1 << 20)

static const char *behind_field(const char *at, const char *end)
{
	while (at < end && *at != ' ' && *at != '\n')
		at++;
	return at;
}

static uint32_t check_of(const char *bytes, size_t len)
{
	static const struct hash_key key = {{1, 2}};
	struct hasher hasher = hasher_begin(&key);

	hasher_add_bytes(&hasher, bytes, len);
	return hasher_end(&hasher);
}

/* Appends the chunk with a corrected head, "CHECK BYTES ". end: start of the next chunk. */
static void mend_chunk(struct buf *to, const char *at, const char *end)
{
	const char *check_end = behind_field(at, end), *key;

	key = check_end < end ? behind_field(check_end + 1, end) : end;
	key += key < end;
	buf_printf(to, MARK "%x %zx ", check_of(key, (size_t)(end - key)), (size_t)(end - key));
	buf_add(to, key, (size_t)(end - key));
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max, unsigned seed)
{
	struct buf mended = {0};
	char *at, *end, *next;

	len = LLVMFuzzerMutate(bytes, len, max);
	if (seed % 8 == 0)
		return len;
	at = (char *)bytes;
	end = at + len;
	buf_add(&mended, "hsnap's names 2\n", 16);
	at = memmem(at, len, MARK, strlen(MARK));
	for (; at; at = next) {
		at += strlen(MARK);
		next = memmem(at, (size_t)(end - at), MARK, strlen(MARK));
		mend_chunk(&mended, at, next ? next : end);
	}
	if (mended.len <= max) {
		memcpy(bytes, mended.data, mended.len);
		len = mended.len;
	}
	buf_release(&mended);
	return len;
}

static bool is_sound(const struct symbols *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct symbol *symbol = &found->list[i];

		if (!symbol->function[0] || strlen(symbol->function) > SYMBOL_TEXT_MAX ||
			!fuzz_is_harmless(symbol->function, strlen(symbol->function)) ||
			(symbol->file && !fuzz_is_harmless(symbol->file, strlen(symbol->file))))
			return false;
	}
	return found->count > 0 && found->count <= SYMBOL_CHAIN_MAX;
}

/* Looks up a few addresses of each module in the file; returns how many were found. */
static size_t ask(struct name_cache *cache, const uint8_t *bytes, size_t len)
{
	const char *at = (const char *)bytes, *end = at + len, *key;
	size_t known = 0, chunks = 0;

	while ((at = memmem(at, (size_t)(end - at), MARK, strlen(MARK))) && chunks++ < 8) {
		const char *line_end;
		struct symbols found;
		char *text;

		at += strlen(MARK);
		line_end = memchr(at, '\n', (size_t)(end - at));
		key = behind_field(at, end);
		key = key < end ? behind_field(key + 1, end) : end;
		if (!line_end || key >= line_end)
			continue;
		text = xcalloc(1, (size_t)(line_end - key) + 1);
		memcpy(text, key + 1, (size_t)(line_end - key) - 1);
		for (uint32_t rva = 0; rva < 32; rva++) {
			if (!name_cache_find(cache, text, rva, &found))
				continue;
			HOLDS(is_sound(&found));
			known++;
		}
		free(text);
	}
	return known;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct symbol symbol = {.function = "added", .offset_bytes = 1};
	static const struct symbols added = {&symbol, 1};
	const char *path = fuzz_file(0, bytes, len);
	struct name_cache *cache = name_cache_open(path, LIMIT_BYTES);
	struct symbols found;
	size_t known;

	HOLDS(cache);
	known = ask(cache, bytes, len);
	name_cache_add(cache, "a key that nobody has", 1, &added);
	name_cache_close(cache);
	cache = name_cache_open(path, LIMIT_BYTES);
	if (name_cache_find(cache, "a key that nobody has", 1, &found))
		HOLDS(ask(cache, bytes, len) >= known && !strcmp(found.list[0].function, "added"));
	name_cache_close(cache);
	return 0;
}
