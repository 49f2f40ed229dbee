/* Suppressions: the built-in list, parsing of lines, and matching of a row's frames. */
#include "diff/query/suppress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/query/filter.h"
#include "diff/query/pattern.h"

static const char type[] = "leak:";
static const char chain[] = " < ";

/*
 * Memory that the loader and the C and C++ libraries of mingw-w64 keep until the process ends.
 *
 * Sources: duplicate_ppstrings and __tmainCRTStartup are in mingw-w64's crtexe.c,
 * __emutls_get_address in libgcc's emutls.c, the emergency pool in libstdc++'s eh_alloc.cc, the
 * thread functions in winpthreads' thread.c, mutex.c, cond.c and rwlock.c. libstdc++ uses the C
 * library's files only for the standard streams. The other functions are in Wine 8.0's dlls/msvcrt,
 * which is also ucrtbase, and dlls/ntdll/loader.c. Each rule must contain a function that calls no
 * function of the program: a rule with only malloc would hide the program's leaks. */
static const char *const runtime[] = {
	/* allocated before the tracer was attached: memory of the loader and the system */
	"leak:(no stack recorded)",
	/* the arguments, and the start of libraries */
	"leak:^duplicate_ppstrings$",
	"leak:^malloc$ < ^__tmainCRTStartup$",
	"leak:^*crt*!__*getmainargs$",
	"leak:^*crt*!DllMain$",
	/* locks, and data of a thread or process that is reused */
	"leak:^*crt*!_lock$",
	"leak:^*crt*!init_ioinfo_cs$",
	"leak:^*crt*!msvcrt_get_thread_data$",
	"leak:^*crt*!setlocale$",
	"leak:^*crt*!strerror$",
	"leak:^*crt*!_localtime64$",
	/* the buffer of standard output, but not of a file that was left open */
	"leak:msvcrt_alloc_buffer < ... < ^printf$",
	"leak:msvcrt_alloc_buffer < ... < ^printf(",
	"leak:msvcrt_alloc_buffer < ... < ^puts$",
	"leak:msvcrt_alloc_buffer < ... < ^putchar$",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < std::__ostream_insert<",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < std::num_put<",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < ^std::ostream::",
	"leak:msvcrt_alloc_buffer < ... < ^fputc$ < ^std::ostream::",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < ^libstdc++-6!",
	"leak:msvcrt_alloc_buffer < ... < ^fputc$ < ^libstdc++-6!",
	/* a thread's variables and exceptions, and the pool for exceptions when memory is
	 * exhausted */
	"leak:^__emutls_get_address$",
	"leak:^_GLOBAL__sub_I__ZN9__gnu_cxx9__freeresEv$",
	/* winpthreads: thread data that is reused and never freed, and objects for static
	 * initialisers */
	"leak:^pop_pthread_mem$",
	"leak:^__pthread_register_pointer$",
	"leak:^mutex_impl_init$",
	"leak:^cond_static_init$",
	"leak:^rwlock_static_init$",
	"leak:^pthread_key_create$",
	/* the environment, and the C library's copies of it */
	"leak:^ntdll!RtlSetEnvironmentVariable$",
	"leak:^*crt*!msvcrt_SnapshotOfEnvironment*",
	/* the record of a loaded library */
	"leak:^ntdll!build_module$",
};

void suppressions_init(struct suppressions *suppressions)
{
	*suppressions = (struct suppressions){0};
	arena_init(&suppressions->arena);
	table_init(&suppressions->known);
	for (size_t i = 0; i < FRAME_SPELLINGS; i++)
		buf_init(&suppressions->names[i]);
	buf_init(&suppressions->key);
	buf_init(&suppressions->block.name);
	buf_init(&suppressions->block.pattern);
	for (size_t i = 0; i < MODULE_EXTENSIONS; i++)
		buf_init(&suppressions->files[i]);
}

void suppressions_release(struct suppressions *suppressions)
{
	free(suppressions->items);
	arena_release(&suppressions->arena);
	table_release(&suppressions->known);
	for (size_t i = 0; i < FRAME_SPELLINGS; i++)
		buf_release(&suppressions->names[i]);
	buf_release(&suppressions->key);
	buf_release(&suppressions->block.name);
	buf_release(&suppressions->block.pattern);
	for (size_t i = 0; i < MODULE_EXTENSIONS; i++)
		buf_release(&suppressions->files[i]);
	suppressions_init(suppressions);
}

/* Converts a pattern, which matches part of a text, to a glob, which must match the whole text.
 * Adds '*' at the start and at the end, except where the pattern is anchored. */
