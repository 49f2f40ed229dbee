/* Columns that debuggers and old UMDHs print before the name of a frame. */
#ifndef CORE_DUMP_FRAME_COLUMNS_H
#define CORE_DUMP_FRAME_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 *     ADDRESS : NAME                               UMDH on Windows XP and 2003
 *     ADDRESS NAME                                 WinDbg: dps, !heap -p -a
 *     NUMBER NAME                                  kcn
 *     [NUMBER] STACK RETURN [ARGUMENT...] NAME     k, kn, kb
 *     [NUMBER] RETURN : ARGUMENT... : NAME         kb of 64-bit programs
 *     NUMBER (Inline Function) -------- NAME
 *
 * NAME contains '!' or '+'. The name of a module may contain blanks, so columns must look unlike
 * names. A NUMBER without other columns has two lower-case hexadecimal digits, and the first digit
 * is decimal. An address has "0x" or WinDbg's '`', or at least 6 digits, one of them decimal.
 */
struct frame_columns {
	size_t len; /* bytes before NAME; 0: no columns */
	bool has_addr, is_inline;
	uint64_t addr; /* address of this frame (RETURN is the caller's address) */
};

struct frame_columns frame_columns_find(const char *text, size_t len);

/* Returns true if "MODULE!" is preceded by words that are neither columns nor part of a file
 * name. */
bool frame_columns_are_strange(const char *text, size_t len);

/* Parses a number of up to 64 bits, which may have "0x" before it or '`' before the last 8 digits. */
bool frame_columns_number(const char *text, size_t len, uint64_t *value);

#endif
