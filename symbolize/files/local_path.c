#include "symbolize/files/local_path.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/io/file.h"

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

const char *local_plain(const char *path)
{
	bool is_long = !strncmp(path, "\\\\?\\", 4) || !strncmp(path, "\\??\\", 4);

	return is_long && path[4] && path[5] == ':' ? path + 4 : path;
}

bool local_is_remote(const char *path)
{
	path = local_plain(path);
	return (is_slash(path[0]) && is_slash(path[1])) || !strncmp(path, "\\??\\", 4) ||
	       !strncmp(path, "\\Device\\", 8) || local_leads_away(path);
}

#define IS_WHOLE (UINT64_C(1) << 63) /* set in a folder's number: all its names are kept */

struct folder_names {
	struct table folders; /* path -> its number */
	struct table names; /* number and folded name -> spelling, a pointer */
	struct arena arena;
	struct buf key;
	size_t names_max;
};

struct folder_names *folder_names_new(size_t names_max)
{
	struct folder_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	table_init(&names->folders);
	table_init(&names->names);
	arena_init(&names->arena);
	buf_init(&names->key);
	names->names_max = names_max;
	return names;
}

void folder_names_free(struct folder_names *names)
{
	if (!names)
		return;
	table_release(&names->folders);
	table_release(&names->names);
	arena_release(&names->arena);
	buf_release(&names->key);
	free(names);
}

static int make_key(struct folder_names *names, uint64_t folder, const char *name)
{
	int rc;

	buf_clear(&names->key);
	rc = buf_add(&names->key, &folder, sizeof(folder));
	if (!rc)
		rc = buf_add_text(&names->key, name);
	for (size_t i = sizeof(folder); !rc && i < names->key.len; i++) {
		char *c = &names->key.data[i];

		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	}
	return rc;
}

struct folder_reading {
	struct folder_names *names;
	uint64_t folder;
};

/* 1 when no more names may be kept. */
static int keep_name(void *ctx, const struct folder_entry *entry)
{
	const struct folder_reading *reading = ctx;
	const char *name = entry->name;
	struct folder_names *names = reading->names;
	int rc = make_key(names, reading->folder, name);
	uint64_t *known = rc ? NULL : table_find(&names->names, names->key.data, names->key.len);
	char *spelling;

	if (rc || (known && strcmp((const char *)(uintptr_t)*known, name) <= 0))
		return rc;
	if (!known && names->names.count >= names->names_max)
		return 1;
	spelling = arena_text(&names->arena, name, strlen(name));
	if (!spelling)
		return -ERR_NOMEM;
	if (!known)
		return table_add(&names->names, names->key.data, names->key.len,
			(uint64_t)(uintptr_t)spelling);
	*known = (uint64_t)(uintptr_t)spelling;
	return 0;
}

/* Reads a folder; one that cannot be read holds nothing that is known. Returns 1 when all its names are
 * kept, 0 or -ERR_NOMEM. */
static int read_folder(struct folder_names *names, const char *path, uint64_t folder)
{
	struct folder_reading reading = {names, folder};
	int rc = folder_each(path, FOLDER_NAMES, keep_name, &reading, NULL);

	return rc == -ERR_NOMEM ? rc : !rc;
}

static int number_of(struct folder_names *names, const char *path, uint64_t *folder)
{
	uint64_t *known = table_find(&names->folders, path, strlen(path));
	uint64_t number = names->folders.count;
	int rc;

	if (known) {
		*folder = *known & ~IS_WHOLE;
		return 0;
	}
	rc = read_folder(names, path, number);
	if (rc >= 0)
		rc = table_add(&names->folders, path, strlen(path), number | (rc ? IS_WHOLE : 0));
	if (!rc)
		*folder = number;
	return rc;
}

bool folder_names_lack(struct folder_names *names, const char *folder, const char *name)
{
	uint64_t *number = table_find(&names->folders, folder, strlen(folder));

	if (!number || !(*number & IS_WHOLE) || make_key(names, *number & ~IS_WHOLE, name))
		return false;
	return !table_find(&names->names, names->key.data, names->key.len);
}

int folder_names_find(
	struct folder_names *names, const char *folder, const char *name, const char **spelling)
{
	uint64_t number, *known;
	int rc = number_of(names, folder, &number);

	if (!rc)
		rc = make_key(names, number, name);
	if (rc)
		return rc;
	known = table_find(&names->names, names->key.data, names->key.len);
	if (known)
		*spelling = (const char *)(uintptr_t)*known;
	return known != NULL;
}