static const char *glob_of(struct arena *arena, const char *pattern, size_t len)
{
	bool from_start = pattern[0] == '^', to_end = pattern[len - 1] == '$';
	char *glob = arena_alloc(arena, len + 3);
	size_t at = 0;

	if (!from_start)
		glob[at++] = '*';
	memcpy(glob + at, pattern + from_start, len - from_start);
	at += len - from_start;
	at -= to_end;
	if (!to_end)
		glob[at++] = '*';
	glob[at] = '\0';
	pattern_drop_extensions(glob);
	return glob;
}

/* Makes the globs of a line. Returns false if the line would match every stack. */
static bool make_globs(struct arena *arena, const char *text, struct suppression *made)
{
	bool is_any = true;
	size_t count = 1;

	for (const char *at = text; (at = strstr(at, chain)); at += sizeof(chain) - 1)
		count++;
	made->globs = arena_alloc(arena, count * sizeof(*made->globs));
	while (made->glob_count < count) {
		const char *end = strstr(text, chain), *next;
		size_t len = end ? (size_t)(end - text) : strlen(text);
		const char **glob = &made->globs[made->glob_count++];

		next = text + len + sizeof(chain) - 1;
		for (; len && *text == ' '; len--)
			text++;
		while (len && text[len - 1] == ' ')
			len--;
		*glob = NULL;
		if (len != 3 || memcmp(text, "...", 3) != 0) {
			if (strspn(text, "^*$") >= len)
				return false;
			is_any = false;
			*glob = glob_of(arena, text, len);
		}
		text = next;
	}
	return !is_any;
}

/* Parses "max=40" or "max=4K" after the last blank. Returns the length of the pattern before it, or
 * 0 if the limit is not a number or a size. */
static size_t parse_limit(const char *pattern, struct suppression *made)
{
	const char *limit = strrchr(pattern, ' ');
	uint64_t value;

	made->max_bytes = made->max_blocks = UINT64_MAX;
	if (!limit || strncmp(limit, " max=", 5) != 0)
		return strlen(pattern);
	if (size_parse(limit + 5, strlen(limit + 5), &value))
		return 0;
	if (limit[5 + strspn(limit + 5, "0123456789")])
		made->max_bytes = value;
	else
		made->max_blocks = value;
	return (size_t)(limit - pattern);
}

static int add_pattern(struct suppressions *suppressions, const char *text, const char *pattern,
	const char *place, struct err *err)
{
	struct arena *arena = &suppressions->arena;
	struct suppression made = {0};
	size_t len = parse_limit(pattern, &made);

	if (!len)
		return err_set(err, ERR_USAGE, place,
			"a limit is a number of blocks, or a size such as 4K");
	pattern = arena_text(arena, pattern, len);
	if (!make_globs(arena, pattern, &made))
		return err_set(err, ERR_USAGE, place, "this would suppress everything");
	made.is_of_stackless = !strcmp(pattern, NO_STACK);
	made.text = arena_text(arena, text, strlen(text));
	made.place = arena_text(arena, place, strlen(place));
	array_grow((void **)&suppressions->items, &suppressions->cap, suppressions->count,
		sizeof(made));
	suppressions->items[suppressions->count++] = made;
	return 0;
}

/* Appends a frame of Valgrind's list to the pattern: "fun:NAME", "obj:PATH", "src:FILE:LINE" or
 * "...". Only the last part of a path is used. Ignores other lines, such as the kinds of leaks. */
static void add_valgrind_frame(struct buf *pattern, const char *text)
{
	const bool is_any = !strcmp(text, "..."), is_source = !strncmp(text, "src:", 4);
	const bool is_file = is_source || !strncmp(text, "obj:", 4);
	const char *slash = is_file ? strrchr(text, '/') : NULL, *name;

	if (!is_any && !is_file && strncmp(text, "fun:", 4) != 0)
		return;
	buf_add_text(pattern, pattern->len ? chain : "");
	name = slash ? slash + 1 : is_any ? text : text + 4;
	if (is_any)
		buf_add_text(pattern, name);
	else if (is_source)
		buf_printf(pattern, "/%.*s$", (int)strcspn(name, ":"), name);
	else
		buf_printf(pattern, "^%s$", name);
	for (char *at = pattern->data; *at; at++)
		*at = *at == '?' ? '*' : *at;
}

/* Handles a line in a block of Valgrind's list: a name, a kind, frames, and "}". Only blocks about
 * leaks are used. */
static int add_valgrind_line(struct suppressions *suppressions, const char *text, struct err *err)
{
	struct valgrind_block *block = &suppressions->block;
	int rc = 0;

	block->line++;
	if (!strcmp(text, "}")) {
		if (block->is_leak)
			rc = add_pattern(suppressions, block->name.data,
				block->pattern.data ? block->pattern.data : "*", block->place, err);
		block->line = 0;
	} else if (block->line == 2) {
		buf_clear(&block->name);
		buf_printf(&block->name, "{ %s }", text);
	} else if (block->line == 3) {
		block->is_leak = strstr(text, ":Leak") != NULL;
	} else {
		add_valgrind_frame(&block->pattern, text);
	}
	return rc;
}

