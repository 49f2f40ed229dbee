/* Frames of rows, with modules and names: requests names in batches, and describes missing
 * names. */
#include "diff/query/naming.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "diff/match/locations.h"
#include "diff/read/frame.h"

#define MISSING_MAX 4 /* number of modules listed */

struct shown_functions {
	struct table known; /* maps a function to the address of its display name in `arena` */
	struct arena arena;
	struct buf text;
};

static const char **name_dump_modules(struct naming *naming, const struct dump_sums *dump)
{
	const char **names =
		arena_alloc(&naming->arena, dump->module_list.count * sizeof(*names) + 1);

	for (size_t i = 0; i < dump->module_list.count; i++) {
		const char *name;
		size_t len = naming_short_name(&dump->module_list.items[i], &name);

		names[i] = arena_text(&naming->arena, name, len);
	}
	return names;
}

static struct frame *read_dump_texts(struct naming *naming, const struct dump_sums *dump)
{
	struct frame *frames = arena_alloc(&naming->arena, dump->text_count * sizeof(*frames) + 1);

	for (size_t i = 0; i < dump->text_count; i++)
		frame_parse(&frames[i], &naming->arena, dump->texts[i], strlen(dump->texts[i]));
	return frames;
}

void naming_make(struct naming *naming, const struct comparison *comparison, bool by_name)
{
	size_t bytes = comparison->dump_count * sizeof(void *) + 1;

	*naming = (struct naming){.comparison = comparison,
		.by_name = by_name && comparison->dumps,
		.is_asked = xcalloc(comparison->row_count + 1, sizeof(*naming->is_asked)),
		.shown = xcalloc(1, sizeof(*naming->shown))};
	table_init(&naming->shown->known);
	arena_init(&naming->shown->arena);
	buf_init(&naming->shown->text);
	arena_init(&naming->arena);
	naming->modules = arena_alloc(&naming->arena, bytes);
	naming->texts = arena_alloc(&naming->arena, bytes);
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		naming->modules[i] =
			i && dump->module_list.items == dump[-1].module_list.items /* shared */ ?
				naming->modules[i - 1] :
				name_dump_modules(naming, dump);
		naming->texts[i] = read_dump_texts(naming, dump);
	}
	naming_find_doubles(naming);
}

/* Returns true if a frame describes blocks without a stack and is not an address. */
static bool is_label(const struct stack *stack, uint32_t index)
{
	return stackless_is(stack) && stackless_is_label(stack_frame(stack, index));
}

static void want_stack(struct naming *naming, size_t dump, const struct stack *stack)
{
	const struct comparison *comparison = naming->comparison;
	uint32_t depth = location_depth(comparison->locations, dump, stack);

	for (uint32_t i = 0; i < depth; i++) {
		if (!is_label(stack, i))
			names_want(comparison->names, dump, stack_frame(stack, i));
	}
}

void naming_find_stacks(
	struct naming *naming, size_t dump, const struct stack *stacks, size_t count)
{

	if (!naming->by_name)
		return;
	for (size_t i = 0; i < count; i++)
		want_stack(naming, dump, &stacks[i]);
	names_resolve(naming->comparison->names);
}

bool naming_find_addr(struct naming *naming, size_t dump, uint64_t addr)
{
	const struct comparison *comparison = naming->comparison;
	struct location place;

	if (!naming->by_name)
		return false;
	names_want(comparison->names, dump, addr);
	names_resolve(comparison->names);
	place = location_of(comparison->locations, dump, addr, NULL);
	return names_find(comparison->names, &place)->found.count;
}

void naming_find(struct naming *naming, const uint32_t *rows, size_t count)
{
	const struct comparison *comparison = naming->comparison;

	if (!naming->by_name)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &comparison->rows[rows[i]];

		if (naming->is_asked[rows[i]] || !row->stack)
			continue;
		naming->is_asked[rows[i]] = true;
		if (!row->stack->is_named)
			want_stack(naming, row->dump, row->stack);
	}
	names_resolve(comparison->names);
}

void naming_release(struct naming *naming)
{
	table_release(&naming->shown->known);
	arena_release(&naming->shown->arena);
	buf_release(&naming->shown->text);
	free(naming->shown);
	free(naming->is_asked);
	arena_release(&naming->arena);
	*naming = (struct naming){0};
}

