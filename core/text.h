/* Text from elsewhere, made fit to be shown. */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

/* Replaces in place what a terminal would obey: control characters (below a blank, DEL, and U+0080 to
 * U+009F in UTF-8) become '?'. Returns text. */
char *text_harmless(char *text);

#endif
