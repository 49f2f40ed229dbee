/*
 * Sums that are counted many at once mean what they mean to the scanner, line by line: texts made of all
 * that may stand before a sum, in it and behind it are read both ways.
 */
#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700
#include <inttypes.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "diff/read/read_dump.h"
#include "tests/unit/test_dump.h"

#define ROUNDS 4000

static uint64_t noise;

static uint64_t pick(uint64_t count)
{
	noise ^= noise << 13;
	noise ^= noise >> 7;
	noise ^= noise << 17;
	return noise % count;
}

static void add(struct buf *text, const char *words)
{
	assert_int_equal(buf_add_text(text, words), 0);
}

/* A sum as hsnap writes it, mostly. */
static void add_sum(struct buf *text, const char *eol)
{
	static const char *const forms[] = {
		"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 " + 0x%" PRIX64
		") by: BackTrace%s%s",
		"%08" PRIX64 " bytes in 0x%" PRIx64 " allocations (@ 0x%08" PRIX64 " + 0x%" PRIX64
		") by: BackTrace%s%s",
		"%" PRIX64 " bytes in %" PRIX64 " allocations (@ %" PRIX64 " + %" PRIX64
		") by: BackTrace%s%s",
		"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 " + 0x%" PRIX64
		") by: BackTrace%s %s",
		"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 " - 0x%" PRIX64
		") by: BackTrace%s%s",
		"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64 "+ 0x%" PRIX64
		") by: BackTrace%s%s",
	};
	static const char *const ids[] = {"1", "22", "2A", "2a", "02A", "0", "FFFFFFFFFFFFFFFF",
		"1FFFFFFFFFFFFFFFF", "12345678901234567890123456789012", "2A!", "",
		"1234567890123456789012345678901234567890123456789012345678901234"};
	static const uint64_t numbers[] = {
		0, 1, 16, 0x12345, UINT64_C(1) << 43, (UINT64_C(1) << 43) + 1, UINT64_MAX};
	uint64_t form = pick(40), count = pick(20) ? 1 + pick(9) : numbers[pick(7)];
	uint64_t overhead = pick(20) ? pick(40) : numbers[pick(7)];

	assert_int_equal(
		buf_printf(text, forms[form < 6 ? form : 0],
			pick(20) ? pick(5000) : numbers[pick(7)], count, pick(5000), overhead,
			ids[pick(10) ? pick(3) : pick(sizeof(ids) / sizeof(*ids))], eol),
		0);
}

/* What may stand between sums. */
static void add_other(struct buf *text, const char *eol)
{
	static const char *const others[] = {"", "", "ntdll!RtlAllocateHeap+0x00000808",
		"\tntdll!RtlAllocateHeap+0x00000808", "add!er+0x10", "\tAlias", "\t", "\t14000Z",
		"\t10000000000000000", "\t00000000000000001", "\t1234567812345678",
		"*- - - Start of data for heap @ 230000 - - -", "// a comment",
		"40 bytes + 8 at 7000 by BackTrace22", "40 bytes + 8 at 7000 by BackTrace1",
		"40 bytes", "12 bytes in a mess", "chatter", "2A", "\r", "// hsnap: warning text=w",
		"10 bytes in 0x1 allocations (@ 0x10) by: BackTrace22"};

	add(text, others[pick(sizeof(others) / sizeof(*others))]);
	add(text, eol);
}

/* One of few stacks for an id, so that one is met again, and bare too. */
static void add_frames(struct buf *text, const char *eol)
{
	uint64_t first = UINT64_C(0x140001000) + pick(3);

	for (uint64_t count = pick(4) ? 1 + first % 4 : 0; count--; first *= pick(60) ? 3 : 70000)
		assert_int_equal(buf_printf(text, "\t%" PRIX64 "%s", first, eol), 0);
}

static void make_text(struct buf *text)
{
	const char *eol = pick(3) ? "\r\n" : "\n";

	buf_clear(text);
	add(text, "// Loaded modules: \n//     140000000    24000 C:\\made.exe\n"
		  "// Process modules enumerated.\n"
		  "10 bytes + 8 at 7000 by BackTrace22\n");
	for (uint64_t count = pick(60); count--;) {
		if (!pick(3))
			add_other(text, eol);
		if (pick(2))
			add(text, eol);
		add_sum(text, eol);
		add_frames(text, eol);
	}
	if (!pick(4))
		text->len -= pick(text->len < 60 ? text->len : 60);
}

/* One reading: sums, and what was said of lines. */
struct reading {
	struct dump_sums sums;
	struct shared_stacks pool;
	struct thread_counts tally;
	struct block_totals seen;
	struct buf said;
};

static int read_heap(void *ctx, uint64_t addr)
{
	struct reading *reading = ctx;

	tally_flush(&reading->tally);
	reading->tally.heap = shared_stacks_heap(&reading->pool, addr);
	return 0;
}

static int read_entry(void *ctx, const struct dump_entry *entry)
{
	struct reading *reading = ctx;
	struct stack_total cell = {.heap = reading->tally.heap,
		.is_bare = !entry->stack.frames,
		.sums = {entry->block_count, entry->requested_bytes, entry->overhead_bytes}};

	for (uint32_t i = 0; i < entry->name_count; i++)
		buf_printf(&reading->said, "%.*s ", (int)entry->names[i].len, entry->names[i].text);
	cell.stack = shared_stacks_add(&reading->pool, &entry->stack, entry->id_len, NULL);
	shared_stacks_count(&reading->pool, &cell, 1, false);
	block_totals_add(&reading->seen, &cell.sums);
	return 0;
}

