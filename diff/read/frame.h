/* One line of a stack, and parsing it from text. */
#ifndef DIFF_READ_FRAME_H
#define DIFF_READ_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/* A line of a stack as reports print it: an address in a dump with its names, or the text of a
 * comparison or of a log with names. */

/* Texts are borrowed from the source of the frame. */
struct frame {
	const char *module; /* file name without folder and extension; NULL: in no module */
	const char *function; /* NULL: unknown */
	const char *file; /* NULL: unknown */
	uint32_t line; /* from 1; 0: unknown */
	bool is_inline; /* inlined into the function of the next frame */
	bool has_addr;
	/* Offset from the start of the function (0: unknown), or from the module's if the function
	 * is unknown; 0 if both are unknown. */
	uint64_t offset_bytes;
	uint64_t addr; /* return address, if has_addr */
};

/* Warning for a file in a Windows code page. */
#define NAMES_NOT_UTF8                                                                             \
	"names in it are not UTF-8 and are shown with '?'; 'iconv -f CP1252 -t UTF-8 FILE', with " \
	"its code page, converts it"

/* Text in place of a missing stack. */
#define NO_STACK "(no stack recorded)"

/* Frames of a stack, innermost first. Reused for many stacks: frames_init() before the first,
 * frames_release() after the last. */
struct frames {
	struct frame *items;
	size_t count, cap;
	/* Starts of further candidates, if the stack is one of several. */
	size_t *part_at;
	size_t part_count, part_cap;
};

void frames_init(struct frames *frames);
void frames_release(struct frames *frames);
void frames_clear(struct frames *frames);

/* frames_part() starts a further candidate. */
void frames_add(struct frames *frames, const struct frame *frame);
void frames_part(struct frames *frames);

/* Stores the text that patterns are matched against: "module!function", "module+OFFSET" if the
 * function is unknown, or "ADDRESS". Replaces the content of buf. */
void frame_name(const struct frame *frame, struct buf *buf);

/* Returns the end of an operator's name that begins at at, such as "operator->" or "operator
 * std::string". Its signs are neither brackets nor scopes. Returns at if no such name begins
 * there. */
const char *function_pass_operator(const char *function, const char *at);

/* Returns the start of the function's own name, with its scopes, after the return type that names
 * of templates begin with. */
const char *function_own(const char *function);

/* Appends the function's display name: with std::string and std::wstring for their long forms, and
 * without the inline namespaces that libraries put in std::. */
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
 *
 * OFFSET and ADDRESS are hexadecimal, LINE is decimal. Some names can be read in several ways: the
 * first '!' and the last '+' count, and a FILE whose parentheses match. Text in any other form
 * becomes the function, so that nothing is lost.
 */

/* Fills frame from text, which contains no NUL; surrounding blanks are ignored. The frame's texts
 * are copied into arena. An offset of 0 after a function means "unknown", as in printed frames. A
 * placeholder for a module ("<nomodule>!...") stays part of the function. */
void frame_parse(struct frame *frame, struct arena *arena, const char *text, size_t len);

/* Returns the length of "ADDRESS : " before a name, including leading blanks, or 0. */
size_t frame_addr_len(const char *text, size_t len);

#endif
