/* One line of a stack, and one read from its text. */
#ifndef DIFF_READ_FRAME_H
#define DIFF_READ_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/*
 * One line of a stack as a reader of reports sees it, wherever it comes from: an address in a dump
 * with the names found for it, or the text of a comparison or of a log that names its frames.
 */

/* Texts are whoever's the frame was got from. */
struct frame {
	const char *module; /* file name without folder and extension; NULL: in none */
	const char *function; /* NULL: not known */
	const char *file; /* NULL: not known */
	uint32_t line; /* 1 and up; 0: not known */
	bool is_inline; /* the next frame is the function that it was inlined into */
	bool has_addr;
	/* From the function's start (0: not known), or from the module's when the function is not
	 * known; 0 when there is neither. */
	uint64_t offset_bytes;
	uint64_t addr; /* a return address, when has_addr */
};

/* A warning for a file of Windows' own code page. */
#define NAMES_NOT_UTF8                                                                             \
	"names in it are not UTF-8 and are shown with '?'; 'iconv -f CP1252 -t UTF-8 FILE', with " \
	"its code page, converts it"

/* What blocks are shown with that have no stack. */
#define NO_STACK "(no stack recorded)"

/* A stack's frames, innermost first. Reused from stack to stack: frames_init() before the first,
 * frames_release() behind the last. */
struct frames {
	struct frame *items;
	size_t count, cap;
	/* Where further candidates start, when the stack is one of several, unknown which. */
	size_t *part_at;
	size_t part_count, part_cap;
};

void frames_init(struct frames *frames);
void frames_release(struct frames *frames);
void frames_clear(struct frames *frames);

/* frames_part() starts a further candidate. */
void frames_add(struct frames *frames, const struct frame *frame);
void frames_part(struct frames *frames);

/* "module!function", "module+OFFSET" when the function is not known, or "ADDRESS": what a pattern
 * is held against. Replaces what buf held. */
void frame_name(const struct frame *frame, struct buf *buf);

/* Returns the end of an operator's name that begins at at, "operator->" or "operator std::string", whose signs are neither
 * brackets nor scopes; at, if none begins there. */
const char *function_pass_operator(const char *function, const char *at);

/* Where the function's own name begins, with its scopes: behind the type of its result, which names of
 * templates have in front. */
const char *function_own(const char *function);

/* Adds the function as it is shown: std::string and std::wstring instead of what they stand for, and
 * without the namespaces that libraries put between std:: and the rest. */
void function_shown(const char *function, struct buf *shown);

/*
 * A frame from its text, as UMDH's comparisons, its logs of old and our own reports print it:
 *
 *     MODULE!FUNCTION+OFFSET [ : ADDRESS] [ (FILE, LINE)] [ [inline]]
 *     MODULE+OFFSET : ADDRESS
 *     ADDRESS : MODULE!FUNCTION+OFFSET [ (FILE, LINE)], or MODULE+OFFSET (Windows XP and 2003)
 *     ADDRESS
 *
 * OFFSET and ADDRESS are hexadecimal, LINE is decimal. The grammar has more than one reading for
 * some names; taken are the first '!' and the last '+', and a FILE whose parentheses match. What
 * fits nothing is kept whole as a function, so that no text is ever lost.
 */

/*
 * Fills frame from text, which holds no NUL; blanks around it do not count. The frame's texts are
 * copies in arena. An offset of 0 with a function reads as "not known", as frames are printed; a
 * placeholder for a module ("<nomodule>!...") is no module and stays part of the function.
 */
void frame_parse(struct frame *frame, struct arena *arena, const char *text, size_t len);

/* Returns the length of "ADDRESS : " in front of a name, with blanks before it; 0: none. */
size_t frame_addr_len(const char *text, size_t len);

#endif
