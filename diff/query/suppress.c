#include "diff/query/suppress.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/query/filter.h"
#include "diff/query/pattern.h"

static const char type[] = "leak:";
static const char chain[] = " < ";

/*
 * What the C library, C++'s and the loader keep to the end of a process, for programs of mingw-w64.
 *
 * Sources: duplicate_ppstrings and __tmainCRTStartup are in mingw-w64's crtexe.c, __emutls_get_address in
 * libgcc's emutls.c, the emergency pool in libstdc++'s eh_alloc.cc; the others are in Wine 8.0's
 * dlls/msvcrt, which is ucrtbase too, and dlls/ntdll/loader.c. Each rule needs a function that calls none
 * of the program's; malloc alone would hide its leaks.
 */
static const char *const runtime[] = {
	/* from before the tracer was there: the loader's and the system's own */
	"leak:(no stack recorded)",
	/* the arguments, and a library's own start */
	"leak:^duplicate_ppstrings$",
	"leak:^malloc$ < ^__tmainCRTStartup$",
	"leak:^*crt*!__*getmainargs$",
	"leak:^*crt*!DllMain$",
	/* locks, and what is kept for the thread or the process and used again */
	"leak:^*crt*!_lock$",
	"leak:^*crt*!init_ioinfo_cs$",
	"leak:^*crt*!msvcrt_get_thread_data$",
	"leak:^*crt*!setlocale$",
	"leak:^*crt*!strerror$",
	"leak:^*crt*!_localtime64$",
	/* the buffer of standard output, not that of a file that was left open */
	"leak:msvcrt_alloc_buffer < ... < ^printf$",
	"leak:msvcrt_alloc_buffer < ... < ^printf(",
	"leak:msvcrt_alloc_buffer < ... < ^puts$",
	"leak:msvcrt_alloc_buffer < ... < ^putchar$",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < std::__ostream_insert<",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < std::num_put<",
	"leak:msvcrt_alloc_buffer < ... < ^fwrite$ < ^std::ostream::",
	"leak:msvcrt_alloc_buffer < ... < ^fputc$ < ^std::ostream::",
	/* a thread's variables and exceptions, and the pool for exceptions without memory */
	"leak:^__emutls_get_address$",
	"leak:^_GLOBAL__sub_I__ZN9__gnu_cxx9__freeresEv$",
	/* the record of a library that was loaded */
	"leak:^ntdll!build_module$",
};

void suppressions_init(struct suppressions *suppressions)
{
	*suppressions = (struct suppressions){0};
	arena_init(&suppressions->arena);
	table_init(&suppressions->known);
	buf_init(&suppressions->name);
}

void suppressions_release(struct suppressions *suppressions)
{
	free(suppressions->items);
	arena_release(&suppressions->arena);
	table_release(&suppressions->known);
	buf_release(&suppressions->name);
	suppressions_init(suppressions);
}

