/* A pattern of files' names taken apart, for snapshot/series/file_pattern*.c alone. */
#ifndef SNAPSHOT_PATTERN_PIECE_H
#define SNAPSHOT_PATTERN_PIECE_H

#include <stddef.h>

#include "snapshot/series/file_pattern.h"

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