/* Appends a return address of a row, with its names if `is_named`. */
static void add_addr(const struct naming *naming, const struct row *row, bool is_named,
	uint64_t addr, struct frames *frames)
{
	const struct comparison *comparison = naming->comparison;
	struct place_module found;
	struct location location = location_of(comparison->locations, row->dump, addr, &found);
	const struct named_place *named =
		is_named ? names_find(comparison->names, &location) : NULL;
	struct frame frame = {.has_addr = true, .addr = addr};

	if (found.module) {
		frame.module =
			naming->modules[found.dump][found.module - comparison->dumps[found.dump]
									   .module_list.items];
		frame.offset_bytes = location.offset;
		if (naming->doubles && naming->doubles[location.unit - 1]) {
			frame.shown_module = naming->doubles[location.unit - 1];
			frame.module_path = found.module->path;
		}
	}
	if (!named || !named->found.count)
		frames_add(frames, &frame);
	for (size_t i = 0; named && i < named->found.count; i++) {
		const struct symbol *symbol = &named->found.list[i];

		frame.function = symbol->function;
		frame.offset_bytes = symbol->offset_bytes;
		frame.file = symbol->file;
		frame.line = symbol->line;
		frame.recorded_function = symbol->recorded_function;
		frame.recorded_file = symbol->recorded_file;
		frame.is_inline = i + 1 < named->found.count;
		frames_add(frames, &frame);
	}
}

/* Returns a copy of a label that lives as long as `shown`. Copies each label only once. */
static const char *copy_label(struct shown_functions *shown, const char *label)
{
	const uint64_t *known = table_find(&shown->known, label, strlen(label));
	const char *copy;

	if (known)
		return (const char *)(uintptr_t)*known;
	copy = arena_text(&shown->arena, label, strlen(label));
	table_add(&shown->known, label, strlen(label), (uintptr_t)copy);
	return copy;
}

/* Appends the frames of a group of blocks without a stack. */
static void add_stackless(
	const struct naming *naming, const struct row *row, bool is_named, struct frames *frames)
{
	for (uint32_t i = 0; i < row->stack->frame_count; i++) {
		const uint64_t frame =
			stackless_frame(&naming->comparison->stackless_sizes, row->stack, i);
		char name[STACKLESS_NAME_BYTES];
		struct frame address;

		if (stackless_is_label(frame)) {
			stackless_name(frame, name);
			frames_add(frames,
				&(struct frame){.function = copy_label(naming->shown, name)});
			continue;
		}
		/* This is an address of data, not of a call; 1 was added to look it up. */
		add_addr(naming, row, is_named, frame, frames);
		address = frames->items[frames->count - 1];
		address.addr--;
		address.offset_bytes -= address.offset_bytes != 0;
		address.file = NULL;
		address.line = 0;
		frames->count = i + 1;
		frames->items[i] = address;
	}
}

static void add_stack(
	const struct naming *naming, const struct row *row, bool is_named, struct frames *frames)
{
	const struct stack *stack = row->stack;
	uint32_t depth = location_depth(naming->comparison->locations, row->dump, stack), alias = 0;

	for (uint32_t i = 0; i < depth; i++) {
		for (; alias < stack->alias_count && stack->alias_at[alias] <= i; alias++)
			frames_part(frames);
		if (stack->is_named)
			frames_add(frames, &naming->texts[row->dump][stack_frame(stack, i)]);
		else
			add_addr(naming, row, is_named, stack_frame(stack, i), frames);
	}
}

/* Appends the frames of a row in a printed comparison. */
static void add_given(const struct frames *given, struct frames *frames)
{
	size_t part = 0;

	for (size_t i = 0; i < given->count; i++) {
		for (; part < given->part_count && given->part_at[part] <= i; part++)
			frames_part(frames);
		frames_add(frames, &given->items[i]);
	}
	for (; part < given->part_count; part++)
		frames_part(frames); /* the last candidates have no frames */
}

/* Returns the display name of a function. Converts each name only once. */
static const char *show_function(struct shown_functions *shown, const char *function)
{
	size_t len = function ? strlen(function) : 0;
	const uint64_t *known;
	const char *copy;

	if (!len || !strstr(function, "std::"))
		return function;
	known = table_find(&shown->known, function, len);
	if (known)
		return (const char *)(uintptr_t)*known;
	buf_clear(&shown->text);
	function_shown(function, &shown->text);
	copy = arena_text(&shown->arena, shown->text.data, shown->text.len);
	table_add(&shown->known, function, len, (uintptr_t)copy);
	return copy;
}

static void get_frames(
	const struct naming *naming, const struct row *row, bool is_named, struct frames *frames)
{
	frames_clear(frames);
	if (!naming->comparison->dumps)
		add_given(row->frames, frames);
	else if (row->stack && stackless_is(row->stack))
		add_stackless(naming, row, is_named, frames);
	else if (row->stack)
		add_stack(naming, row, is_named, frames);
	for (size_t i = 0; i < frames->count; i++) {
		struct frame *frame = &frames->items[i];
		const char *function = frame->function;

		frame->function = show_function(naming->shown, function);
		if (frame->function != function && !frame->recorded_function &&
			strcmp(frame->function, function) != 0)
			frame->recorded_function = function;
	}
}

void naming_frames(const struct naming *naming, size_t index, struct frames *frames)
{
	get_frames(naming, &naming->comparison->rows[index], naming->is_asked[index], frames);
}