static int add_line(void *ctx, const char *text, const char *place, struct err *err)
{
	struct suppressions *suppressions = ctx;
	struct valgrind_block *block = &suppressions->block;
	const bool is_leak = !strncmp(text, type, sizeof(type) - 1);

	if (block->line)
		return add_valgrind_line(suppressions, text, err);
	if (!strcmp(text, "{")) {
		block->line = 1;
		block->place = arena_text(&suppressions->arena, place, strlen(place));
		block->is_leak = false;
		buf_clear(&block->pattern);
		return 0;
	}
	if (!is_leak && strncmp(text, "at:", 3) != 0)
		return err_set(err, ERR_USAGE, place, "expected a line of the form leak:PATTERN");
	text += is_leak ? 0 : strspn(text, " \t");
	return add_pattern(suppressions, text,
		is_leak ? text + sizeof(type) - 1 + strspn(text + sizeof(type) - 1, " \t") : text,
		place, err);
}

int suppressions_add_file(struct suppressions *suppressions, const char *path, struct err *err)
{
	size_t from = suppressions->count;
	int rc = 0;

	if (strcmp(path, "runtime") != 0) {
		rc = pattern_list_read(path, add_line, suppressions, err);
		if (!rc && suppressions->block.line)
			rc = err_set(err, ERR_USAGE, suppressions->block.place,
				"the block that begins here does not end");
		if (rc == -ERR_OPEN && err)
			snprintf(err->detail + strlen(err->detail),
				sizeof(err->detail) - strlen(err->detail),
				"; the built-in list is called runtime");
		return rc;
	}
	for (size_t i = 0; !rc && i < sizeof(runtime) / sizeof(*runtime); i++)
		rc = add_line(suppressions, runtime[i], path, err);
	for (; from < suppressions->count; from++)
		suppressions->items[from].is_shipped = true;
	return rc;
}

/* ---------------------------------------------------------------- matching */

struct suppression_case {
	struct suppressions *suppressions;
	const struct comparison *comparison;
	const struct row *row;
	const struct frames *frames;
	/* result of find_start(): index of the first frame that starts a program or a thread */
	size_t start_at;
};

#define FRAME_TEXTS (3 + 2 * FRAME_SPELLINGS + MODULE_EXTENSIONS)
#define NO_MODULE "(no module)"

/* Collects the texts of a frame to match against patterns. A text may be NULL. Returns true for a
 * frame that starts a program or a thread. Omits the module and file of such a frame, because they
 * reveal nothing about a stack. */
static bool frame_texts(
	const struct suppression_case *scene, size_t at, const char *texts[FRAME_TEXTS])
{
	const struct frame *frame = &scene->frames->items[at];
	bool is_start = at >= scene->start_at;
	struct buf *names = scene->suppressions->names, *files = scene->suppressions->files;
	const char *file, **to = texts;

	for (size_t i = 0; i < FRAME_TEXTS; i++)
		texts[i] = NULL;
	if (!frame->module && !frame->function) {
		buf_clear(&names[0]);
		buf_printf(&names[0], "at:0x%" PRIX64, frame->addr);
		texts[0] = names[0].data;
		texts[1] = NO_MODULE;
		return false;
	}
	for (size_t i = 0; frame->function && i < FRAME_SPELLINGS; i++) {
		struct frame spelt;

		if (!frame_spelling(frame, i, &spelt))
			continue;
		*to++ = spelt.function;
		if (!frame->module)
			continue;
		frame_name(&spelt, &names[i]);
		*to++ = names[i].data;
	}
	if (is_start)
		return true;
	*to++ = frame->file;
	*to++ = frame->recorded_file;
	*to++ = frame->module;
	if (!frame->module)
		return false;
	file = filter_frame_file(scene->comparison, scene->row, frame);
	if (!file)
		file = frame->recorded_module;
	*to = file;
	/* In a printed comparison, the file of a module is unknown. */
	for (size_t i = 0; !file && i < MODULE_EXTENSIONS; i++) {
		buf_clear(&files[i]);
		buf_printf(&files[i], "%s.%s", frame->module, module_extensions[i]);
		to[i] = files[i].data;
	}
	return false;
}

static bool is_part(const char *glob)
{
	return glob[0] == '*' || glob[strlen(glob) - 1] == '*';
}

/* Matches a text. If the text belongs to a frame that starts a program or a thread, only a glob for
 * the whole text matches. '/' matches both separators of paths. */
