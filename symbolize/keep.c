#include "symbolize/keep.h"

#include <string.h>

static const char *text_keep(struct arena *arena, const char *text)
{
	size_t len = strlen(text);
	char *copy;

	if (len > SYMBOL_TEXT_MAX) {
		len = SYMBOL_TEXT_MAX;
		while (len &&
			((unsigned char)text[len] & 0xc0) == 0x80) /* not inside a character */
			len--;
	}
	copy = arena_text(arena, text, len);
	for (char *c = copy; c && *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
	return copy;
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
