#include "symbolize/keep.h"

#include <string.h>

#include "core/text.h"

static const char *text_keep(struct arena *arena, const char *text)
{
	const char *end = memchr(text, '\0', SYMBOL_TEXT_MAX + 1);
	size_t len = end ? (size_t)(end - text) : SYMBOL_TEXT_MAX;
	char *copy;

	if (!end) {
		while (len &&
			((unsigned char)text[len] & 0xc0) == 0x80) /* not inside a character */
			len--;
	}
	copy = arena_text(arena, text, len);
	return copy ? text_harmless(copy) : NULL;
}

int symbols_keep(struct arena *arena, const struct symbol *list, size_t count, struct symbols *kept)
{
	struct symbol *copy = arena_alloc(arena, count * sizeof(*copy));

	if (!copy)
		return -ERR_NOMEM;
	for (size_t i = 0; i < count; i++) {
		copy[i] = list[i];
		copy[i].function = text_keep(arena, list[i].function);
		if (list[i].file)
			copy[i].file = text_keep(arena, list[i].file);
		if (!copy[i].function || (list[i].file && !copy[i].file))
			return -ERR_NOMEM;
	}
	*kept = (struct symbols){.list = copy, .count = count};
	return 0;
}