static bool match_glob(const char *glob, const char *text, bool is_start)
{
	return !(is_start && is_part(glob)) && text_glob(glob, text, GLOB_SLASH);
}

/* Matches a text against a suppression with a single pattern. If it does not match, records a known
 * reason. */
static bool match_single(struct suppression *item, const char *text, bool is_start)
{
	const char *glob = item->globs[0];

	if (match_glob(glob, text, is_start))
		return true;
	item->is_part_of_start |= is_start && is_part(glob) && text_glob(glob, text, GLOB_SLASH);
	item->differs_in_case |= !is_start && text_glob(glob, text, GLOB_SLASH | GLOB_FOLD);
	return false;
}

/* Returns the index of the first suppression with a single pattern that matches `text`. */
static size_t match_text(struct suppressions *suppressions, const char *text, bool is_start)
{
	const char *key = text;
	const uint64_t *known;
	size_t index = 0, len;

	if (is_start) {
		buf_clear(&suppressions->key);
		buf_printf(&suppressions->key, "\t%s", text);
		key = suppressions->key.data;
	}
	len = strlen(key);
	known = table_find(&suppressions->known, key, len);
	if (known)
		return (size_t)*known;
	while (index < suppressions->count &&
		(suppressions->items[index].glob_count > 1 ||
			!match_single(&suppressions->items[index], text, is_start)))
		index++;
	table_add(&suppressions->known, key, len, index);
	return index;
}

static bool match_frame(const struct suppression_case *scene, const char *glob, size_t at)
{
	const char *texts[FRAME_TEXTS];
	bool is_start;

	is_start = frame_texts(scene, at, texts);
	for (size_t i = 0; i < FRAME_TEXTS; i++) {
		if (texts[i] && match_glob(glob, texts[i], is_start))
			return true;
	}
	return false;
}

/* Returns true if the frames, starting at `at`, match the patterns one after another. */
static bool match_chain(
	const struct suppression_case *scene, const char *const *globs, size_t count, size_t at)
{
	for (; count && *globs; globs++, count--, at++) {
		if (at >= scene->frames->count || !match_frame(scene, *globs, at))
			return false;
	}
	for (; count && at <= scene->frames->count; at++) {
		if (match_chain(scene, globs + 1, count - 1, at))
			return true;
	}
	return !count;
}

static bool match_anywhere(const struct suppression_case *scene, const struct suppression *item)
{
	for (size_t at = 0; at < scene->frames->count; at++) {
		if (match_chain(scene, item->globs, item->glob_count, at))
			return true;
	}
	return false;
}

/* Returns true if stacks were recorded. If no block has a stack, blocks without a stack must not be
 * suppressed: no growth would remain, and every growth limit would pass. */
static bool has_stacks(const struct comparison *comparison)
{
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		for (uint32_t k = 0; k < dump->stacks.count; k++) {
			if (!stackless_is(sums_stack(dump, k)))
				return true;
		}
	}
	return !comparison->dumps;
}

/* Finds the frames at the outer end of a stack that start a program or a thread. Returns the index
 * of the first of them, or `frames->count` if no such frames exist. */
static size_t find_start(struct strip *start_up, const struct frames *frames)
{
	size_t at = frames->count;

	while (start_up && at && frames->items[at - 1].function &&
		strip_matches(start_up, &frames->items[at - 1]))
		at--;
	return at;
}

struct suppression *suppressions_match(struct suppressions *suppressions,
	const struct comparison *comparison, const struct row *row, const struct frames *frames)
{
	struct suppression_case scene = {
		suppressions, comparison, row, frames, find_start(suppressions->start_up, frames)};
	size_t first = suppressions->count;

	if (row->kind == ROW_STACKLESS && has_stacks(comparison))
		for (first = 0; first < suppressions->count; first++)
			if (suppressions->items[first].is_of_stackless)
				break;
	for (size_t i = 0; first && i < frames->count; i++) {
		const char *texts[FRAME_TEXTS];
		bool is_start = frame_texts(&scene, i, texts);

		for (size_t k = 0; k < FRAME_TEXTS; k++) {
			size_t found =
				texts[k] ? match_text(suppressions, texts[k], is_start) : first;

			first = found < first ? found : first;
		}
	}
	for (size_t i = 0; i < first; i++) {
		if (suppressions->items[i].glob_count > 1 &&
			match_anywhere(&scene, &suppressions->items[i]))
			first = i;
	}
	for (size_t i = first + 1; i < suppressions->count; i++) {
		struct suppression *item = &suppressions->items[i];

		if (!item->is_late && !item->is_shipped)
			item->is_late = match_anywhere(&scene, item);
	}
	return first < suppressions->count ? &suppressions->items[first] : NULL;
}
