#define _GNU_SOURCE /* memfd_create() is specific to Linux */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/text.h"

_Noreturn void fuzz_fails(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

/* Aborts where the program would exit because it is out of memory, so that the fuzzer keeps the
 * input. */
void __wrap_os_end(void);
void __wrap_os_end(void)
{
	abort();
}

static int files[FUZZ_FILES] = {-1, -1, -1, -1};

const char *fuzz_file(unsigned number, const void *bytes, size_t len)
{
	static char paths[FUZZ_FILES][40];

	if (files[number] < 0) {
		files[number] = memfd_create("fuzz", MFD_CLOEXEC);
		HOLDS(!fchmod(files[number], 0600)); /* the permissions of a user's own file */
	}
	snprintf(paths[number], sizeof(paths[number]), "/proc/self/fd/%d", files[number]);
	if (files[number] < 0 || ftruncate(files[number], 0) || lseek(files[number], 0, SEEK_SET) ||
		pwrite(files[number], bytes, len, 0) != (ssize_t)len)
		fuzz_fails(__FILE__, __LINE__, "there is room for a file");
	return paths[number];
}

char *fuzz_file_bytes(unsigned number, size_t *len)
{
	struct stat st;
	char *bytes;

	HOLDS(!fstat(files[number], &st));
	*len = (size_t)st.st_size;
	bytes = xcalloc(1, *len + 1);
	HOLDS(pread(files[number], bytes, *len, 0) == st.st_size);
	return bytes;
}

bool fuzz_is_harmless(const char *text, size_t len)
{
	uint32_t code;
	size_t whole;

	for (const char *end = text + len; text < end; text += whole) {
		if (text_obeyed(text) && *text != '\n' && *text != '\t' && *text != '\r')
			return false;
		whole = text_utf8(text, &code);
		whole += !whole; /* invalid UTF-8 */
	}
	return true;
}

uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << 8 * i;
	return value;
}

char *fuzz_line(struct fuzz_input *input)
{
	size_t left = fuzz_left(input);
	const uint8_t *end = left ? memchr(input->at, '\n', left) : NULL;
	size_t len = end ? (size_t)(end - input->at) : left;
	char *line = xcalloc(1, len + 1);

	if (len)
		memcpy(line, input->at, len);
	input->at += len + (end != NULL);
	return line;
}

void fuzz_write(uint8_t *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> 8 * i);
}

void fuzz_memory_take(struct fuzz_memory *memory, uint8_t *bytes, size_t len)
{
	size_t cap = 0;

	*memory = (struct fuzz_memory){.bytes = bytes, .len = len};
	for (size_t at = 8; at + 8 <= len; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, 8);
		if (!word || !memcmp(bytes + at, bytes + at - 8, 8))
			continue;
		array_grow(
			(void **)&memory->words, &cap, memory->word_count, sizeof(*memory->words));
		memory->words[memory->word_count++] = (uint32_t)at;
	}
}

static uint8_t *word_at(const struct fuzz_memory *memory, uint64_t number)
{
	return memory->bytes + memory->words[number % memory->word_count];
}

static void patch(struct fuzz_memory *memory, struct fuzz_input *input)
{
	enum { WORD, PART, ADD, COPY };
	uint8_t *word = word_at(memory, fuzz_number(input, 2));
	unsigned how = (unsigned)fuzz_number(input, 1), part = how >> 2 & 6;
	struct fuzz_change *change;
	uint16_t short_word;

	array_grow((void **)&memory->changes, &memory->change_cap, memory->change_count,
		sizeof(*change));
	change = &memory->changes[memory->change_count++];
	change->at = (size_t)(word - memory->bytes);
	memcpy(change->old, word, 8);
	switch (how & 3) {
	case WORD: fuzz_write(word, fuzz_number(input, 8), 8); break;
	case PART: fuzz_write(word + part, fuzz_number(input, 2), 2); break;
	case ADD:
		memcpy(&short_word, word + part, 2);
		fuzz_write(word + part, short_word + fuzz_number(input, 2), 2);
		break;
	case COPY: memmove(word, word_at(memory, fuzz_number(input, 2)), 8);
	}
}

void fuzz_memory_patch(struct fuzz_memory *memory, struct fuzz_input *input)
{
	while (fuzz_left(input))
		patch(memory, input);
}

void fuzz_memory_restore(struct fuzz_memory *memory)
{
	while (memory->change_count) {
		const struct fuzz_change *change = &memory->changes[--memory->change_count];

		memcpy(memory->bytes + change->at, change->old, 8);
	}
}