void naming_raw_frames(const struct naming *naming, size_t index, struct frames *frames)
{
	get_frames(naming, &naming->comparison->rows[index], false, frames);
}

void naming_stack_frames(const struct naming *naming, const struct dump_sums *dump,
	const struct stack *stack, struct frames *frames)
{
	const struct row row = {
		.dump = (uint32_t)(dump - naming->comparison->dumps), .stack = stack};

	get_frames(naming, &row, naming->by_name, frames);
}

/* A module's file name, and the number of its frames without a name. */
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

/* Counts frames without a name for each module, in order of dumps and modules. The last element
 * counts frames in no module. Returns the number of all frames. */
static size_t count_missing(
	const struct naming *naming, const size_t *first, struct missing_names *all)
{
	const struct comparison *comparison = naming->comparison;
	size_t frames = 0;

	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		uint32_t depth;

		if (!naming->is_asked[i] || row->stack->is_named)
			continue;
		depth = location_depth(comparison->locations, row->dump, row->stack);
		for (uint32_t k = 0; k < depth; k++) {
			struct place_module at;
			struct location place = location_of(
				comparison->locations, row->dump, stack_frame(row->stack, k), &at);

			if (is_label(row->stack, k))
				continue;
			frames++;
			if (names_find(comparison->names, &place)->found.count)
				continue;
			if (at.module)
				all[first[at.dump] +
					(size_t)(at.module -
						 comparison->dumps[at.dump].module_list.items)]
					.count++;
			else
				all[first[comparison->dump_count]].count++;
		}
	}
	return frames;
}

/* Merges modules with equal names, drops modules whose frames all have names, and sorts the rest by
 * number of frames without a name. */
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

/* Appends a file's name, quoted for a command line, or "DUMP" if the name cannot be quoted
 * safely. */
static void add_path(struct buf *words, const char *path)
{
	if (!path || path[0] == '-' || strpbrk(path, "\"'`$!%\r\n"))
		buf_add_text(words, "DUMP");
	else
		buf_printf(words, strpbrk(path, " \t*?;&|()<>#[]{}") ? "\"%s\"" : "%s", path);
}

/* Appends the modules, and a command that explains why their names are missing. The command uses
 * hsym, which reads only dumps, so a moment of a recording must be extracted first. */
static void add_modules(struct buf *words, const struct missing_names *all, size_t modules,
	const struct dump_sums *dump)
{
	for (size_t i = 0; i < modules && i < MISSING_MAX; i++)
		buf_printf(words, "%s %zu in %.*s", i ? "," : ":", all[i].count, (int)all[i].len,
			all[i].name);
	if (modules > MISSING_MAX)
		buf_printf(words, ", the rest in %zu more module%s", modules - MISSING_MAX,
			text_plural(modules - MISSING_MAX));
	if (!dump)
		return;
	buf_add_text(words, dump->id.file ? "; hdiff --extract " : "; hsym --explain ");
	add_path(words, dump->id.path);
	buf_printf(words, "%s shows why", dump->id.file ? " | hsym --explain -" : "");
}

void naming_missing(const struct naming *naming, bool is_stopped, struct buf *words)
{
	const struct comparison *comparison = naming->comparison;
	size_t dumps = comparison->dump_count, frames, missing = 0, count = 0;
	/* Indexed by dump: index in `all` of the dump's first module. The last element is the index
	 * for frames in no module. */
	size_t *first;
	struct missing_names *all;
	/* First dump with a module that lacks names. Frames in no module are ignored, because they
	 * have no symbol file. */
	const struct dump_sums *lacking = NULL;

	if (!naming->by_name) /* no names were looked up */
		return;
	first = xcalloc(dumps + 1, sizeof(*first));
	for (size_t i = 0; i < dumps; i++)
		first[i + 1] = first[i] + comparison->dumps[i].module_list.count;
	all = xcalloc(first[dumps] + 1, sizeof(*all));
	for (size_t i = 0; i < dumps; i++) {
		for (size_t k = 0; k < comparison->dumps[i].module_list.count; k++, count++)
			all[count].len = naming_short_name(
				&comparison->dumps[i].module_list.items[k], &all[count].name);
	}
	all[count].name = "no module";
	all[count++].len = strlen("no module");
	frames = count_missing(naming, first, all);
	for (size_t i = 0; i < dumps; i++) {
		for (size_t k = first[i]; !lacking && k < first[i + 1]; k++)
			lacking = all[k].count ? &comparison->dumps[i] : NULL;
	}
	for (size_t i = 0; i < count; i++)
		missing += all[i].count;
	if (missing && is_stopped) {
		buf_printf(words, "stopped looking for names; frames without a name: %zu", missing);
	} else if (missing) {
		buf_printf(words, "%zu of %zu frame%s ha%s no name", missing, frames,
			text_plural(frames), missing == 1 ? "s" : "ve");
		add_modules(words, all, unite(all, count), lacking);
	}
	free(all);
	free(first);
}
