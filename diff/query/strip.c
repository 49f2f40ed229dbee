/* Removes the innermost frames that only allocate memory for their callers, and the outermost frames
 * that start a program or a thread. */
#include "core/base/text.h"
#include "diff/query/strip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diff/query/pattern.h"

/* Modules of the system heap, of its checkers and recorders, and of C libraries. C libraries are
 * included because a program that uses a C library's DLL contains its own operator new, which calls
 * the DLL. */
static const char *const heap_modules[] = {
	"ntdll",
	"kernelbase",
	"kernel32",
	"verifier",
	"vfbasics",
	"vrfcore",
	"hsnap-tracer*",
	"ucrtbase*",
	"msvcr*",
	"vcruntime*",
	NULL,
};

/* Modules that allocate for others. Their frames without a name are also layers. */
static const char *const allocator_modules[] = {
	"msvcp*",
	"libstdc++*",
	"libc++*",
	"mfc*",
	"atl",
	"atl7*",
	"atl8*",
	"atl9*",
	"atl1*",
	"combase",
	"ole32",
	"oleaut32",
	NULL,
};

/* Source folders of the C++ libraries of GNU, LLVM and Microsoft. */
static const char *const library_folders[] = {
	"*/include/c++/*",
	"*/libstdc++-v3/*",
	"*/libcxx/*",
	"*/libcxxabi/*",
	"*/vc/include/*",
	"*/vc/tools/msvc/*/include/*",
	"*/vctools/crt/*",
	"*/stl/inc/*",
	NULL,
};

