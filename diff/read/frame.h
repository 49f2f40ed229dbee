/* One line of a stack, and the parser that reads it from text. */
#ifndef DIFF_READ_FRAME_H
#define DIFF_READ_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/* A line of a stack, as reports print it: an address from a dump, or a text from a printed
 * comparison or a log. Names of module and function may be known for both. */

/* The frame borrows its strings from its source. */
struct frame {
	const char *module; /* file name without folder and extension; NULL: in no module */
	/* Name that distinguishes the module from others with its name in the report, and its path. Both
	 * are NULL if its name is unique. */
	const char *shown_module, *module_path;
	const char *function; /* NULL: unknown */
	const char *file; /* NULL: unknown */
	uint32_t line; /* from 1; 0: unknown */
	bool is_inline; /* inlined into the function of the next frame */
	bool has_addr;
	/* Offset from the start of the function, or 0 if the offset is unknown. If the function is
	 * unknown, offset from the start of the module. 0 if the module is unknown too. */
	uint64_t offset_bytes;
	uint64_t addr; /* return address; valid if `has_addr` */
	/* Names as the file or the symbols have them, if they differ from the names above;
	 * otherwise NULL. */
	const char *recorded_module, *recorded_function, *recorded_file;
};

/* Warning for a file in a Windows code page. */
#define NAMES_NOT_UTF8                                                                             \
	"names in it are not UTF-8: they are shown with '?', and do not match the same names in "  \
	"UTF-8; 'iconv -f CP1252 -t UTF-8 FILE' converts it, with CP932 for Japanese, CP936 for "  \
	"Chinese"

#define NO_STACK "(no stack recorded)"

/* Frames of a stack, innermost first. The struct is reused for many stacks: call frames_init()
 * before the first and frames_release() after the last. */
struct frames {
	struct frame *items;
	size_t count, cap;
	/* If the true stack is one of several candidates: index of the first frame of each
	 * candidate after the first. */
	size_t *part_at;
	size_t part_count, part_cap;
};

void frames_init(struct frames *frames);
void frames_release(struct frames *frames);
void frames_clear(struct frames *frames);

/* Adds a frame. frames_part() starts a further candidate. */
void frames_add(struct frames *frames, const struct frame *frame);
void frames_part(struct frames *frames);

/* Returns the module's name as reports show it, or NULL. */
static inline const char *frame_module(const struct frame *frame)
{
	return frame->module && frame->shown_module ? frame->shown_module : frame->module;
}

/* Stores the frame's name in `buf`: "module!function", or "module+OFFSET" if the function is
 * unknown, or "ADDRESS". Replaces the content of `buf`. */
void frame_name(const struct frame *frame, struct buf *buf);

/* Spellings of a frame's name that patterns are matched against: as shown, as recorded, and both
 * without the function's return type. Modules have their own names. Sets `*spelt` to a copy of the frame with spelling number
 * `number`, from 0. Returns false if this spelling does not differ from the earlier ones. */
#define FRAME_SPELLINGS 4
bool frame_spelling(const struct frame *frame, size_t number, struct frame *spelt);

/* Returns the end of an operator's name if such a name begins at `at`. Otherwise returns `at`.
 * Signs in such names ("operator->", "operator std::string") are neither brackets nor scopes. */
const char *function_pass_operator(const char *function, const char *at);

/* Returns the start of the function's own name with its scopes. Skips the return type at the start
 * of a template function's name. */
const char *function_own(const char *function);

/* Appends the function's display name. It contains std::string and std::wstring instead of their
 * long forms, and omits inline namespaces that libraries define in std::. */
void function_shown(const char *function, struct buf *shown);

/*
 * A frame parsed from text, as in UMDH's comparisons, its old logs and our own reports:
 *
 *
 *     MODULE!FUNCTION+OFFSET [ : ADDRESS] [ (FILE, LINE)] [ [inline]]
 *     MODULE+OFFSET : ADDRESS
 *     ADDRESS : MODULE!FUNCTION+OFFSET [ (FILE, LINE)], or MODULE+OFFSET (Windows XP and 2003)
 *     ADDRESS
 *
 * and as debuggers print them: with columns before the name (core/dump/frame_columns.h), MODULE
 * with ".dll" or ".exe", ADDRESS in brackets, and FILE and LINE as "FILE @ LINE" or "FILE:LINE" in
 * brackets of either kind.
 *
 * OFFSET and ADDRESS are hexadecimal, LINE is decimal. Some texts can be parsed in several ways.
 * MODULE ends at the first '!', and OFFSET starts after the last '+'. FILE usually starts at
 * the bracket that matches the last bracket. Text in any other form becomes the function, so
 * nothing is lost.
 */

/* Fills a frame by parsing text, which must not contain NUL. Ignores surrounding blanks. Copies the
 * frame's strings into `arena`. An offset of 0 after a function means "unknown", as in printed
 * frames. A placeholder for a module ("<nomodule>!...") remains part of the function. If it has no function
 * ("<nomodule>!???+0 : ADDRESS"), the frame is only an address. */
void frame_parse(struct frame *frame, struct arena *arena, const char *text, size_t len);

/* Returns the text after an offset if it was parsed as part of the function, such as an incomplete
 * file name. Returns NULL if there is no such text. */
const char *frame_odd_end(const struct frame *frame);

#endif
