/* Text from elsewhere, made fit to be shown. */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces in place what a terminal would obey by '?', one for each byte: control characters (below a blank,
 * DEL, U+0080 to U+009F), those that turn the order of reading (U+202A to U+202E, U+2066 to U+2069), and bytes
 * 80 to 9F that are part of no UTF-8. Returns text. */
char *text_harmless(char *text);

/* Bytes of what a terminal would obey that text, which ends in NUL, starts with: 0 to 3. 0 for the end. */
size_t text_obeyed(const char *text);

/* The same of what must not stand in a file of text: also 1 for a byte that is no UTF-8. */
size_t text_unfit(const char *text);

/* The last bytes of text, max at most, from the beginning of a UTF-8 character on. */
const char *text_tail(const char *text, size_t max);

/* Whether text is ASCII without control characters, of which text_harmless() changes nothing. */
bool text_is_plain(const char *text, size_t len);

/* Bytes of the UTF-8 character that text, which ends in NUL, starts with: 1 to 4, and *code is its
 * number. 0 at the end of text and for bytes that are no UTF-8. */
size_t text_utf8(const char *text, uint32_t *code);

#endif
