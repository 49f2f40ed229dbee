/* Reads the text of a printed comparison and keeps the result. */
#ifndef TESTS_UNIT_TEST_PRINTED_H
#define TESTS_UNIT_TEST_PRINTED_H

#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#include "diff/printed/printed.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

struct got {
	struct got *next; /* next result that is freed when the test ends */
	int rc;
	struct err err;
	struct comparison comparison;
	char skipped[8000], warnings[2000]; /* one message per line */
	size_t skip_count, warning_count;
};

static inline void add_line(char *to, size_t size, const char *text)
{
	size_t len = strlen(to);

	snprintf(to + len, size - len, "%s\n", text);
}

static inline int note_skip(void *ctx, const struct err *why)
{
	struct got *got = ctx;

	assert_int_equal(why->code, ERR_BAD_LINE);
	add_line(got->skipped, sizeof(got->skipped), why->place);
	got->skip_count++;
	return 0;
}

static inline int note_warning(void *ctx, const char *text)
{
	struct got *got = ctx;

	add_line(got->warnings, sizeof(got->warnings), text);
	got->warning_count++;
	return 0;
}

static struct got *gots;

static inline struct got *read_bytes(const char *bytes, size_t len, unsigned base)
{
	struct got *got = calloc(1, sizeof(*got));
	struct read_words words = {got, note_skip, note_warning, false};
	struct source *source;

	assert_non_null(got);
	got->next = gots;
	gots = got;
	write_bytes("old.txt", bytes, len);
	assert_int_equal(source_open(&source, "old.txt", NULL), 0);
	got->rc = comparison_read(&got->comparison, source, base, &words, &got->err);
	assert_true(!got->rc || got->err.code == (enum err_code) - got->rc);
	source_close(source);
	return got;
}

static inline struct got *read_in(const char *text, unsigned base)
{
	return read_bytes(text, strlen(text), base);
}

/* Calls read_in() and requires that there is no error and no warning. */
static inline struct got *read_whole(const char *text, unsigned base)
{
	struct got *got = read_in(text, base);

	assert_int_equal(got->rc, 0);
	assert_string_equal(got->warnings, "");
	assert_string_equal(got->skipped, "");
	return got;
}

static inline void gots_free(void)
{
	while (gots) {
		struct got *got = gots;

		gots = got->next;
		comparison_release(&got->comparison);
		free(got);
	}
}

static inline int leave_comparison(void **state)
{
	gots_free();
	return leave_folder(state);
}

static inline void assert_row(const struct got *got, size_t index, uint64_t old_bytes,
	uint64_t new_bytes, uint64_t old_blocks, uint64_t new_blocks)
{
	const struct row *row = &got->comparison.rows[index];

	assert_true(index < got->comparison.row_count);
	assert_int_equal(row->totals[0].requested_bytes, old_bytes);
	assert_int_equal(row->totals[1].requested_bytes, new_bytes);
	assert_int_equal(row->totals[0].block_count, old_blocks);
	assert_int_equal(row->totals[1].block_count, new_blocks);
	assert_int_equal(row->totals[0].overhead_bytes, 0);
	assert_int_equal(row->totals[1].overhead_bytes, 0);
}

static inline void assert_sound(const struct got *got)
{
	const struct comparison *comparison = &got->comparison;
	struct delta total = comparison_delta(comparison);
	int64_t bytes = 0, blocks = 0, before = INT64_MAX;

	assert_null(comparison->dumps);
	assert_int_equal(comparison->dump_count, 2);
	assert_string_equal(comparison->read_from, "old.txt");
	for (size_t i = 0; i < comparison->row_count; i++) {
		const struct row *row = &comparison->rows[i];
		struct delta delta = row_delta(comparison, row);

		assert_true(delta.requested_bytes || delta.block_count);
		assert_true(delta.requested_bytes <= before);
		before = delta.requested_bytes;
		bytes += delta.requested_bytes;
		blocks += delta.block_count;
		assert_non_null(row->frames);
		assert_true(row->id_count > 0);
		assert_true((row->frames->count != 0) ==
			    (row->kind == ROW_STACK || row->kind == ROW_AMBIGUOUS));
	}
	assert_true(comparison->lacks_rows ||
		    (bytes == total.requested_bytes && blocks == total.block_count));
	assert_true(got->rc != -ERR_CUT || (comparison->is_cut && comparison->is_partial));
	assert_true(got->rc || !got->skip_count || comparison->is_partial);
	assert_int_equal(comparison->warning_count, got->warning_count + got->skip_count);
}

/* ---------------------------------------------------------------- texts */

/* 0x15cf4 blocks of 0x1f4 bytes are 0x2a98c90 bytes. The spacing is that of 6.x, from a published
 * sample. */
static const char hex_text[] =
	"// Debug library initialized ...\n"
	"DBGHELP: cppmemleak - private symbols & lines \n"
	"         .\\cppmemleak.pdb\n"
	"BASE-END DBGHELP: ntdll - public symbols  \n"
	"// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID \n"
	"+ 2a98c90 ( 2a98c90 -     0)  15cf4 allocs\tBackTrace74050\n"
	"+   15cf4 ( 15cf4 -     0)\tBackTrace74050\tallocations\n"
	"\n"
	"\tntdll!RtlAllocateHeap+00000274\n"
	"DBGHELP: kernel32 - public symbols  \n"
	"         d:\\symbolcache\\wkernel32.pdb\\139CA12C1\\wkernel32.pdb\n"
	"\tCppResourceLeaks!LeakHeapMemory+00000083 (...\\cppresourceleaks.cpp, 228)\n"
	"\t\n"
	"-    2018 (     0 -  2018)      0 allocs\tBackTrace73F28\n"
	"-       1 (     0 -     1)\tBackTrace73F28\tallocations\n"
	"\n\n"
	"\tntdll!RtlAllocateHeap+00000274\n"
	"\tkernel32!ReadConsoleA+00000040\n"
	"\n\n\n\n"
	"Total increase == 2a96c78 requested + 1f3b20 overhead = 2c8a798\n";

/* A row with one block before and after. */
#define ONE_ROW(growth, now, old)                                                                  \
	"+ " growth " ( " now " - " old ") 1 allocs\tBackTrace1\n"                                 \
	"+ 0 ( 1 - 1)\tBackTrace1\tallocations\n\n\ta!b+1\n\n"

#define GOOD ONE_ROW("8", "9", "1")

#undef TEST_AROUND
#define TEST_AROUND enter_folder, leave_comparison

#endif