struct strip_glob {
	const char *module, *function;
	bool is_of_user; /* from a file; matches any spelling of a name */
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

/* Adds MODULE!FUNCTION. Returns false if `text` does not have that form. */
static bool strip_add(struct strip *strip, const char *text)
{
	size_t len = strcspn(text, "!");

	if (!len || !text[len] || !text[len + 1])
		return false;
	array_grow((void **)&strip->globs, &strip->cap, strip->count, sizeof(*strip->globs));
	strip->globs[strip->count++] = (struct strip_glob){
		.module = arena_text(&strip->arena, text, len),
		.function = arena_text(&strip->arena, text + len + 1, strlen(text + len + 1))};
	return true;
}

static const char *const starting[] = {
	"*!mainCRTStartup",
	"*!wmainCRTStartup",
	"*!WinMainCRTStartup",
	"*!wWinMainCRTStartup",
	"*!__tmainCRTStartup",
	"*!__scrt_common_main*",
	"*!invoke_main",
	"*!_threadstart*",
	"*!_callthreadstart*",
	"ucrtbase!thread_start*",
	"kernel32!BaseThreadInitThunk",
	"kernel32!BaseProcessStart*",
	"ntdll!RtlUserThreadStart*",
	"ntdll!_RtlUserThreadStart*",
	"ntdll!__RtlUserThreadStart*",
	NULL,
};

void strip_add_known(struct strip *strip)
{
	for (const char *const *at = strip_allocators; *at; at++)
		strip_add(strip, *at);
	strip->is_known = true;
}

void strip_add_start_up(struct strip *strip)
{
	for (const char *const *at = starting; *at; at++)
		strip_add(strip, *at);
}

static int add_line(void *ctx, const char *text, const char *place, struct err *err)
{
	struct strip *strip = ctx;
	char *line = arena_text(&strip->arena, text, strlen(text));

	pattern_drop_extensions(line);
	if (!strip_add(strip, line))
		return err_set(
			err, ERR_USAGE, place, "expected a line of the form MODULE!FUNCTION");
	strip->globs[strip->count - 1].is_of_user = true;
	return 0;
}

int strip_add_file(struct strip *strip, const char *path, struct err *err)
{
	return pattern_list_read(path, add_line, strip, err);
}

static bool matches_spelling(const struct strip_glob *glob, const struct frame *frame)
{
	return text_glob(glob->module, frame->module ? frame->module : "", GLOB_FOLD) &&
	       text_glob(glob->function, frame->function ? frame->function : "", 0);
}

static bool is_listed(const struct strip *strip, const struct frame *frame)
{
	struct frame own = *frame, spelt;

	/* A template function's name begins with its return type, which may be a type of the
	 * library. */
	if (frame->function)
		own.function = function_own(frame->function);
	for (size_t i = 0; i < strip->count; i++) {
		const struct strip_glob *glob = &strip->globs[i];

		if (matches_spelling(glob, &own))
			return true;
		for (size_t k = 0; glob->is_of_user && k < FRAME_SPELLINGS; k++) {
			if (frame_spelling(frame, k, &spelt) && matches_spelling(glob, &spelt))
				return true;
		}
	}
	return false;
}

static bool is_in(const char *const *globs, const char *text)
{
	while (*globs && !text_glob(*globs, text, GLOB_FOLD))
		globs++;
	return *globs;
}

/* Returns true if the source file belongs to the C++ library. Microsoft's library may be in folders
 * of any name. Therefore, a header without an extension that is directly in a folder "include" also
 * counts as the library's. */
static bool is_in_library(const struct frame *frame)
{
	struct buf path;
	char *base, *folder;
	bool is;

	buf_init(&path);
	buf_printf(&path, "/%s", frame->file);
	for (char *at = path.data; *at; at++)
		*at = *at == '\\' ? '/' : *at;
	is = is_in(library_folders, path.data);
	base = strrchr(path.data, '/');
	*base++ = '\0';
	folder = strrchr(path.data, '/');
	is |= folder && text_glob("/include", folder, GLOB_FOLD) && !strchr(base, '.');
	buf_release(&path);
	return is;
}

enum strip_by { BY_NAME, BY_MODULE, BY_FILE };

static bool is_layer(const struct strip *strip, const struct frame *frame, enum strip_by by)
{
	if (by == BY_FILE)
		return is_in_library(frame);
	return is_listed(strip, frame) || (by == BY_MODULE && strip->is_known && frame->module &&
						  (is_in(heap_modules, frame->module) ||
							  is_in(allocator_modules, frame->module)));
}

/* Returns the result of is_layer(). Caches results, because most frames have the name, module and
 * file of another frame. */
static bool ask(struct strip *strip, const struct frame *frame, enum strip_by by)
{
	const uint64_t *known;
	struct frame spelt;
	bool is;

	if (by == BY_NAME) {
		spelt = *frame;
		frame_spelling(frame, 1, &spelt); /* implies the spelling that is shown */
		frame_name(&spelt, &strip->name);
	} else {
		buf_clear(&strip->name);
		buf_printf(&strip->name, "%c%s", by == BY_FILE ? '\n' : '\t',
			by == BY_FILE ? frame->file :
			frame->module ? frame->module :
					"");
	}
	known = table_find(&strip->known, strip->name.data, strip->name.len);
	if (known)
		return *known;
	is = is_layer(strip, frame, by);
	table_add(&strip->known, strip->name.data, strip->name.len, is);
	return is;
}

bool strip_is_heap(const struct frame *frame)
{
	return frame->module && is_in(heap_modules, frame->module);
}

void strip_add_nameless(struct strip *strip, const char *name)
{
	if (!table_find(&strip->known, name, strlen(name)))
		table_add(&strip->known, name, strlen(name), true);
	strip->has_nameless = true;
}

bool strip_is_nameless(struct strip *strip, const struct frame *frame)
{
	if (!strip->has_nameless || !frame->module || frame->function)
		return false;
	frame_name(frame, &strip->name);
	return table_find(&strip->known, strip->name.data, strip->name.len);
}

bool strip_matches(struct strip *strip, const struct frame *frame)
{
	if (!frame->function)
		return ask(strip, frame, BY_MODULE) || strip_is_nameless(strip, frame);
	return ask(strip, frame, BY_NAME) ||
	       (strip->is_known && frame->file && ask(strip, frame, BY_FILE));
}

void strip_frames(struct strip *strip, struct frames *frames)
{
	size_t left = 0, at = 0;

	for (size_t part = 0; part <= frames->part_count; part++) {
		size_t to = part < frames->part_count ? frames->part_at[part] : frames->count;

		while (at + 1 < to && strip_matches(strip, &frames->items[at]))
			at++;
		if (part)
			frames->part_at[part - 1] = left;
		while (at < to)
			frames->items[left++] = frames->items[at++];
	}
	frames->count = left;
}

void strip_start_up(struct strip *strip, struct frames *frames, bool is_inverted)
{
	size_t first = 0;

	if (frames->part_count || !frames->count)
		return;
	while (!is_inverted && frames->count > 1 &&
		strip_matches(strip, &frames->items[frames->count - 1]))
		frames->count--;
	while (is_inverted && first + 1 < frames->count &&
		strip_matches(strip, &frames->items[first]))
		first++;
	frames->count -= first;
	memmove(frames->items, frames->items + first, frames->count * sizeof(*frames->items));
}

const struct frame *strip_caller(
	struct strip *strip, struct strip *start_up, const struct frames *frames)
{
	size_t count = frames->part_count ? frames->part_at[0] : frames->count;

	for (size_t i = 1; i < count && !frames->items[0].function; i++) {
		const struct frame *frame = &frames->items[i];

		if (frame->function && !strip_matches(strip, frame) &&
			!strip_matches(start_up, frame))
			return frame;
	}
	return NULL;
}
