/*
 * Arguments as one line, the form in which Windows hands them to a program.
 */
#ifndef CORE_BASE_COMMAND_LINE_H
#define CORE_BASE_COMMAND_LINE_H

#include <wchar.h>

#include "core/base/memory.h"

/*
 * Adds the arguments, UTF-8 and NULL-terminated, so that CommandLineToArgvW() and the C runtimes read
 * them back as they are. An empty line's first argument is the program.
 */
void command_line_add(struct buf *line, const char *const *argv);

/* The same for one argument, which stands in quotes even where it could do without. */
void command_line_add_quoted(struct buf *line, const char *arg);

/*
 * The words of a line, its program first, as the C runtimes read them; NULL-terminated. Ours, not the system's: that lies in
 * shell32.dll, which brings user32.dll and more into each start. One block, the caller's to free.
 */
char **command_line_split(const char *line, int *argc);

/* What follows the first word of a line, by the rule for programs: a quote ends with the next one. */
const wchar_t *command_line_rest(const wchar_t *line);

#endif