static int read_skipped(void *ctx, const struct err *why)
{
	struct reading *reading = ctx;

	return buf_printf(&reading->said, "%s: %s\n", why->place, why->detail);
}

static size_t plain_bytes; /* that were taken, of all texts */

static const char *read_plain(
	void *ctx, const char *at, const char *end, struct dump_progress *progress)
{
	struct reading *reading = ctx;
	struct dump_progress taken = {0};
	const char *behind = tally_plain(&reading->tally, at, end, &taken);

	plain_bytes += (size_t)(behind - at);
	progress->line_count += taken.line_count;
	block_totals_add(&progress->seen, &taken.seen);
	block_totals_add(&reading->seen, &taken.seen);
	return behind;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All cells that are not empty, in order of their text. */
static void say_cells(struct reading *reading)
{
	const struct dump_sums *sums = &reading->sums;
	char **lines = calloc(sums->cell_count + 1, sizeof(*lines));
	size_t count = 0;

	assert_non_null(lines);
	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		const struct stack *stack = &sums->stacks.stacks[cell->stack];
		struct buf line;

		buf_init(&line);
		buf_printf(&line, "%s %s heap %" PRIX64 ": %" PRIu64 " %" PRIu64 " %" PRIu64,
			stack->id, cell->is_bare ? "bare" : "", sums->heaps[cell->heap],
			cell->sums.block_count, cell->sums.requested_bytes,
			cell->sums.overhead_bytes);
		for (uint32_t j = 0; !cell->is_bare && j < stack->frame_count; j++)
			buf_printf(&line, " %" PRIX64, stack->frames[j]);
		lines[count++] = line.data;
	}
	qsort(lines, count, sizeof(*lines), by_text);
	for (size_t i = 0; i < count; i++) {
		buf_printf(&reading->said, "%s\n", lines[i]);
		free(lines[i]);
	}
	free(lines);
}

/* Everything that reading a text told; to be freed. step: so many bytes at a time. */
static char *read_made(const struct buf *text, bool is_plain, size_t step)
{
	struct memory memory = {.bytes = text->data, .len = text->len, .step = step};
	struct dump_source source = {.read = read_memory, .ctx = &memory, .name = "made"};
	struct reading reading = {0};
	struct dump_sink sink = {.ctx = &reading,
		.heap = read_heap,
		.entry = read_entry,
		.skipped = read_skipped,
		.plain = is_plain ? read_plain : NULL};
	struct err err = {0};
	int rc;

	sums_init(&reading.sums);
	buf_init(&reading.said);
	shared_stacks_init(&reading.pool, &reading.sums);
	tally_init(&reading.tally, &reading.pool);
	rc = dump_scan(&source, &sink, &err);
	tally_flush(&reading.tally);
	say_cells(&reading);
	buf_printf(&reading.said, "rc %d %s %s, seen %" PRIu64 " %" PRIu64 " %" PRIu64, rc,
		err.place, err.detail, reading.seen.block_count, reading.seen.requested_bytes,
		reading.seen.overhead_bytes);
	tally_release(&reading.tally);
	shared_stacks_release(&reading.pool);
	sums_release(&reading.sums);
	return reading.said.data;
}

TEST(sums_mean_what_the_scanner_says)
{
	size_t bytes = 0;
	struct buf text;

	buf_init(&text);
	for (uint64_t seed = 1; seed < ROUNDS; seed++) {
		char *line_by_line, *at_once;

		noise = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		make_text(&text);
		bytes += text.len;
		line_by_line = read_made(&text, false, SIZE_MAX);
		at_once = read_made(&text, true, 1 + pick(5000));
		if (strcmp(line_by_line, at_once) != 0)
			print_message("seed %" PRIu64 ":\n%.*s\n", seed, (int)text.len, text.data);
		assert_string_equal(at_once, line_by_line);
		free(line_by_line);
		free(at_once);
	}
	assert_true(plain_bytes > bytes / 4); /* else nothing was tried */
	buf_release(&text);
}

/* More entries and frames than are counted at once, and the deepest stack that there may be. */
TEST(many_and_deep_ones_are_counted)
{
	struct buf text;
	char *line_by_line, *at_once;

	buf_init(&text);
	add(&text, "*- - - Start of data for heap @ 230000 - - -\n");
	for (unsigned i = 0; i < 400; i++) {
		assert_int_equal(
			buf_printf(&text,
				"%X bytes in 0x%X allocations (@ 0x10 + 0x8) by: BackTrace%X\n",
				16 * (i + 1), i + 1, i),
			0);
		for (unsigned j = 0; j < (i % 100 == 50 ? 1024u + (i == 350) : i % 90); j++)
			assert_int_equal(buf_printf(&text, "\t%X\n", 0x1000 + i * j), 0);
	}
	add(&text, "*- - - End of data for heap @ 230000 - - -\n");
	line_by_line = read_made(&text, false, SIZE_MAX);
	plain_bytes = 0;
	at_once = read_made(&text, true, SIZE_MAX);
	assert_string_equal(at_once, line_by_line);
	assert_non_null(strstr(line_by_line, "a stack is too deep"));
	assert_true(plain_bytes > text.len / 2);
	free(line_by_line);
	free(at_once);
	buf_release(&text);
}
