/* What a program is called, as a part of a file's name. */
#ifndef SNAPSHOT_SERIES_FILE_PATTERN_H
#define SNAPSHOT_SERIES_FILE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/* Adds what the program whose image is the file program, in whatever folder, is called, without ".exe".
 * program may come from a file that anybody wrote: what is added is one part of a path on every system,
 * never empty, never "..", no name of a device, and text. 0 or -ERR_NOMEM. */
int program_name_add(struct buf *to, const char *program);

/* Whether name[len] is one of those of which Windows makes a device in every folder, whatever ends the name
 * ("Naming Files, Paths, and Namespaces", Microsoft Learn). */
bool program_name_is_device(const char *name, size_t len);

/* What a file is called when it is packed. */

/* Adds path to name, with ".gz" behind it unless it ends so, in letters of either case. A device and
 * standard output ("-") keep their names. 0 or -ERR_NOMEM. */
int packed_name_add(struct buf *name, const char *path);

/*
 * The names of files for each process and each snapshot, by a pattern.
 *
 * In it {name} stands for what the program is called, without the folder and ".exe"; {pid} for the
 * process's number; {time} for when the snapshot was taken, in UTC, as 20261120T102548Z; {n} for the
 * number of the file in its series, as 000001; and {{ for a brace. {time} and {n} are for the file's own
 * name, the others may stand in a folder's too. What separates parts of a path is the system's
 * (core/io/file.h).
 */

enum {
	PATTERN_NAME = 1,
	PATTERN_PID = 2,
	PATTERN_TIME = 4,
	PATTERN_NUMBER = 8,
};

#define PATTERN_AGAIN_MAX 999999
#define PATTERN_NUMBER_MAX UINT64_C(999999999999)

struct file_names {
	const char *program; /* the image, in whatever folder; made harmless (program_name.h) */
	uint32_t pid;
	int64_t time_ms; /* since 1970-01-01 UTC */
	unsigned again; /* 0, or N to put "_N" behind the time: that name is taken */
	uint64_t number;
};

/* 0 and which words are in it; -ERR_USAGE: another word stands in braces, a brace is not closed, or {time}
 * or {n} is in a folder's name; or it has one of these, and ends as no file's name can here; or it has any word, and
 * is the name of a device or of a stream in a file here. */
int file_pattern_check(const char *pattern, unsigned *words, struct err *err);

/* All of these are for patterns that were checked. */

/* Adds the name. 0 or -ERR_NOMEM. */
int file_pattern_add(struct buf *path, const char *pattern, const struct file_names *names);

/* Adds the pattern for one process: {time} and {n} are left in it. 0 or -ERR_NOMEM. */
int file_pattern_bind(struct buf *bound, const char *pattern, const char *program, uint32_t pid);

/* Where the file's own name begins. */
const char *file_pattern_last(const char *pattern);

/* Whether name is one that file_pattern_add() makes of last, the last part of a bound pattern, with an
 * again of 0 or 2 to PATTERN_AGAIN_MAX and a number up to PATTERN_NUMBER_MAX. Then *names tells which: the
 * time to a second. What last does not hold is 0. */
bool file_pattern_fits(const char *last, const char *name, struct file_names *names);

/* A pattern of files' names taken apart, for snapshot/series/file_pattern*.c alone. */

#define PATTERN_DIGITS_MIN 6 /* of a number; zeros fill them up */
#define PATTERN_DIGITS_MAX 12 /* of PATTERN_NUMBER_MAX */
#define PATTERN_AGAIN_DIGITS_MAX 6 /* of PATTERN_AGAIN_MAX */
#define PATTERN_WORD_BYTES 64

enum pattern_piece_kind {
	PIECE_END,
	PIECE_TEXT,
	PIECE_WORD,
	PIECE_WRONG,
};

struct pattern_piece {
	enum pattern_piece_kind kind;
	unsigned word;
	const char *text; /* what stands for itself */
	size_t text_len;
	size_t len; /* of the piece in the pattern */
};

/* The first piece of pattern. */
struct pattern_piece pattern_next(const char *pattern);

/* What any word but {name} stands for. */
void pattern_word_text(
	unsigned word, const struct file_names *names, char text[PATTERN_WORD_BYTES]);

#endif
