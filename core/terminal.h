/* What a terminal that standard output goes to can show. */
#ifndef CORE_TERMINAL_H
#define CORE_TERMINAL_H

#include <stdbool.h>

/* Whether standard output is a terminal, and one that is said to show UTF-8: on Windows by the
 * console's code page, elsewhere by the first of LC_ALL, LC_CTYPE and LANG that is set. */
bool terminal_is_utf8(void);

/* Whether a locale's name, as "de_DE.UTF-8@euro", says UTF-8; NULL does not. Not on Windows. */
bool locale_is_utf8(const char *name);

#endif
