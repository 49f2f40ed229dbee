#include "symbolize/cache/name_cache.h"

struct name_cache *name_cache_open(const char *path)
{
	(void)path;
	return NULL;
}

int name_cache_find(struct name_cache *cache, const char *key, uint32_t rva, struct arena *arena,
	struct symbols *found)
{
	(void)cache;
	(void)key;
	(void)rva;
	(void)arena;
	(void)found;
	return 0;
}

int name_cache_add(
	struct name_cache *cache, const char *key, uint32_t rva, const struct symbols *symbols)
{
	(void)cache;
	(void)key;
	(void)rva;
	(void)symbols;
	return 0;
}

void name_cache_close(struct name_cache *cache)
{
	(void)cache;
}
