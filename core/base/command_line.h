/*
 * Command lines: arguments joined into one string, the form in which Windows passes arguments to a
 * program.
 */
#ifndef CORE_BASE_COMMAND_LINE_H
#define CORE_BASE_COMMAND_LINE_H

#include <wchar.h>

#include "core/base/memory.h"

/* Appends UTF-8 arguments (NULL-terminated). They are quoted so that CommandLineToArgvW() and the C
 * runtimes split them back into equal arguments. If the line is empty, the first argument is the
 * program. */
void command_line_add(struct buf *line, const char *const *argv);

/* Splits a line into the program and its arguments, in the same way as the C runtimes. Returns a
 * NULL-terminated array in one block, which the caller frees. Avoids CommandLineToArgvW(): its
 * shell32.dll would load user32.dll and other DLLs at every start. */
char **command_line_split(const char *line, int *argc);

/* Returns the part of the line after the program name. Inside the program name, a quote always ends
 * at the next quote. */
const wchar_t *command_line_rest(const wchar_t *line);

#endif
