/*
 * Arguments joined into one command line, the form in which Windows passes them to a program.
 */
#ifndef CORE_BASE_COMMAND_LINE_H
#define CORE_BASE_COMMAND_LINE_H

#include <wchar.h>

#include "core/base/memory.h"

/* Appends UTF-8 arguments (NULL-terminated) so that CommandLineToArgvW() and the C runtimes read
 * them back unchanged. On an empty line the first argument is the program. */
void command_line_add(struct buf *line, const char *const *argv);

/* Appends one argument, always in quotes. */
void command_line_add_quoted(struct buf *line, const char *arg);

/* Splits a line into the program and its arguments, as the C runtimes do. Returns a NULL-terminated
 * array in one block, which the caller frees. CommandLineToArgvW() is avoided because its
 * shell32.dll loads user32.dll and more at every start. */
char **command_line_split(const char *line, int *argc);

/* Returns the part after the program's name. In that name a quote always ends at the next quote. */
const wchar_t *command_line_rest(const wchar_t *line);

#endif
