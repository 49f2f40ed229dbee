/*
 * Frames of allocators, called layers: they lie between a program and its heap.
 *
 * A frame is a layer if the list contains its module and function (the result of function_own()),
 * or if its source file belongs to the C++ library. A frame without a name is a layer if it lies in
 * a module that allocates for others. Layers are removed from the innermost frame outwards, up to
 * the first frame that is not a layer. The last remaining frame of a stack is never removed. */
#ifndef DIFF_QUERY_STRIP_H
#define DIFF_QUERY_STRIP_H

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/frame.h"

/* Functions that only allocate memory or open handles for their callers, each as MODULE!FUNCTION. NULL
 * ends the list. */
extern const char *const strip_allocators[];

struct naming;

struct strip {
	struct strip_glob *globs;
	size_t count, cap;
	bool is_known; /* strip_add_known() was called */
	bool has_nameless; /* strip_add_nameless() was called */
	struct arena arena;
	/* Caches whether frames are layers. A key is "module!function", "module+OFFSET", "\tmodule"
	 * (for frames without a name) or "\nfile". The value is true if such a frame is a layer. */
	struct table known;
	struct buf name;
};

void strip_init(struct strip *strip);
void strip_release(struct strip *strip);

/* Adds all built-in rules for layers: a list of functions, files of the C++ library, and frames
 * without a name in modules that allocate for others. */
void strip_add_known(struct strip *strip);

/* Adds the lines of a file. A line is MODULE!FUNCTION, where '*' matches any text. MODULE has no
 * extension and ignores case. "*!" matches frames in any module or in no module. "!*" also matches
 * frames without a name. Returns 0, -ERR_USAGE with file:line, or an error of
 * pattern_list_read(). */
int strip_add_file(struct strip *strip, const char *path, struct err *err);

/* Returns true if a frame lies in a module that C runtimes call to allocate: the system heap or its
 * checkers, or a C library's DLL. */
bool strip_is_heap(const struct frame *frame);

/* Adds a frame without a name. `name` has the form that frame_name() writes. */
void strip_add_nameless(struct strip *strip, const char *name);

/* Returns true if the frame was added with strip_add_nameless(). */
bool strip_is_nameless(struct strip *strip, const struct frame *frame);

/* Finds allocators without a name from the stacks of a comparison, and adds them as layers. Looks
 * up the names of candidates. */
void strip_find_nameless(struct strip *strip, struct naming *naming);

/* Returns true if a frame is a layer. */
bool strip_matches(struct strip *strip, const struct frame *frame);

/* Adds the frames that start a program and its threads, such as the callers of main(). */
void strip_add_start_up(struct strip *strip);

/* Removes the frames at the outer end of a stack that start a program or thread. If `is_inverted`,
 * the outer end is the start of the list. The last remaining frame is never removed. A stack with
 * several candidates is not changed. */
void strip_start_up(struct strip *strip, struct frames *frames, bool is_inverted);

/* Finds a name for a stack whose innermost remaining frame has none: returns the nearest caller
 * with a name. Ignores layers, and frames that start a program. Returns NULL if the innermost
 * remaining frame has a name, or if no caller has one. */
const struct frame *strip_caller(
	struct strip *strip, struct strip *start_up, const struct frames *frames);

/* Removes layers from each candidate of a stack. */
void strip_frames(struct strip *strip, struct frames *frames);

#endif
