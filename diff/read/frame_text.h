/*
 * A frame from its text, as UMDH's comparisons, its logs of old and our own reports print it:
 *
 *     MODULE!FUNCTION+OFFSET [ : ADDRESS] [ (FILE, LINE)] [ [inline]]
 *     MODULE+OFFSET : ADDRESS
 *     ADDRESS
 *
 * OFFSET and ADDRESS are hexadecimal, LINE is decimal. The grammar has more than one reading for
 * some names; taken are the first '!' and the last '+', and a FILE whose parentheses match. What
 * fits nothing is kept whole as a function, so that no text is ever lost.
 */
#ifndef DIFF_FRAME_TEXT_H
#define DIFF_FRAME_TEXT_H

#include <stddef.h>

#include "core/arena.h"
#include "diff/frame.h"

/*
 * Fills frame from text, which holds no NUL; blanks around it do not count. The frame's texts are
 * copies in arena. An offset of 0 with a function reads as "not known", as frames are printed; a
 * placeholder for a module ("<nomodule>!...") is no module and stays part of the function. 0 or
 * -ERR_NOMEM, then with frame as it was.
 */
int frame_parse(struct frame *frame, struct arena *arena, const char *text, size_t len);

#endif
