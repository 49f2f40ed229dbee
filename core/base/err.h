/*
 * Errors: what went wrong, where, and what the user can do about it.
 *
 * A function that can fail returns 0 or a negative enum err_code and fills the caller's struct err.
 * On failure its outputs are unchanged. Only main() prints errors, one line each, with err_print().
 */
#ifndef CORE_BASE_ERR_H
#define CORE_BASE_ERR_H

#include <stdio.h>

#if defined(__MINGW32__)
#define PRINTF_LIKE(f, a) __attribute__((format(__MINGW_PRINTF_FORMAT, f, a)))
#else
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#endif

/* X(code, sentence, remedy); the remedy may be empty. */
#define ERR_LIST(X)                                                                                \
	X(ERR_NOMEM, "out of memory", "close other programs or use a machine with more memory")    \
	X(ERR_USAGE, "wrong usage", "see --help")                                                  \
	X(ERR_OPEN, "cannot open", "check the name and your permissions")                          \
	X(ERR_READ, "cannot read", "check the disk and your permissions")                          \
	X(ERR_NOT_FILE, "is not a regular file", "give a file on a disk")                          \
	X(ERR_CHANGED, "changed while it was read", "try again when no program is writing to it")  \
	X(ERR_EXISTS, "already exists", "choose another name")                                     \
	X(ERR_KEPT, "is not replaced", "choose another name, or give --overwrite")                 \
	X(ERR_CREATE, "cannot create", "check that the folder exists and can be written to")       \
	X(ERR_WRITE, "cannot write", "free some space or choose another place")                    \
	X(ERR_REMOVE, "cannot remove", "check your permissions, and that no program has it open")  \
	X(ERR_NOT_DUMP, "is not a heap dump", "give a file written by hsnap -f or umdh -f")        \
	X(ERR_EMPTY, "is empty", "write the file again")                                           \
	X(ERR_CUT, "is cut short",                                                                 \
		"take the snapshot again, or use the complete part with --force")                  \
	X(ERR_BAD_LINE, "bad line", "the file is damaged; take the snapshot again")                \
	X(ERR_SECOND, "another snapshot or comparison begins here",                                \
		"split the text before this line ('csplit FILE LINE', on unpacked UTF-8) and "     \
		"read both parts")                                                                 \
	X(ERR_ENCODINGS, "the file is in two encodings",                                           \
		"cut it after that byte ('head -c', 'tail -c') and read both parts, or take the "  \
		"logs again with -f")                                                              \
	X(ERR_VERSION, "was written in a newer format", "use a newer version of this tool")        \
	X(ERR_NO_PROCESS, "no such process", "'hsnap ps' lists processes")                         \
	X(ERR_MANY, "several processes have this name", "choose one of them with -p PID")          \
	X(ERR_RIGHTS, "no right to read the process", "run hsnap as its user or as administrator") \
	X(ERR_BITS, "is 32-bit",                                                                   \
		"put the 32-bit hsnap beside hsnap.exe as hsnap32.exe, or use 'hsnap ust on "      \
		"IMAGE'")                                                                          \
	X(ERR_64_BITS, "is 64-bit", "use the 64-bit hsnap")                                        \
	X(ERR_NOT_TRACED, "the process is not traced",                                             \
		"start it with 'hsnap run -- PROG', or use 'hsnap attach'")                        \
	X(ERR_TRACED, "the process is traced already",                                             \
		"take snapshots with hsnap -p, or first use 'hsnap detach'")                       \
	X(ERR_BUSY, "this cannot be done now", "try again")                                        \
	X(ERR_GONE, "the process ended meanwhile", "start it again; nothing was written")          \
	X(ERR_NO_EXIT, "the process did not exit normally", "nothing was written")                 \
	X(ERR_TARGET, "cannot interpret the process's memory",                                     \
		"try again; report it if it persists")                                             \
	X(ERR_START, "cannot start the program", "check its name and that it can run here")        \
	X(ERR_ELEVATION, "needs the rights of an administrator", "run hsnap as administrator")     \
	X(ERR_INJECT, "cannot load the tracer",                                                    \
		"try 'hsnap ust on IMAGE', which needs no code in the process")                    \
	X(ERR_CANNOT_TRACE, "cannot be traced", "")                                                \
	X(ERR_PLATFORM, "this needs Windows",                                                      \
		"run hsnap.exe there or under Wine, or read a minidump with -z FILE.dmp")          \
	X(ERR_NOT_MINIDUMP, "is not a minidump", "write one with procdump -ma PID")                \
	X(ERR_NO_HEAPS, "contains no heap memory",                                                 \
		"write a dump with full memory, as procdump -ma PID does")                         \
	X(ERR_INCOMPLETE, "the snapshot is incomplete",                                            \
		"its warnings list what is missing; take it again, or use it as it is with "       \
		"--force")                                                                         \
	X(ERR_NO_STACKS, "the process has no such stacks",                                         \
		"use 'hsnap run' or 'hsnap attach', or 'hsnap ust on IMAGE' and start the "        \
		"program again")                                                                   \
	X(ERR_IMAGE_NAME, "is not the name of an image",                                           \
		"give a file name alone, such as app.exe")                                         \
	X(ERR_ADMIN, "no right to change this", "run hsnap as administrator")                      \
	X(ERR_SYSTEM, "the system refused", "")                                                    \
	X(ERR_NOT_CHANGED, "was not changed", "")                                                  \
	X(ERR_NO_TASK, "no such task",                                                             \
		"'schtasks /query /tn \\hsnap\\', as administrator, lists the tasks")              \
	X(ERR_TASK_EXISTS, "the task already exists",                                              \
		"use 'hsnap schedule remove NAME' first, or --replace")                            \
	X(ERR_SYMBOLS, "no names", "")                                                             \
	X(ERR_NOT_RECORDING, "is not a recording", "give a file written by hsnap record")          \
	X(ERR_BAD_RECORDING, "the recording is damaged", "use earlier moments, or record again")   \
	X(ERR_NOT_RECORDED, "the process is not being recorded", "start it with 'hsnap record'")   \
	X(ERR_MOMENT, "no such moment",                                                            \
		"give 10s, 6.859s, 1m30s, 40%, start, end, peak, a mark, peak-1s, or a time in "   \
		"UTC")                                                                             \
	X(ERR_LIMIT, "a limit was reached", "")                                                    \
	X(ERR_NOT_ETW, "is not an ETW log", "give a file written by wpr, xperf or PerfView")       \
	X(ERR_NOT_IMAGE, "is neither a PE image nor a PDB",                                        \
		"give the .exe, .dll or .pdb file of a module")                                    \
	X(ERR_BAD_ETW, "the ETW log is damaged", "record it again")                                \
	X(ERR_NO_ETL, "is a zip archive without an .etl file", "unpack it first")                  \
	X(ERR_BAD_ZIP, "the archive is damaged", "unpack it with another program")                 \
	X(ERR_PROCESSES, "the log has events of several processes",                                \
		"choose one by its PID (hdiff --process, hsnap -p); 'hdiff --list LOG' lists "     \
		"them")                                                                            \
	X(ERR_INTERRUPTED, "interrupted", "nothing was written")

enum err_code {
	ERR_OK,
#define X(code, sentence, remedy) code,
	ERR_LIST(X)
#undef X
};

struct err {
	enum err_code code;
	char place[600]; /* file, file:line, "pid 12" or an address; may be an empty string */
	char detail[600]; /* details; may be an empty string */
};

/* Fills `*err` (`err` may be NULL) and returns -code. `detail` is a printf format, or NULL. */
int err_set(struct err *err, enum err_code code, const char *place, const char *detail, ...)
	PRINTF_LIKE(4, 5);

/* Writes "PLACE: SENTENCE (DETAIL); REMEDY" without a newline. Truncates the line to `size` bytes
 * and replaces control characters. Returns `text`. */
const char *err_text(const struct err *err, char *text, size_t size);

/* Like err_text(), but without the remedy. */
const char *err_reason(const struct err *err, char *text, size_t size);

/* Prints "PROGRAM: " followed by err_text(), on one line. */
void err_print(FILE *to, const char *program, const struct err *err);

#endif
