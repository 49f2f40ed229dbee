#include "diff/query/naming.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/locations.h"
#include "diff/read/frame.h"

#define MISSING_MAX 4 /* modules that are named */

struct shown_functions {
	struct table known; /* to where they are in the arena */
	struct arena arena;
	struct buf text;
};

/* A module's file name without folder and extension: its length, and where it starts in *name. */
static size_t short_name(const struct module *module, const char **name)
{
	const char *dot;

	*name = module_path_base(module->path);
	dot = strrchr(*name, '.');
	return dot && dot > *name ? (size_t)(dot - *name) : strlen(*name);
}

static int name_dump_modules(
	struct naming *naming, const struct dump_sums *dump, const char ***names)
{
	*names = arena_alloc(&naming->arena, dump->module_count * sizeof(**names) + 1);
	for (size_t i = 0; *names && i < dump->module_count; i++) {
		const char *name;
		size_t len = short_name(&dump->modules[i], &name);

		(*names)[i] = arena_text(&naming->arena, name, len);
		if (!(*names)[i])
			return -ERR_NOMEM;
	}
	return *names ? 0 : -ERR_NOMEM;
}

static int read_dump_texts(
	struct naming *naming, const struct dump_sums *dump, struct frame **frames)
{
	int rc = 0;

	*frames = arena_alloc(&naming->arena, dump->text_count * sizeof(**frames) + 1);
	for (size_t i = 0; *frames && !rc && i < dump->text_count; i++)
		rc = frame_parse(
			&(*frames)[i], &naming->arena, dump->texts[i], strlen(dump->texts[i]));
	return *frames ? rc : -ERR_NOMEM;
}

static int read_dumps(struct naming *naming)
{
	const struct comparison *comparison = naming->comparison;
	size_t bytes = comparison->dump_count * sizeof(void *) + 1;
	int rc = 0;

	naming->modules = arena_alloc(&naming->arena, bytes);
	naming->texts = arena_alloc(&naming->arena, bytes);
	if (!naming->modules || !naming->texts)
		return -ERR_NOMEM;
	for (size_t i = 0; !rc && comparison->dumps && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (i && dump->modules == dump[-1].modules) /* lent to both */
			naming->modules[i] = naming->modules[i - 1];
		else
			rc = name_dump_modules(naming, dump, &naming->modules[i]);
		if (!rc)
			rc = read_dump_texts(naming, &comparison->dumps[i], &naming->texts[i]);
	}
	return rc;
}

int naming_make(
	struct naming *naming, const struct comparison *comparison, bool by_name, struct err *err)
{
	*naming =
		(struct naming){.comparison = comparison, .by_name = by_name && comparison->dumps};
	arena_init(&naming->arena);
	naming->is_asked = calloc(comparison->row_count + 1, sizeof(*naming->is_asked));
	naming->shown = calloc(1, sizeof(*naming->shown));
	if (!naming->is_asked || !naming->shown || read_dumps(naming))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	table_init(&naming->shown->known);
	arena_init(&naming->shown->arena);
	buf_init(&naming->shown->text);
	return 0;
}

static int want_stack(const struct comparison *comparison, const struct dump_sums *dump,
	const struct stack *stack)
{
	size_t number = (size_t)(dump - comparison->dumps);
	uint32_t depth = location_depth(comparison->places, number, stack);
	int rc = 0;

	for (uint32_t i = 0; !rc && !stack->is_named && i < depth; i++)
		rc = names_want(comparison->names, number, stack->frames[i]);
	return rc;
}

int naming_find(struct naming *naming, const uint32_t *rows, size_t count, struct err *err)
{
	const struct comparison *comparison = naming->comparison;

	if (!naming->by_name)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &comparison->rows[rows[i]];

		if (naming->is_asked[rows[i]] || !row->stack)
			continue;
		if (want_stack(comparison, row->dump, row->stack))
			return err_set(err, ERR_NOMEM, NULL, NULL);
		naming->is_asked[rows[i]] = true;
	}
	return names_resolve(comparison->names, err);
}

void naming_release(struct naming *naming)
{
	if (naming->shown) {
		table_release(&naming->shown->known);
		arena_release(&naming->shown->arena);
		buf_release(&naming->shown->text);
	}
	free(naming->shown);
	free(naming->is_asked);
	arena_release(&naming->arena);
	*naming = (struct naming){0};
}

