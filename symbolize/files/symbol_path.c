#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "symbolize/files/find_parts.h"

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

static char folded(char c)
{
	if (c == '\\')
		return '/';
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int path_map_parse(struct path_map *map, const char *text, struct err *err)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (!len || !equals[1])
		return err_set(err, ERR_USAGE, text, "a map is FROM=TO, as C:\\build=D:\\build");
	while (len && is_slash(text[len - 1]))
		len--;
	*map = (struct path_map){.from = text, .from_len = len, .to = equals + 1};
	return 0;
}

const char *path_map_rest(const struct path_map *map, const char *path)
{
	size_t len = map->from_len;

	for (size_t i = 0; i < len; i++) {
		if (!path[i] || folded(map->from[i]) != folded(path[i]))
			return NULL;
	}
	if (path[len] && !is_slash(path[len]))
		return NULL;
	while (is_slash(path[len]))
		len++;
	return path + len;
}

/* A part of the text. */
struct path_part {
	const char *text;
	size_t len;
};

void symbol_path_init(struct symbol_path *path)
{
	*path = (struct symbol_path){0};
	arena_init(&path->arena);
	table_init(&path->known);
}

void symbol_path_release(struct symbol_path *path)
{
	free(path->places);
	arena_release(&path->arena);
	table_release(&path->known);
	*path = (struct symbol_path){0};
}

static bool is_letter(char c)
{
	return text_lower(c) >= 'a' && text_lower(c) <= 'z';
}

static bool is_word(struct path_part part, const char *word)
{
	return text_same(part.text, part.len, word, strlen(word));
}

/* "https://..." and the like; one letter before a colon is a drive. */
static bool is_url(struct path_part part)
{
	size_t i = 0;

	while (i < part.len && is_letter(part.text[i]))
		i++;
	return i >= 2 && part.len - i >= 3 && !memcmp(part.text + i, "://", 3);
}

/* Without blanks and quotes around it. */
static struct path_part trimmed(struct path_part part)
{
	while (part.len && strchr(" \t\"", part.text[0])) {
		part.text++;
		part.len--;
	}
	while (part.len && strchr(" \t\"", part.text[part.len - 1]))
		part.len--;
	return part;
}

/* Takes the part up to the next mark off the front of *rest. */
static struct path_part take(struct path_part *rest, char mark)
{
	const char *end = rest->len ? memchr(rest->text, mark, rest->len) : NULL;
	struct path_part part = {rest->text, end ? (size_t)(end - rest->text) : rest->len};
	size_t used = part.len + (end != NULL);

	rest->text += used;
	rest->len -= used;
	return trimmed(part);
}

/* Keeps part as *text, unless there is one. */
static int name_first(struct symbol_path *path, const char **text, struct path_part part)
{
	if (!*text)
		*text = arena_text(&path->arena, part.text, part.len);
	return *text ? 0 : -ERR_NOMEM;
}

static int add_place(struct symbol_path *path, struct path_part part, bool is_store)
{
	struct buf key;
	int rc;

	if (!part.len)
		return 0;
	buf_init(&key);
	rc = buf_printf(&key, "%d", is_store);
	if (!rc)
		rc = buf_add(&key, part.text, part.len);
	if (!rc && !table_find(&path->known, key.data, key.len)) {
		const char *text = arena_text(&path->arena, part.text, part.len);

		rc = text ? array_grow((void **)&path->places, &path->cap, path->count,
				    sizeof(*path->places)) :
			    -ERR_NOMEM;
		if (!rc)
			rc = table_add(&path->known, key.data, key.len, 0);
		if (!rc)
			path->places[path->count++] = (struct symbol_place){text, is_store};
	}
	buf_release(&key);
	return rc;
}

/* What stands behind "srv*" and the like: stores, and servers at the end. */
static int add_stores(struct symbol_path *path, struct path_part rest)
{
	int rc = 0;

	while (!rc && rest.len) {
		struct path_part part = take(&rest, '*');

		rc = is_url(part) ? name_first(path, &path->server, part) :
				    add_place(path, part, true);
	}
	return rc;
}

static int add_element(struct symbol_path *path, struct path_part element)
{
	struct path_part rest = element, kind = take(&rest, '*');
	bool is_plain = kind.len == element.len;

	if (is_plain)
		return is_url(element) ? name_first(path, &path->server, element) :
					 add_place(path, element, false);
	if (is_word(kind, "symsrv"))
		take(&rest, '*'); /* the DLL that asks */
	else if (!is_word(kind, "srv") && !is_word(kind, "cache"))
		return name_first(path, &path->strange, element);
	/* To name neither store nor server means those that the system has set. */
	if (!rest.len && !is_word(kind, "cache"))
		return name_first(path, &path->server, element);
	return add_stores(path, rest);
}

