/* Interface of the fuzz targets. A target, tests/fuzz/fuzz_NAME.c, passes its input to one reader
 * and checks what must be true for any input. Its inputs are in tests/fuzz/corpus/NAME. clang's
 * libFuzzer generates more of them (make fuzz); make check replays them with feed.c. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Defined by each target. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
/* Optional: changes the input, which may grow to max bytes, in place; returns its new length. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max, unsigned seed);
/* libFuzzer's default mutator, for use in a target's own mutator. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max);

/* Checks an invariant; a violation makes the input a finding. */
#define HOLDS(condition) ((condition) ? (void)0 : fuzz_fails(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fails(const char *file, int line, const char *condition);

/* Returns the path of an in-memory file with these bytes, valid until the next file with that
 * number is made. */
#define FUZZ_FILES 4
const char *fuzz_file(unsigned number, const void *bytes, size_t len);
/* Returns the bytes that were written to the file since then; the caller frees them. */
char *fuzz_file_bytes(unsigned number, size_t *len);

/* Returns true if the text contains no control characters except line ends and tabs. */
bool fuzz_is_harmless(const char *text, size_t len);

/* Unread part of an input. */
struct fuzz_input {
	const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_input *input)
{
	return (size_t)(input->end - input->at);
}

/* Reads a little-endian number of at most 8 bytes. Bytes past the end read as zero. */
uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes);

/* Returns the next line without its line end; the caller frees it. A NUL ends the text. */
char *fuzz_line(struct fuzz_input *input);

void fuzz_write(uint8_t *to, uint64_t value, unsigned bytes);

/* A valid memory image, and the patches that an input applies to it. A patch consists of a word's
 * number (2 bytes) among the words that are worth changing, an operation (1 byte), and an operand.
 * The operand is a new word (8 bytes), or 2 bytes: a new part of the word, a number to add, or the
 * number of a word to copy. */
struct fuzz_memory {
	uint8_t *bytes;
	size_t len;
	/* Places of the words that are not zero and differ from the previous word. */
	uint32_t *words;
	size_t word_count;
	struct fuzz_change {
		size_t at;
		uint8_t old[8];
	} * changes;
	size_t change_count, change_cap;
};

/* Takes ownership of the bytes, which stay until the program ends. */
void fuzz_memory_take(struct fuzz_memory *memory, uint8_t *bytes, size_t len);
/* fuzz_memory_patch() applies the remaining patches of an input; fuzz_memory_restore() undoes
 * them. */
void fuzz_memory_patch(struct fuzz_memory *memory, struct fuzz_input *input);
void fuzz_memory_restore(struct fuzz_memory *memory);

#endif
