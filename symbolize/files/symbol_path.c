/* The symbol path: its parser, and the search for a file in one of its folders or stores. */
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/dump/model.h"
#include "symbolize/files/local_path.h"

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

bool local_is_remote(const char *path)
{
	path = local_plain(path);
	return (is_slash(path[0]) && is_slash(path[1])) || !strncmp(path, "\\??\\", 4) ||
	       !strncmp(path, "\\Device\\", 8) || local_leads_away(path);
}

/* ---------------------------------------------------------------- the text */

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

static bool is_word(struct path_part part, const char *word)
{
	return text_same(part.text, part.len, word, strlen(word));
}

/* Returns true for "https://..." and the like. A single letter before a colon is a drive, not a
 * URL. */
static bool is_url(struct path_part part)
{
	size_t i = 0;

	while (i < part.len && text_lower(part.text[i]) >= 'a' && text_lower(part.text[i]) <= 'z')
		i++;
	return i >= 2 && part.len - i >= 3 && !memcmp(part.text + i, "://", 3);
}

/* Removes the first part of `*rest`, which ends at the next mark. Returns that part without
 * surrounding blanks and quotes. */
static struct path_part next_part(struct path_part *rest, char mark)
{
	const char *end = rest->len ? memchr(rest->text, mark, rest->len) : NULL;
	struct path_part part = {rest->text, end ? (size_t)(end - rest->text) : rest->len};
	size_t used = part.len + (end != NULL);

	rest->text += used;
	rest->len -= used;
	while (part.len && strchr(" \t\"", part.text[0])) {
		part.text++;
		part.len--;
	}
	while (part.len && strchr(" \t\"", part.text[part.len - 1]))
		part.len--;
	return part;
}

/* Sets *text to a copy of `part`, unless *text is already set. */
static void name_first(struct symbol_path *path, const char **text, struct path_part part)
{
	if (!*text)
		*text = arena_text(&path->arena, part.text, part.len);
}

static void add_place(struct symbol_path *path, struct path_part part, bool is_store)
{
	struct buf key;

	if (!part.len)
		return;
	buf_init(&key);
	buf_printf(&key, "%d", is_store);
	buf_add(&key, part.text, part.len);
	if (!table_find(&path->known, key.data, key.len)) {
		table_add(&path->known, key.data, key.len, 0);
		array_grow((void **)&path->places, &path->cap, path->count, sizeof(*path->places));
		path->places[path->count++] =
			(struct symbol_place){.path = arena_text(&path->arena, part.text, part.len),
				.is_store = is_store};
	}
	buf_release(&key);
}

static void add_element(struct symbol_path *path, struct path_part element)
{
	struct path_part rest = element, kind = next_part(&rest, '*');
	bool is_plain = kind.len == element.len, is_cache = is_word(kind, "cache");

	if (is_plain) {
		if (is_url(element))
			name_first(path, &path->server, element);
		else
			add_place(path, element, false);
		return;
	}
	if (is_word(kind, "symsrv")) {
		next_part(&rest, '*'); /* skip the name of the DLL to query */
	} else if (!is_word(kind, "srv") && !is_cache) {
		name_first(path, &path->strange, element);
		return;
	}
	/* An element without store and server means the system's defaults. */
	if (!rest.len && !is_cache)
		name_first(path, &path->server, element);
	while (rest.len) {
		struct path_part part = next_part(&rest, '*');

		if (is_url(part))
			name_first(path, &path->server, part);
		else
			add_place(path, part, true);
	}
}

void symbol_path_parse(struct symbol_path *path, const char *text)
{
	struct path_part rest = {text, strlen(text)};

	while (rest.len) {
		struct path_part element = next_part(&rest, ';');

		if (element.len)
			add_element(path, element);
	}
}

/* ---------------------------------------------------------------- the places */

struct path_visit {
	struct local_paths *paths;
	const struct store_question *question;
	const char *packed; /* name of the file if it is compressed */
	struct buf here;
};

/* Walks from `root` along three relative paths, each of which may be empty. Returns the kind of the
 * final path. */
static enum local_kind go(struct path_visit *visit, const char *root, const char *first,
	const char *second, const char *third)
{
	const char *const names[] = {first, second, third};
	enum local_kind kind = LOCAL_FOLDER;

	buf_clear(&visit->here);
	buf_add_text(&visit->here, root);
	for (size_t i = 0; kind == LOCAL_FOLDER && i < 3; i++)
		kind = local_below(visit->paths, &visit->here, names[i]);
	return kind;
}

/* Passes the file in a folder to the callback, or reports that the file is compressed. */
static bool look_in(
	struct path_visit *visit, const char *root, const char *first, const char *second)
{
	const struct store_question *question = visit->question;

	if (go(visit, root, first, second, question->name) == LOCAL_FILE)
		return question->use(question->ctx, visit->here.data);
	if (go(visit, root, first, second, visit->packed) == LOCAL_FILE)
		question->is_packed(
			question->ctx, visit->here.data, "is compressed: unpack it with expand");
	return false;
}

/* Searches in the folders symbols/EXT and EXT, where EXT is the extension of `name`. */
static bool look_in_kinds(struct path_visit *visit, const char *root, const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot[1] &&
	       (look_in(visit, root, "symbols", dot + 1) || look_in(visit, root, dot + 1, ""));
}

static bool look_in_tier(struct path_visit *visit, const char *root, const char *tier)
{
	const struct store_question *question = visit->question;
	bool is_taken;
	char *folder;

	if (go(visit, root, tier, question->name, question->key) != LOCAL_FOLDER)
		return false;
	folder = xstrdup(visit->here.data);
	is_taken = look_in(visit, folder, "", "");
	if (!is_taken && go(visit, folder, "file.ptr", "", "") == LOCAL_FILE)
		question->is_packed(question->ctx, visit->here.data,
			"only points to the file: copy the file here");
	free(folder);
	return is_taken;
}

bool store_search(struct local_paths *paths, const struct symbol_place *place,
	const struct store_question *question)
{
	struct path_visit visit = {.paths = paths, .question = question};
	const char *name = question->name, *root = place->root, *end = name;
	char *packed, *tier;
	uint32_t code;
	bool is_taken;

	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || strpbrk(name, "/\\"))
		return false;
	packed = xstrdup(name);
	packed[strlen(name) - 1] = '_';
	for (int i = 0; i < 2 && *end; i++) { /* skip the first two letters */
		size_t len = text_utf8(end, &code);

		end += len ? len : 1;
	}
	tier = xstrdup(name);
	tier[end - name] = '\0';
	visit.packed = packed;
	buf_init(&visit.here);
	is_taken = !place->is_store &&
		   (look_in(&visit, root, "", "") ||
			   look_in_kinds(&visit, root, module_path_base(question->image)) ||
			   look_in_kinds(&visit, root, name));
	if (!is_taken && question->key)
		is_taken = look_in_tier(&visit, root, "") || look_in_tier(&visit, root, tier);
	buf_release(&visit.here);
	free(packed);
	free(tier);
	return is_taken;
}
