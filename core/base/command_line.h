/*
 * Command lines: arguments joined into one string, the form in which Windows passes arguments to a
 * program.
 */
#ifndef CORE_BASE_COMMAND_LINE_H
#define CORE_BASE_COMMAND_LINE_H

#include <wchar.h>

#include "core/base/memory.h"

/* Appends UTF-8 arguments (NULL-terminated). They are quoted so that CommandLineToArgvW() and the C
 * runtimes split the line into the same arguments again. If the line is empty, the first argument
 * is the program. */
void command_line_add(struct buf *line, const char *const *argv);

/* Splits a line into the program and its arguments, in the same way as the C runtimes. Returns a
 * NULL-terminated array in one block, which the caller frees. Does not use CommandLineToArgvW(),
 * because that function is in shell32.dll, which would load user32.dll and other DLLs at every
 * start. */
char **command_line_split(const char *line, int *argc);

/* Returns the rest of the line after the program name. Quotes in the program name cannot be
 * escaped: each quote begins or ends a quoted part. */
const wchar_t *command_line_rest(const wchar_t *line);

#endif