static int add_symbols(struct frames *frames, struct frame frame, const struct symbols *symbols)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < symbols->count; i++) {
		const struct symbol *symbol = &symbols->list[i];

		frame.function = symbol->function;
		frame.offset_bytes = symbol->offset_bytes;
		frame.file = symbol->file;
		frame.line = symbol->line;
		frame.is_inline = i + 1 < symbols->count;
		rc = frames_add(frames, &frame);
	}
	return rc;
}

/* A return address of a row, with the names that were found for it if it was asked for. */
static int add_addr(const struct naming *naming, size_t index, uint64_t addr, struct frames *frames)
{
	const struct comparison *comparison = naming->comparison;
	size_t dump = (size_t)(comparison->rows[index].dump - comparison->dumps);
	struct place_module found;
	struct location place = location_of(comparison->places, dump, addr, &found);
	const struct named_place *named =
		naming->is_asked[index] ? names_find(comparison->names, &place) : NULL;
	struct frame frame = {.has_addr = true, .addr = addr};

	if (found.module) {
		frame.module = naming->modules[found.dump][found.module -
							   comparison->dumps[found.dump].modules];
		frame.offset_bytes = place.offset;
	}
	return named && named->found.count ? add_symbols(frames, frame, &named->found) :
					     frames_add(frames, &frame);
}

static int add_stack(const struct naming *naming, size_t index, struct frames *frames)
{
	const struct row *row = &naming->comparison->rows[index];
	const struct stack *stack = row->stack;
	size_t dump = (size_t)(row->dump - naming->comparison->dumps);
	uint32_t depth = location_depth(naming->comparison->places, dump, stack), alias = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < depth; i++) {
		for (; !rc && alias < stack->alias_count && stack->alias_at[alias] <= i; alias++)
			rc = frames_part(frames);
		if (rc)
			return rc;
		if (stack->is_named)
			rc = frames_add(frames, &naming->texts[dump][stack->frames[i]]);
		else
			rc = add_addr(naming, index, stack->frames[i], frames);
	}
	return rc;
}

/* Of a comparison that was read. */
static int add_given(const struct frames *given, struct frames *frames)
{
	size_t part = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < given->count; i++) {
		for (; !rc && part < given->part_count && given->part_at[part] <= i; part++)
			rc = frames_part(frames);
		if (!rc)
			rc = frames_add(frames, &given->items[i]);
	}
	for (; !rc && part < given->part_count; part++)
		rc = frames_part(frames); /* the last candidates have no frames */
	return rc;
}

/* Each name is looked through once, however many rows have it. */
static int show_function(struct shown_functions *shown, struct frame *frame)
{
	size_t len = frame->function ? strlen(frame->function) : 0;
	const uint64_t *known;
	const char *copy;

	if (!len || !strstr(frame->function, "std::"))
		return 0;
	known = table_find(&shown->known, frame->function, len);
	if (known) {
		frame->function = (const char *)(uintptr_t)*known;
		return 0;
	}
	buf_clear(&shown->text);
	if (function_shown(frame->function, &shown->text))
		return -ERR_NOMEM;
	copy = arena_text(&shown->arena, shown->text.data, shown->text.len);
	if (!copy || table_add(&shown->known, frame->function, len, (uintptr_t)copy))
		return -ERR_NOMEM;
	frame->function = copy;
	return 0;
}

int naming_frames(const struct naming *naming, size_t index, struct frames *frames)
{
	const struct row *row = &naming->comparison->rows[index];
	int rc = 0;

	frames_clear(frames);
	if (row->frames)
		rc = add_given(row->frames, frames);
	else if (row->stack)
		rc = add_stack(naming, index, frames);
	for (size_t i = 0; !rc && i < frames->count; i++)
		rc = show_function(naming->shown, &frames->items[i]);
	return rc;
}

/* A module's file name and how many frames in it have no name. */
struct missing_names {
	const char *name;
	size_t len, count;
};

static int by_name(const void *a, const void *b)
{
	const struct missing_names *x = a, *y = b;
	int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

	return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static int by_count(const void *a, const void *b)
{
	const struct missing_names *x = a, *y = b;

	return x->count != y->count ? (x->count > y->count ? -1 : 1) : by_name(a, b);
}

/* Counts for each module, by dump and index; those in no module come last. The number of all. */
static size_t count_missing(
	const struct naming *naming, const size_t *first, struct missing_names *all)
{
	const struct comparison *comparison = naming->comparison;
	size_t frames = 0;

	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		size_t dump = (size_t)(row->dump - comparison->dumps);
		uint32_t depth;

		if (!naming->is_asked[i] || row->stack->is_named)
			continue;
		depth = location_depth(comparison->places, dump, row->stack);
		for (uint32_t k = 0; k < depth; k++, frames++) {
			struct place_module at;
			struct location place =
				location_of(comparison->places, dump, row->stack->frames[k], &at);

			if (names_find(comparison->names, &place)->found.count)
				continue;
			if (at.module)
				all[first[at.dump] +
					(size_t)(at.module - comparison->dumps[at.dump].modules)]
					.count++;
			else
				all[first[comparison->dump_count]].count++;
		}
	}
	return frames;
}

