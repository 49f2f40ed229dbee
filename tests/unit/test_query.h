/* Dumps whose frames have names, and runs of hdiff that filter them. Stack number n is one block of
 * 2^n bytes, so the growth of the shown rows identifies their stacks. */
#ifndef TESTS_UNIT_TEST_QUERY_H
#define TESTS_UNIT_TEST_QUERY_H

#include "tests/unit/test_diff.h"

/* Frames of made stacks, by number. Number 0 ends a stack. */
struct made_frame {
	uint64_t base; /* base of the frame's module; 0: in no module */
	const char *function, *file; /* each may be NULL */
};

enum { NEW = 1, MALLOC, LEAK, MAIN, CACHE, NAMELESS, NOWHERE, HELPER, LIB_NAMELESS, FRAMES };

static const struct made_frame made_frames[FRAMES] = {
	[NEW] = {LIB_BASE, "operator new(unsigned long long)", NULL},
	[MALLOC] = {LIB_BASE, "malloc", NULL},
	[LEAK] = {APP_BASE, "leak_here", "C:\\src\\leak.c"},
	[MAIN] = {APP_BASE, "main", "C:\\src\\main.c"},
	[CACHE] = {APP_BASE, "Cache::fill<int>", "C:\\src\\cache.cpp"},
	[NAMELESS] = {APP_BASE, NULL, NULL},
	[NOWHERE] = {0, NULL, NULL},
	[HELPER] = {LIB_BASE, "helper", "D:\\lib\\Helper.cpp"},
	[LIB_NAMELESS] = {LIB_BASE, NULL, NULL},
};

static inline uint64_t made_offset(unsigned frame)
{
	return 0x2A00 + 0x10 * frame;
}

/* A stack's frames, innermost first. */
typedef const unsigned made_stack[6];

static inline void write_names(struct maker *maker)
{
	for (unsigned i = 1; i < FRAMES; i++) {
		const struct made_frame *frame = &made_frames[i];

		if (frame->function && frame->file)
			put(maker,
				"// hsnap: name addr=%" PRIX64
				" function=\"%s\" offset=5 file=%s line=%u",
				frame->base + made_offset(i), frame->function, frame->file, i);
		else if (frame->function)
			put(maker, "// hsnap: name addr=%" PRIX64 " function=\"%s\" offset=5",
				frame->base + made_offset(i), frame->function);
	}
}

static inline void write_frames(struct maker *maker, const unsigned *stack)
{
	for (size_t i = 0; i < 6 && stack[i]; i++)
		put(maker, "\t%" PRIX64, made_frames[stack[i]].base + made_offset(stack[i]));
}

/* Writes one block of 2^n bytes for each stack number n. */
static inline void write_stacks(const char *path, made_stack *stacks, size_t count)
{
	struct maker maker = dump_new((struct maker){0});
	write_names(&maker);
	for (size_t i = 0; i < count; i++) {
		char id[20];

		snprintf(id, sizeof(id), "%zX", i + 1);
		put(&maker, "%s", "");
		write_entry(&maker, UINT64_C(1) << i, 8, id);
		write_frames(&maker, stacks[i]);
		put(&maker, "%s", "");
	}
	dump_end(&maker, path);
}

/* Before each test, writes the STACKS stacks of the file to new.txt. */
#undef TEST_AROUND
#define TEST_AROUND make_stacks, leave_folder
#define STACKS_IN_NEW_TXT(stacks)                                                                  \
	enum { STACKS = sizeof(stacks) / sizeof(*(stacks)) };                                      \
	static int make_stacks(void **state)                                                       \
	{                                                                                          \
		int rc = enter_folder(state);                                                      \
                                                                                                   \
		if (!rc)                                                                           \
			write_stacks("new.txt", stacks, STACKS);                                   \
		return rc;                                                                         \
	}

/* Returns the bytes of all shown rows. */
static inline uint64_t ask_shown(const char *const *args)
{
	struct result *result = run_with(NULL, args);
	uint64_t sum = 0;

	if (result->status)
		fail_msg("%s", result->words);
	for (size_t i = 0; i < result->row_count; i++)
		sum += result->rows[i].new_bytes;
	return sum;
}

/* Like ask_shown(), but requires hdiff to succeed. */
#define shown_of(...) ask_shown((const char *const[]){__VA_ARGS__, NULL})

#endif
