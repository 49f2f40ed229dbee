/*
 * Frames that say only that memory was asked for: the layers between a program and its heap.
 *
 * A frame is one of them when its module and function_own() of its function are in the list, when its source file is the C++
 * library's, or when it has no name and lies in a module that hands out memory. They are
 * taken away from the innermost frame outwards up to the first frame that is not in the list; the last
 * frame of a stack always stays.
 */
#ifndef DIFF_QUERY_STRIP_H
#define DIFF_QUERY_STRIP_H

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/frame.h"

/* The layers known by themselves, MODULE!FUNCTION each; ends with NULL. */
extern const char *const allocators[];

struct naming;

struct strip {
	struct strip_glob *globs;
	size_t count, cap;
	bool is_known; /* strip_add_known() was called */
	bool has_nameless; /* strip_add_nameless() was */
	struct arena arena;
	/* "module!function", "module+OFFSET", "\tmodule" of frames without a name, "\nfile" -> true if that is a layer */
	struct table known;
	struct buf name;
};

void strip_init(struct strip *strip);
void strip_release(struct strip *strip);

/* Adds what is in allocators[], files of the C++ library, and frames without a name in modules that hand out memory. */
void strip_add_known(struct strip *strip);

/*
 * Adds a file's lines: MODULE!FUNCTION, where '*' stands for any text; the module, without its
 * extension, in either case. "*!" is for frames in any module or none, "!*" also for frames that no
 * name is known of. 0, -ERR_USAGE with file:line, or an error of pattern_list_read().
 */
int strip_add_file(struct strip *strip, const char *path, struct err *err);

/* Returns true if a frame lies in the system's heap, which a C runtime calls. */
bool strip_is_heap(const struct frame *frame);

/* Adds a frame without a name, as frame_name() writes it. */
void strip_add_nameless(struct strip *strip, const char *name);

/* Returns true if such a frame was added. */
bool strip_is_nameless(struct strip *strip, const struct frame *frame);

/* Adds the allocators without a name that the stacks of a comparison show, and looks for the names of what may be one. */
void strip_find_nameless(struct strip *strip, struct naming *naming);

/* Returns true if a frame is a layer. */
bool strip_takes(struct strip *strip, const struct frame *frame);

/* Adds what starts a program and its threads: main() is called by that. */
void strip_add_start_up(struct strip *strip);

/* Takes such frames away from the outer end of a stack, which is the first of them when it is inverted; the last one that is
 * left stays. Nothing of a stack that is one of several. */
void strip_start_up(struct strip *strip, struct frames *frames, bool is_inverted);

/* Returns the nearest caller with a name, where the innermost frame that is left of a stack has none; otherwise NULL. What
 * starts a program is no answer. */
const struct frame *strip_caller(
	struct strip *strip, struct strip *start_up, const struct frames *frames);

/* Takes such frames away from each candidate of a stack. */
void strip_frames(struct strip *strip, struct frames *frames);

#endif
