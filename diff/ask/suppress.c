#include "diff/ask/suppress.h"

#include <stdlib.h>
#include <string.h>

#include "diff/ask/filter.h"
#include "diff/ask/glob.h"
#include "diff/ask/listfile.h"

static const char type[] = "leak:";

void suppressions_init(struct suppressions *suppressions)
{
	*suppressions = (struct suppressions){0};
	arena_init(&suppressions->arena);
	table_init(&suppressions->known);
}

void suppressions_release(struct suppressions *suppressions)
{
	free(suppressions->items);
	arena_release(&suppressions->arena);
	table_release(&suppressions->known);
	suppressions_init(suppressions);
}

/* What is the same for a whole text: "*PATTERN*" without the anchors. NULL: out of memory. */
static const char *glob_of(struct arena *arena, const char *pattern)
{
	size_t len = strlen(pattern), at = 0;
	bool from_start = pattern[0] == '^', to_end = len && pattern[len - 1] == '$';
	char *glob = arena_alloc(arena, len + 3);

	if (!glob)
		return NULL;
	if (!from_start)
		glob[at++] = '*';
	memcpy(glob + at, pattern + from_start, len - from_start);
	at += len - from_start;
	at -= to_end;
	if (!to_end)
		glob[at++] = '*';
	glob[at] = '\0';
	return glob;
}

static int take_line(void *ctx, const char *text, const char *place, struct err *err)
{
	struct suppressions *to = ctx;
	const char *pattern = text + sizeof(type) - 1;
	struct suppression made = {0};

	if (strncmp(text, type, sizeof(type) - 1) != 0)
		return err_set(err, ERR_USAGE, place, "a suppression is leak:PATTERN");
	if (!pattern[strspn(pattern, "^*$")])
		return err_set(err, ERR_USAGE, place, "this would suppress everything");
	made.text = arena_text(&to->arena, text, strlen(text));
	made.place = arena_text(&to->arena, place, strlen(place));
	made.glob = glob_of(&to->arena, pattern);
	if (!made.text || !made.place || !made.glob ||
		array_grow((void **)&to->items, &to->cap, to->count, sizeof(made)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	to->items[to->count++] = made;
	return 0;
}

int suppressions_add_file(struct suppressions *suppressions, const char *path, struct err *err)
{
	return listfile_read(path, take_line, suppressions, err);
}

/* Lowers *first to the first suppression that text matches. */
static int match_text(struct suppressions *suppressions, const char *text, size_t *first)
{
	size_t len = strlen(text), index = 0;
	const uint64_t *known = table_find(&suppressions->known, text, len);

	if (known)
		index = (size_t)*known;
	else
		while (index < suppressions->count &&
			!glob_match(suppressions->items[index].glob, text, false))
			index++;
	if (!known && table_add(&suppressions->known, text, len, index))
		return -ERR_NOMEM;
	if (index < *first)
		*first = index;
	return 0;
}

int suppressions_match(struct suppressions *suppressions, const struct comparison *comparison,
	const struct row *row, const struct frames *frames, size_t *index)
{
	size_t first = suppressions->count;
	int rc = 0;

	for (size_t i = 0; !rc && first && i < frames->count; i++) {
		const struct frame *frame = &frames->items[i];
		const char *const texts[] = {frame->function, frame->file, frame->module,
			frame_module_file(comparison, row, frame)};

		for (size_t k = 0; !rc && k < sizeof(texts) / sizeof(*texts); k++)
			rc = texts[k] ? match_text(suppressions, texts[k], &first) : 0;
	}
	if (!rc)
		*index = first;
	return rc;
}

void suppression_use(struct suppression *suppression, const struct delta *delta)
{
	suppression->row_count++;
	suppression->requested_bytes += delta->requested_bytes;
	suppression->block_count += delta->block_count;
}
