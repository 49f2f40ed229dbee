/*
 * What fuzz targets share. A target is tests/fuzz/fuzz_NAME.c: it hands what it is given to one reader, and checks what
 * must hold whatever that is. Its inputs are in tests/fuzz/corpus/NAME. clang's libFuzzer makes more of them (make fuzz);
 * feed.c reads them again in make check.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a target defines. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
/* May define: changes bytes in place, at most max of them; how many there are then. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max, unsigned seed);
/* libFuzzer's own, for that. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t len, size_t max);

/* What must hold: else the input is a find. */
#define HOLDS(condition) ((condition) ? (void)0 : fuzz_fails(__FILE__, __LINE__, #condition))
_Noreturn void fuzz_fails(const char *file, int line, const char *condition);

/* A file in memory with these bytes, by its path: until one of that number is made again. */
#define FUZZ_FILES 4
const char *fuzz_file(unsigned number, const void *bytes, size_t len);
/* What has been written to it since, to be freed. */
char *fuzz_file_bytes(unsigned number, size_t *len);

/* Whether a terminal obeys nothing in a text but line ends and tabs. */
bool fuzz_is_harmless(const char *text, size_t len);

/* What is left of an input. */
struct fuzz_input {
	const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_input *input)
{
	return (size_t)(input->end - input->at);
}

/* Little-endian, of at most 8 bytes; behind the end are zeros. */
uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes);

/* The next line without its end, as a text to be freed; what is behind a NUL in it is not seen. */
char *fuzz_line(struct fuzz_input *input);

void fuzz_put(uint8_t *to, uint64_t value, unsigned bytes);

/*
 * Memory that is sound, and what an input changes in it. A patch is the number of a word (2 bytes) among those that are
 * worth changing, how (a byte), and a value: a new word (8 bytes), or a new part of it, what to add, or the number of a word
 * to copy (2 bytes each).
 */
struct fuzz_memory {
	uint8_t *bytes;
	size_t len;
	uint32_t *words; /* their places: not zero, and another one than the word before */
	size_t word_count;
	struct fuzz_change {
		size_t at;
		uint8_t old[8];
	} * changes;
	size_t change_count, change_cap;
};

/* bytes are the memory's from now on, which lives as long as the program. */
void fuzz_memory_take(struct fuzz_memory *memory, uint8_t *bytes, size_t len);
/* Applies the patches that are left of an input, and takes them back. */
void fuzz_memory_patch(struct fuzz_memory *memory, struct fuzz_input *input);
void fuzz_memory_restore(struct fuzz_memory *memory);

#endif