/* What is the same for a whole text: "*PATTERN*" without the anchors. NULL: out of memory. */
static const char *glob_of(struct arena *arena, const char *pattern, size_t len)
{
	bool from_start = pattern[0] == '^', to_end = pattern[len - 1] == '$';
	char *glob = arena_alloc(arena, len + 3);
	size_t at = 0;

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

/* Makes the patterns of a line: 0; -ERR_USAGE: every stack matches; or -ERR_NOMEM. */
static int make_globs(struct arena *arena, const char *text, struct suppression *made)
{
	bool is_any = true;
	size_t count = 1;

	for (const char *at = text; (at = strstr(at, chain)); at += sizeof(chain) - 1)
		count++;
	made->globs = arena_alloc(arena, count * sizeof(*made->globs));
	while (made->globs && made->glob_count < count) {
		const char *end = strstr(text, chain);
		size_t len = end ? (size_t)(end - text) : strlen(text);
		const char **glob = &made->globs[made->glob_count++];

		*glob = NULL;
		if (len != 3 || memcmp(text, "...", 3) != 0) {
			if (strspn(text, "^*$") >= len)
				return -ERR_USAGE;
			is_any = false;
			*glob = glob_of(arena, text, len);
			if (!*glob)
				return -ERR_NOMEM;
		}
		text += len + sizeof(chain) - 1;
	}
	if (!made->globs)
		return -ERR_NOMEM;
	return is_any ? -ERR_USAGE : 0;
}

static int take_line(void *ctx, const char *text, const char *place, struct err *err)
{
	struct suppressions *to = ctx;
	const char *pattern = text + sizeof(type) - 1;
	struct suppression made = {0};
	int rc;

	if (strncmp(text, type, sizeof(type) - 1) != 0)
		return err_set(err, ERR_USAGE, place, "a suppression is leak:PATTERN");
	rc = make_globs(&to->arena, pattern, &made);
	if (rc == -ERR_USAGE)
		return err_set(err, ERR_USAGE, place, "this would suppress everything");
	made.is_of_stackless = !strcmp(pattern, NO_STACK);
	made.text = arena_text(&to->arena, text, strlen(text));
	made.place = arena_text(&to->arena, place, strlen(place));
	if (rc || !made.text || !made.place ||
		array_grow((void **)&to->items, &to->cap, to->count, sizeof(made)))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	to->items[to->count++] = made;
	return 0;
}

int suppressions_add_file(struct suppressions *suppressions, const char *path, struct err *err)
{
	size_t from = suppressions->count;
	int rc = 0;

	if (strcmp(path, "runtime") != 0)
		return pattern_list_read(path, take_line, suppressions, err);
	for (size_t i = 0; !rc && i < sizeof(runtime) / sizeof(*runtime); i++)
		rc = take_line(suppressions, runtime[i], path, err);
	for (; from < suppressions->count; from++)
		suppressions->items[from].is_shipped = true;
	return rc;
}

/* ---------------------------------------------------------------- matching */

/* A row and what is matched of it. */
struct suppression_case {
	struct suppressions *suppressions;
	const struct comparison *comparison;
	const struct row *row;
	const struct frames *frames;
};

#define FRAME_TEXTS 5

/* What a pattern is held against; each may be NULL. 0 or -ERR_NOMEM. */
static int frame_texts(
	const struct suppression_case *scene, size_t at, const char *texts[FRAME_TEXTS])
{
	const struct frame *frame = &scene->frames->items[at];
	struct buf *name = &scene->suppressions->name;

	texts[0] = frame->function;
	texts[1] = frame->file;
	texts[2] = frame->module;
	texts[3] = filter_frame_file(scene->comparison, scene->row, frame);
	texts[4] = NULL;
	if (!frame->function || !frame->module)
		return 0;
	if (frame_name(frame, name))
		return -ERR_NOMEM;
	texts[4] = name->data;
	return 0;
}

/* Lowers *first to the first suppression with one pattern that text matches. */
static int match_text(struct suppressions *suppressions, const char *text, size_t *first)
{
	size_t len = strlen(text), index = 0;
	const uint64_t *known = table_find(&suppressions->known, text, len);

	if (known)
		index = (size_t)*known;
	else
		while (index < suppressions->count &&
			(suppressions->items[index].glob_count > 1 ||
				!text_glob(suppressions->items[index].globs[0], text, 0)))
			index++;
	if (!known && table_add(&suppressions->known, text, len, index))
		return -ERR_NOMEM;
	if (index < *first)
		*first = index;
	return 0;
}

static int match_single(const struct suppression_case *scene, size_t at, size_t *first)
{
	const char *texts[FRAME_TEXTS];
	int rc = frame_texts(scene, at, texts);

	for (size_t i = 0; !rc && i < FRAME_TEXTS; i++)
		rc = texts[i] ? match_text(scene->suppressions, texts[i], first) : 0;
	return rc;
}

/* 1, 0 or -ERR_NOMEM. */
static int match_frame(const struct suppression_case *scene, const char *glob, size_t at)
{
	const char *texts[FRAME_TEXTS];
	int rc = frame_texts(scene, at, texts);

	for (size_t i = 0; !rc && i < FRAME_TEXTS; i++)
		rc = texts[i] && text_glob(glob, texts[i], 0);
	return rc;
}

/* Whether the frames from there on are the patterns, one by one: 1, 0 or -ERR_NOMEM. */
static int match_chain(
	const struct suppression_case *scene, const char *const *globs, size_t count, size_t at)
{
	int rc = 1;

	for (; rc == 1 && count && *globs; globs++, count--, at++)
		rc = at < scene->frames->count ? match_frame(scene, *globs, at) : 0;
	if (rc != 1 || !count)
		return rc;
	for (rc = 0; !rc && at <= scene->frames->count; at++)
		rc = match_chain(scene, globs + 1, count - 1, at);
	return rc;
}

static int match_chains(const struct suppression_case *scene, size_t *first)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < *first; i++) {
		const struct suppression *item = &scene->suppressions->items[i];

		for (size_t at = 0; !rc && item->glob_count > 1 && at < scene->frames->count; at++)
			rc = match_chain(scene, item->globs, item->glob_count, at);
		if (rc == 1)
			*first = i;
	}
	return rc < 0 ? rc : 0;
}

/* Where no stacks were recorded at all, blocks without one are all there are: a gate that passes them over
 * would always hold. */
static bool has_stacks(const struct comparison *comparison)
{
	for (size_t i = 0; comparison->dumps && i < comparison->dump_count; i++) {
		if (comparison->dumps[i].stacks.count)
			return true;
	}
	return !comparison->dumps;
}

int suppressions_match(struct suppressions *suppressions, const struct comparison *comparison,
	const struct row *row, const struct frames *frames, size_t *index)
{
	struct suppression_case scene = {suppressions, comparison, row, frames};
	size_t first = suppressions->count;
	int rc = 0;

	if (row->kind == ROW_STACKLESS && has_stacks(comparison))
		for (first = 0; first < suppressions->count; first++)
			if (suppressions->items[first].is_of_stackless)
				break;
	for (size_t i = 0; !rc && first && i < frames->count; i++)
		rc = match_single(&scene, i, &first);
	if (!rc)
		rc = match_chains(&scene, &first);
	*index = first;
	return rc;
}

void suppression_use(struct suppression *suppression, const struct delta *delta)
{
	suppression->row_count++;
	suppression->requested_bytes += delta->requested_bytes;
	suppression->block_count += delta->block_count;
}