/* Unites modules of one name and drops those with nothing; the most frames first. */
static size_t unite(struct missing_names *all, size_t count)
{
	size_t some = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (all[i].count)
			all[some++] = all[i];
	}
	qsort(all, some, sizeof(*all), by_name);
	for (size_t i = 0; i < some; i++) {
		if (kept && !by_name(&all[kept - 1], &all[i]))
			all[kept - 1].count += all[i].count;
		else
			all[kept++] = all[i];
	}
	qsort(all, kept, sizeof(*all), by_count);
	return kept;
}

/* A file's name as it is typed in a command; for what cannot be typed or read again, a word. */
static int add_path(struct buf *words, const char *path)
{
	if (!path || path[0] == '-' || strpbrk(path, "\"'`$!%\r\n"))
		return buf_add_text(words, "DUMP");
	return buf_printf(words, strpbrk(path, " \t*?;&|()<>#[]{}") ? "\"%s\"" : "%s", path);
}

static int say_modules(
	struct buf *words, const struct missing_names *all, size_t modules, const char *path)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < modules && i < MISSING_MAX; i++)
		rc = buf_printf(words, "%s %zu in %.*s", i ? "," : ":", all[i].count,
			(int)all[i].len, all[i].name);
	if (!rc && modules > MISSING_MAX)
		rc = buf_printf(words, ", the others in %zu more", modules - MISSING_MAX);
	if (!rc && path)
		rc = buf_add_text(words, "; hsym --explain ");
	if (!rc && path)
		rc = add_path(words, path);
	return rc || !path ? rc : buf_add_text(words, " says why");
}

/* Modules by dump, and what is counted of each; last, what lies in none. */
struct count {
	size_t *first; /* of a dump's modules, by dump; and how many there are */
	struct missing_names *all;
};

static int count_init(struct count *count, const struct comparison *comparison)
{
	size_t dumps = comparison->dump_count, modules = 0;

	*count = (struct count){.first = calloc(dumps + 1, sizeof(*count->first))};
	for (size_t i = 0; count->first && i < dumps; i++)
		count->first[i + 1] = count->first[i] + comparison->dumps[i].module_count;
	if (count->first)
		count->all = calloc(count->first[dumps] + 1, sizeof(*count->all));
	if (!count->all)
		return -ERR_NOMEM;
	for (size_t i = 0; i < dumps; i++) {
		for (size_t k = 0; k < comparison->dumps[i].module_count; k++, modules++)
			count->all[modules].len = short_name(
				&comparison->dumps[i].modules[k], &count->all[modules].name);
	}
	count->all[modules].name = "no module";
	count->all[modules].len = strlen(count->all[modules].name);
	return 0;
}

/* The first dump with a module that lacks names, or NULL: no file has names for what lies in none. */
static const char *first_lacking(const struct count *count, const struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->dump_count; i++) {
		for (size_t k = count->first[i]; k < count->first[i + 1]; k++) {
			if (count->all[k].count)
				return comparison->dumps[i].path;
		}
	}
	return NULL;
}

int naming_missing(const struct naming *naming, bool is_stopped, struct buf *words)
{
	const struct comparison *comparison = naming->comparison;
	size_t frames, missing = 0, modules;
	const char *path = NULL;
	struct count count;
	int rc;

	if (!naming->by_name || !comparison->dumps) /* nothing was looked for */
		return 0;
	rc = count_init(&count, comparison);
	if (rc)
		goto out;
	modules = count.first[comparison->dump_count] + 1;
	frames = count_missing(naming, count.first, count.all);
	path = first_lacking(&count, comparison);
	for (size_t i = 0; i < modules; i++)
		missing += count.all[i].count;
	if (!missing)
		goto out;
	if (is_stopped) {
		rc = buf_printf(words, "stopped looking for names; %zu frames have none", missing);
		goto out;
	}
	rc = buf_printf(words, "%zu of %zu frames have no name", missing, frames);
	if (!rc)
		rc = say_modules(words, count.all, unite(count.all, modules), path);
out:
	free(count.all);
	free(count.first);
	return rc;
}