int symbol_path_parse(struct symbol_path *path, const char *text)
{
	struct path_part rest = {text, strlen(text)};
	int rc = 0;

	while (!rc && rest.len) {
		struct path_part element = take(&rest, ';');

		if (element.len)
			rc = add_element(path, element);
	}
	return rc;
}

struct path_visit {
	struct local_paths *paths;
	const struct store_question *question;
	struct buf here;
};

/* Goes to first/second, either of which may be empty, below root. An enum local_kind or -ERR_NOMEM. */
static int go(struct path_visit *visit, const char *root, const char *first, const char *second)
{
	int rc;

	buf_clear(&visit->here);
	rc = buf_add_text(&visit->here, root);
	if (!rc)
		rc = local_below(visit->paths, &visit->here, first);
	return rc == LOCAL_FOLDER ? local_below(visit->paths, &visit->here, second) : rc;
}

/* Hands on the file of that name in a folder, or says that it is packed. */
static int look_in(struct path_visit *visit, const char *folder, const char *below)
{
	const struct store_question *question = visit->question;
	size_t len = strlen(question->name);
	struct buf packed;
	int rc = go(visit, folder, below, question->name);

	if (rc == LOCAL_FILE)
		return question->use(question->ctx, visit->here.data);
	if (rc < 0)
		return rc;
	buf_init(&packed);
	rc = buf_add_text(&packed, question->name);
	if (!rc) {
		packed.data[len - 1] = '_';
		rc = go(visit, folder, below, packed.data);
	}
	buf_release(&packed);
	if (rc == LOCAL_FILE)
		rc = question->is_packed(
			question->ctx, visit->here.data, "is compressed: unpack it with expand");
	return rc < 0 ? rc : 0;
}

/* In symbols/EXT and EXT, name ending in EXT. */
static int look_in_kinds(struct path_visit *visit, const char *root, const char *name)
{
	const char *extension = strrchr(name, '.');
	struct buf below;
	int rc;

	if (!extension || !extension[1])
		return 0;
	buf_init(&below);
	rc = buf_printf(&below, "symbols/%s", extension + 1);
	if (!rc)
		rc = look_in(visit, root, below.data);
	if (!rc)
		rc = look_in(visit, root, below.data + strlen("symbols/"));
	buf_release(&below);
	return rc;
}

static int look_in_folder(struct path_visit *visit, const char *root)
{
	int rc = look_in(visit, root, "");

	if (!rc)
		rc = look_in_kinds(visit, root, module_path_base(visit->question->image));
	if (!rc)
		rc = look_in_kinds(visit, root, visit->question->name);
	return rc;
}

/* In the folder of one build, which is there. */
static int look_in_build(struct path_visit *visit, const char *folder)
{
	int rc = look_in(visit, folder, "");

	if (rc)
		return rc;
	rc = go(visit, folder, "file.ptr", "");
	return rc == LOCAL_FILE ? visit->question->is_packed(visit->question->ctx, visit->here.data,
					  "only points to the file: copy that here") :
	       rc < 0		? rc :
				  0;
}

static int look_in_tier(struct path_visit *visit, const char *root, const char *tier)
{
	struct buf below, folder;
	int rc;

	buf_init(&below);
	buf_init(&folder);
	rc = buf_printf(&below, "%s/%s/%s", tier, visit->question->name, visit->question->key);
	if (!rc)
		rc = go(visit, root, below.data, "");
	if (rc == LOCAL_FOLDER) {
		rc = buf_add_text(&folder, visit->here.data);
		if (!rc)
			rc = look_in_build(visit, folder.data);
	} else if (rc > 0) {
		rc = 0;
	}
	buf_release(&below);
	buf_release(&folder);
	return rc;
}

/* The tier's name is the first two letters of the file's. */
static int look_in_store(struct path_visit *visit, const char *root)
{
	const char *end = visit->question->name;
	struct buf tier;
	uint32_t code;
	int rc = look_in_tier(visit, root, "");

	if (rc)
		return rc;
	for (int i = 0; i < 2 && *end; i++) {
		size_t len = text_utf8(end, &code);

		end += len ? len : 1;
	}
	buf_init(&tier);
	rc = buf_add(&tier, visit->question->name, (size_t)(end - visit->question->name));
	if (!rc)
		rc = look_in_tier(visit, root, tier.data);
	buf_release(&tier);
	return rc;
}

int store_search(struct local_paths *paths, const char *root, bool is_store,
	const struct store_question *question)
{
	struct path_visit visit = {.paths = paths, .question = question};
	const char *name = question->name;
	int rc = 0;

	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/\\"))
		return 0;
	buf_init(&visit.here);
	if (!is_store)
		rc = look_in_folder(&visit, root);
	if (!rc && question->key)
		rc = look_in_store(&visit, root);
	buf_release(&visit.here);
	return rc;
}
