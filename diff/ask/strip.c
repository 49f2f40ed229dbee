#include "diff/ask/strip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diff/ask/glob.h"
#include "diff/ask/listfile.h"

struct strip_glob {
	const char *module, *function;
};

void strip_init(struct strip *strip)
{
	*strip = (struct strip){0};
	arena_init(&strip->arena);
	table_init(&strip->known);
	buf_init(&strip->name);
}

void strip_release(struct strip *strip)
{
	free(strip->globs);
	arena_release(&strip->arena);
	table_release(&strip->known);
	buf_release(&strip->name);
	strip_init(strip);
}

static int strip_add(struct strip *strip, const char *text, struct err *err)
{
	size_t len = strcspn(text, "!");
	struct strip_glob glob;

	if (!len || !text[len] || !text[len + 1])
		return err_set(err, ERR_USAGE, NULL, "a line is MODULE!FUNCTION");
	glob.module = arena_text(&strip->arena, text, len);
	glob.function = arena_text(&strip->arena, text + len + 1, strlen(text + len + 1));
	if (!glob.module || !glob.function ||
		array_grow((void **)&strip->globs, &strip->cap, strip->count, sizeof(glob)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	strip->globs[strip->count++] = glob;
	return 0;
}

int strip_add_known(struct strip *strip, struct err *err)
{
	int rc = 0;

	for (const char *const *at = allocators; !rc && *at; at++)
		rc = strip_add(strip, *at, err);
	return rc;
}

static int take_line(void *ctx, const char *text, const char *place, struct err *err)
{
	int rc = strip_add(ctx, text, err);

	return rc == -ERR_USAGE ? err_set(err, ERR_USAGE, place, "a line is MODULE!FUNCTION") : rc;
}

int strip_add_file(struct strip *strip, const char *path, struct err *err)
{
	return listfile_read(path, take_line, strip, err);
}

static bool is_listed(const struct strip *strip, const struct frame *frame)
{
	const char *module = frame->module ? frame->module : "";
	/* What a template of the program's results in may be a type of the library. */
	const char *function = frame->function ? function_own(frame->function) : "";

	for (size_t i = 0; i < strip->count; i++) {
		if (glob_match(strip->globs[i].module, module, true) &&
			glob_match(strip->globs[i].function, function, false))
			return true;
	}
	return false;
}

/* 1, 0 or -ERR_NOMEM. */
static int is_layer(struct strip *strip, const struct frame *frame)
{
	const uint64_t *known;
	bool is;

	/* A frame without a name is one of many addresses, which are not worth remembering. */
	if (!frame->function)
		return is_listed(strip, frame);
	if (frame_name(frame, &strip->name))
		return -ERR_NOMEM;
	known = table_find(&strip->known, strip->name.data, strip->name.len);
	if (known)
		return (int)*known;
	is = is_listed(strip, frame);
	if (table_add(&strip->known, strip->name.data, strip->name.len, is))
		return -ERR_NOMEM;
	return is;
}

/* The first frame of from..to that stays. 0 or -ERR_NOMEM. */
static int skip_layers(
	struct strip *strip, const struct frames *frames, size_t from, size_t to, size_t *first)
{
	int is = 1;

	while (from + 1 < to && (is = is_layer(strip, &frames->items[from])) > 0)
		from++;
	*first = from;
	return is < 0 ? is : 0;
}

int strip_frames(struct strip *strip, struct frames *frames)
{
	size_t kept = 0, from = 0;

	for (size_t part = 0; part <= frames->part_count; part++) {
		size_t to = part < frames->part_count ? frames->part_at[part] : frames->count;
		size_t first;

		if (skip_layers(strip, frames, from, to, &first))
			return -ERR_NOMEM;
		if (part)
			frames->part_at[part - 1] = kept;
		for (size_t i = first; i < to; i++)
			frames->items[kept++] = frames->items[i];
		from = to;
	}
	frames->count = kept;
	return 0;
}
