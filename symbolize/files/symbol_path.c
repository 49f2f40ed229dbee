#include "symbolize/files/symbol_path.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

/* A part of the text. */
struct part {
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

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool is_word(struct part part, const char *word)
{
	size_t i = 0;

	while (i < part.len && word[i] && lower(part.text[i]) == word[i])
		i++;
	return i == part.len && !word[i];
}

/* "https://..." and the like; one letter before a colon is a drive. */
static bool is_url(struct part part)
{
	size_t i = 0;

	while (i < part.len && is_letter(part.text[i]))
		i++;
	return i >= 2 && part.len - i >= 3 && !memcmp(part.text + i, "://", 3);
}

/* Without blanks and quotes around it. */
static struct part trimmed(struct part part)
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
static struct part take(struct part *rest, char mark)
{
	const char *end = rest->len ? memchr(rest->text, mark, rest->len) : NULL;
	struct part part = {rest->text, end ? (size_t)(end - rest->text) : rest->len};
	size_t used = part.len + (end != NULL);

	rest->text += used;
	rest->len -= used;
	return trimmed(part);
}

/* Keeps part as *text, unless there is one. */
static int name_first(struct symbol_path *path, const char **text, struct part part)
{
	if (!*text)
		*text = arena_text(&path->arena, part.text, part.len);
	return *text ? 0 : -ERR_NOMEM;
}

static int add_place(struct symbol_path *path, struct part part, bool is_store)
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
static int add_stores(struct symbol_path *path, struct part rest)
{
	int rc = 0;

	while (!rc && rest.len) {
		struct part part = take(&rest, '*');

		rc = is_url(part) ? name_first(path, &path->server, part) :
				    add_place(path, part, true);
	}
	return rc;
}

static int add_element(struct symbol_path *path, struct part element)
{
	struct part rest = element, kind = take(&rest, '*');
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
	struct part rest = {text, strlen(text)};
	int rc = 0;

	while (!rc && rest.len) {
		struct part element = take(&rest, ';');

		if (element.len)
			rc = add_element(path, element);
	}
	return rc;
}
