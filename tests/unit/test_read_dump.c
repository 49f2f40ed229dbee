/* Two equivalences. First, sums that are parsed in bulk equal those that the scanner parses line by
 * line. Texts with everything that may precede, form or follow a sum are read both ways. Second, a
 * dump read by several threads in pieces of any size gives the same result as one read in order:
 * sums by stack and heap, warnings, errors. The dumps are random and contain all items that depend
 * on order: headings, notes, invalid lines, several stacks under one id. */
#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#include "core/dump/source.h"
#include "diff/read/read_dump.h"
#include "tests/unit/test_dump.h"

#define IDS 12
#define ROUNDS 4000

static uint64_t noise;

static uint64_t pick(uint64_t count)
{
	noise ^= noise << 13;
	noise ^= noise >> 7;
	noise ^= noise << 17;
	return noise % count;
}

/* Facts that the writer knows. */
struct truth {
	struct block_totals total;
	bool has_faults; /* the text has invalid lines, whose sums are not counted here */
};

static void write_random_stack(struct maker *maker, uint64_t number)
{
	static const char *const forms[] = {"\t%" PRIX64, "\t%" PRIx64, "\t%016" PRIX64};
	uint64_t form = pick(20);

	for (uint64_t i = 0; i < 1 + number % 5; i++)
		put(maker, forms[form < 2 ? form + 1 : 0], UINT64_C(0x140001000) + 64 * number + i);
	if (number % 7 == 6) {
		put(maker, "\tAlias");
		put(maker, "\t%" PRIX64, UINT64_C(0x140009000) + number);
	}
}

static void write_random_entry(struct maker *maker, struct truth *truth)
{
	static const char *const ids[IDS] = {"1", "22", "333", "4444", "55555", "0077", "abc",
		"123456789AB", "0", "FFFFFFFF", "A1", "A2"};
	uint64_t id = pick(IDS), requested = pick(pick(50) ? 5000 : UINT64_C(1) << 40);
	uint64_t overhead = pick(64);

	put(maker, "%" PRIX64 " bytes + %" PRIX64 " at %" PRIX64 " by BackTrace%s", requested,
		overhead, pick(UINT64_C(1) << 44), ids[id]);
	truth->total.block_count++;
	truth->total.requested_bytes += requested;
	truth->total.overhead_bytes += overhead;
	if (pick(3))
		write_random_stack(maker, pick(10) ? id : pick(40));
	if (!pick(4))
		put(maker, "%s", "");
}

static void write_random_other(struct maker *maker, struct truth *truth, bool with_faults)
{
	uint64_t blocks = 1 + pick(9), size = pick(1000);

	switch (pick(with_faults ? 9 : 6)) {
	case 0: put(maker, "// chatter"); break;
	case 1:
		put(maker, "*- - - - - Start of data for heap @ %" PRIX64 " - - -",
			UINT64_C(0x200000) + maker->text.len); /* each heap once */
		break;
	case 2: put(maker, "DBGHELP: app - no symbols"); break;
	case 3:
		put(maker,
			"%" PRIX64 " bytes in 0x%" PRIX64 " allocations (@ 0x%" PRIX64
			" + 0x%" PRIX64 ") by: BackTrace%" PRIX64,
			blocks * size, blocks, size, pick(2) * 8, pick(3));
		truth->total.block_count += blocks;
		truth->total.requested_bytes += blocks * size;
		/* Probably a fault, so the overhead is not counted here. */
		truth->has_faults = true;
		put(maker, "ntdll!RtlAllocateHeap+0x%08" PRIX64, pick(5));
		break;
	case 4:
		put(maker, "// hsnap: name addr=140001000 function=f%" PRIu64 " offset=1", pick(9));
		break;
	case 5: put(maker, "// hsnap: warning text=\"so it is %" PRIu64 "\"", pick(99)); break;
	case 6: put(maker, "12 bytes + at nowhere"); break;
	case 7: put(maker, "\t14000Z"); break;
	default: put(maker, "// hsnap: heap addr=zzz");
	}
	truth->has_faults = truth->has_faults || with_faults;
}

static struct truth write_random(uint64_t seed, bool with_faults)
{
	struct truth truth = {.has_faults = with_faults};
	struct maker maker;

	noise = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	maker = dump_new((struct maker){.eol = pick(2) ? "\r\n" : "\n"});
	for (uint64_t count = pick(400); count--;) {
		if (pick(30))
			write_random_entry(&maker, &truth);
		else
			write_random_other(&maker, &truth, with_faults);
	}
	if (pick(2))
		dump_end(&maker, "new.txt");
	else { /* cut off at a random place */
		write_bytes("new.txt", maker.text.data, maker.text.len - pick(40));
		buf_release(&maker.text);
		truth.has_faults = true;
	}
	return truth;
}

static void write_stack_text(struct buf *to, const struct dump_sums *sums, uint32_t number)
{
	const struct stack *stack = number == STACK_NONE ? NULL : &sums->stacks.stacks[number];

	buf_add_text(to, stack ? stack->id : "none");
	for (uint32_t i = 0; stack && i < stack->frame_count; i++) {
		if (stack->is_named)
			buf_printf(to, " %s", sums->texts[stack_frame(stack, i)]);
		else
			buf_printf(to, " %" PRIx64, stack_frame(stack, i));
	}
	for (uint32_t i = 0; stack && i < stack->alias_count; i++)
		buf_printf(to, " alias@%" PRIu32, stack->alias_at[i]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the sums' data in a fixed order, except data that depend on the order of reading. The
 * caller frees the text. */
static char *canonical(const struct dump_sums *sums)
{
	char **lines = calloc(sums->cell_count + 1, sizeof(*lines));
	struct buf all;

	assert_non_null(lines);
	for (size_t i = 0; i < sums->cell_count; i++) {
		const struct stack_total *cell = &sums->cells[i];
		struct buf line;

		buf_init(&line);
		/* of an id's stacks, the first one depends on the threads' timing */
		if (cell->is_bare)
			buf_add_text(&line, sums->stacks.stacks[cell->stack].id);
		else
			write_stack_text(&line, sums, cell->stack);
		buf_printf(&line, " %s heap %" PRIX64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			cell->is_bare ? "bare" : "", sums->heaps[cell->heap],
			cell->sums.block_count, cell->sums.requested_bytes,
			cell->sums.overhead_bytes);
		lines[i] = line.data;
	}
	qsort(lines, sums->cell_count, sizeof(*lines), by_text);
	buf_init(&all);
	for (size_t i = 0; i < sums->cell_count; i++) {
		buf_add_text(&all, lines[i]);
		free(lines[i]);
	}
	for (size_t i = 0; i < sums->quality.warning_count && i < WARNINGS_MAX; i++)
		buf_printf(&all, "warning %s\n", sums->quality.warnings[i]);
	buf_printf(&all, "total %" PRIu64 " %" PRIu64 " %" PRIu64 ", %zu skipped, %zu modules%s",
		sums->total.block_count, sums->total.requested_bytes, sums->total.overhead_bytes,
		sums->quality.skip_count, sums->module_list.count,
		sums->quality.is_cut ? ", cut" : "");
	free(lines);
	return all.data;
}

/* ---------------------------------------------------------------- sums */

static void add(struct buf *text, const char *words)
{
	buf_add_text(text, words);
}

/* Adds a sum, mostly as hsnap writes it. */
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

	buf_printf(text, forms[form < 6 ? form : 0], pick(20) ? pick(5000) : numbers[pick(7)],
		count, pick(5000), overhead,
		ids[pick(10) ? pick(3) : pick(sizeof(ids) / sizeof(*ids))], eol);
}

static void add_other(struct buf *text, const char *eol)
{
	static const char *const others[] = {"", "", "ntdll!RtlAllocateHeap+0x00000808",
		"\tntdll!RtlAllocateHeap+0x00000808", "add!er+0x10", "\tAlias", "\t", "\t14000Z",
		"\t10000000000000000", "\t00000000000000001", "\t1234567812345678", "// a comment",
		"40 bytes + 8 at 7000 by BackTrace22", "40 bytes + 8 at 7000 by BackTrace1",
		"40 bytes", "12 bytes in a mess", "chatter", "2A", "\r", "// hsnap: warning text=w",
		"10 bytes in 0x1 allocations (@ 0x10) by: BackTrace22"};

	if (!pick(20))
		buf_printf(text, "*- - - Start of data for heap @ %zX - - -%s", text->len, eol);
	add(text, others[pick(sizeof(others) / sizeof(*others))]);
	add(text, eol);
}

/* Adds no stack, or one of the few stacks of each id, so that stacks recur. */
static void add_frames(struct buf *text, const char *eol)
{
	uint64_t first = UINT64_C(0x140001000) + pick(3);

	for (uint64_t count = pick(4) ? 1 + first % 4 : 0; count--; first *= pick(60) ? 3 : 70000)
		buf_printf(text, "\t%" PRIX64 "%s", first, eol);
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

/* Result of one reading: sums, and messages about lines. */
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
	reading->tally.heap = shared_stacks_heap(&reading->pool, addr, BLOCK_HELD);
	return 0;
}

static int read_entry(void *ctx, const struct dump_entry *entry)
{
	struct reading *reading = ctx;
	struct pool_entry own = {.stack = entry->stack,
		.id_len = entry->id_len,
		.sums = {entry->block_count, entry->requested_bytes, entry->overhead_bytes}};

	for (uint32_t i = 0; i < entry->name_count; i++)
		buf_printf(&reading->said, "%.*s ", (int)entry->names[i].len, entry->names[i].text);
	shared_stacks_entries(&reading->pool, &own, 1, reading->tally.heap, false);
	block_totals_add(&reading->seen, &own.sums);
	return 0;
}

static int read_skipped(void *ctx, const struct err *why)
{
	struct reading *reading = ctx;

	buf_printf(&reading->said, "%s: %s\n", why->place, why->detail);
	return 0;
}

static size_t plain_bytes; /* number of bytes that were parsed in bulk, over all texts */

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

/* Returns everything that reading a text reports; the caller frees it. step: number of bytes per
 * read. */
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
	char *cells;
	int rc;

	sums_init(&reading.sums);
	buf_init(&reading.said);
	shared_stacks_init(&reading.pool, &reading.sums);
	tally_init(&reading.tally, &reading.pool);
	rc = dump_scan(&source, &sink, &err);
	tally_flush(&reading.tally);
	cells = canonical(&reading.sums);
	buf_printf(&reading.said, "%s\nrc %d %s %s, seen %" PRIu64 " %" PRIu64 " %" PRIu64, cells,
		rc, err.place, err.detail, reading.seen.block_count, reading.seen.requested_bytes,
		reading.seen.overhead_bytes);
	free(cells);
	tally_release(&reading.tally);
	shared_stacks_release(&reading.pool);
	sums_release(&reading.sums);
	return reading.said.data;
}

/* Reads a text both ways. The result must contain `words`. */
static void check_ways(const struct buf *text, size_t step, const char *words)
{
	char *line_by_line = read_made(text, false, SIZE_MAX);
	char *at_once = read_made(text, true, step);

	if (strcmp(line_by_line, at_once) != 0)
		print_message("%.*s\n", (int)text->len, text->data);
	assert_string_equal(at_once, line_by_line);
	assert_non_null(strstr(line_by_line, words));
	free(line_by_line);
	free(at_once);
}

TEST(sums_equal_scanners_sums)
{
	size_t bytes = 0;
	struct buf text;

	buf_init(&text);
	for (uint64_t seed = 1; seed < ROUNDS; seed++) {
		noise = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		make_text(&text);
		bytes += text.len;
		check_ways(&text, 1 + pick(5000), "");
	}
	assert_true(plain_bytes > bytes / 4); /* bulk parsing parsed enough of the text */
	buf_release(&text);
}

/* More entries and frames than one pass counts, and a stack of maximum depth. */
TEST(many_and_deep_ones_are_counted)
{
	struct buf text;

	buf_init(&text);
	add(&text, "*- - - Start of data for heap @ 230000 - - -\n");
	for (unsigned i = 0; i < 400; i++) {
		buf_printf(&text, "%X bytes in 0x%X allocations (@ 0x10 + 0x8) by: BackTrace%X\n",
			16 * (i + 1), i + 1, i);
		for (unsigned j = 0; j < (i % 100 == 50 ? 1024u + (i == 350) : i % 90); j++)
			buf_printf(&text, "\t%X\n", 0x1000 + i * j);
	}
	add(&text, "*- - - End of data for heap @ 230000 - - -\n");
	plain_bytes = 0;
	check_ways(&text, SIZE_MAX, "a stack is too deep");
	assert_true(plain_bytes > text.len / 2);
	buf_release(&text);
}

/* ---------------------------------------------------------------- pieces and threads */

/* Reads new.txt; returns the whole result and the error, if any. The caller frees the text. */
static char *read_by(const struct read_plan *plan, struct dump_sums *sums)
{
	struct err err = {0};
	struct source *source;
	char *text, *all;
	size_t len;
	int rc;

	sums_init(sums);
	assert_int_equal(source_open(&source, "new.txt", &err), 0);
	rc = sums_read_by(sums, "new.txt", source, plan, &err);
	source_close(source);
	text = canonical(sums);
	len = strlen(text) + sizeof(err.place) + sizeof(err.detail) + 40;
	all = malloc(len);
	assert_non_null(all);
	/* After an error the sums are unspecified. */
	snprintf(all, len, "%s\nrc %d %s %s", rc && rc != -ERR_CUT ? "" : text, rc,
		rc ? err.place : "", rc ? err.detail : "");
	free(text);
	return all;
}

static void check_pieces(uint64_t seed)
{
	struct dump_sums sums;
	char *in_order = read_by(NULL, &sums);
	struct source *source;

	sums_release(&sums);
	for (unsigned i = 0; i < 6; i++) {
		static const uint64_t sizes[] = {40, 97, 512, 1000, 4096, 60000};
		struct read_plan plan = {.threads = 1 + i % 4, .piece_bytes = sizes[i]};
		char *in_pieces;

		assert_int_equal(source_open(&source, "new.txt", NULL), 0);
		assert_true(source_is_plain(source, &plan.from, &plan.to));
		source_close(source);
		in_pieces = read_by(&plan, &sums);
		if (strcmp(in_order, in_pieces) != 0)
			print_message("seed %" PRIu64 ", pieces of %" PRIu64 "\n", seed, sizes[i]);
		assert_string_equal(in_order, in_pieces);
		free(in_pieces);
		sums_release(&sums);
	}
	free(in_order);
}

TEST(pieces_and_threads_change_nothing)
{
	for (uint64_t seed = 1; seed < 300; seed++) {
		struct truth truth = write_random(seed, seed & 1);
		struct dump_sums sums;

		if (!truth.has_faults) {
			free(read_by(NULL, &sums));
			assert_int_equal(sums.total.block_count, truth.total.block_count);
			assert_int_equal(sums.total.requested_bytes, truth.total.requested_bytes);
			assert_int_equal(sums.total.overhead_bytes, truth.total.overhead_bytes);
			sums_release(&sums);
		}
		check_pieces(seed);
	}
}

/* Pieces end with sums without a stack. Many of these sums were first counted for the wrong
 * heap. */
TEST(sums_without_stack_count_to_their_heap)
{
	struct maker maker = dump_new((struct maker){0});

	for (unsigned heap = 1; heap <= 100; heap++) {
		put(&maker, "*- - Start of data for heap @ %X", 0x10000 * heap);
		for (unsigned i = 0; i < 100; i++)
			put(&maker, "20 bytes in 0x2 allocations (@ 0x10 + 0x8) by: BackTrace%X",
				i % 7);
	}
	dump_end(&maker, "new.txt");
	check_pieces(0);
}

/* The lines are longer than the distance in which a cut is searched. Sums after them, which other
 * threads counted, must not count twice. */
TEST(file_that_cannot_be_cut_is_read_by_one_thread)
{
	struct maker maker = dump_new((struct maker){0});
	char *line = malloc(100001);

	assert_non_null(line);
	memset(line, '/', 100000);
	line[100000] = '\0';
	for (unsigned i = 0; i < 20000; i++) {
		put_block(&maker, 10, 8, "1", i % 3);
		if (i == 9000)
			put_lines(&maker, line);
		if (i == 9000)
			put(&maker, "%s", "");
	}
	dump_end(&maker, "new.txt");
	for (int i = 0; i < 10; i++)
		check_pieces(0);
	free(line);
}

/* Large numbers of items that are usually few. */
TEST(nothing_takes_square_of_size)
{
	struct dump_sums sums;
	struct maker maker = dump_new((struct maker){0});

	put_block(&maker, 10, 8, "1", 1);
	for (unsigned i = 0; i < 300000; i++)
		put(&maker, "%s", "");
	put(&maker, "// a comment");
	for (unsigned i = 0; i < 100000; i++) {
		put(&maker, "*- - Start of data for heap @ %X", 0x1000000 + 0x100 * i);
		write_entry(&maker, 10, 8, "1");
	}
	dump_end(&maker, "new.txt");
	free(read_by(NULL, &sums));
	assert_int_equal(sums.total.block_count, 100001);
	assert_int_equal(sums.heap_count, 100001);
	sums_release(&sums);
}

TEST(what_is_no_dump_is_none_in_pieces)
{
	static const char prose[] = "Dear reader,\n\n\n\n\tABC\n\n\n\n\n\nthis is prose.\n\n\n\n\n";
	struct dump_sums sums;
	char *all;

	write_bytes("new.txt", prose, sizeof(prose) - 1);
	all = read_by(NULL, &sums);
	assert_non_null(strstr(all, "\nrc -")); /* the dump is refused */
	free(all);
	sums_release(&sums);
	for (size_t piece = 1; piece < sizeof(prose); piece++) {
		struct read_plan plan = {
			.threads = 2, .piece_bytes = piece, .to = sizeof(prose) - 1};
		char *in_order = read_by(NULL, &sums), *in_pieces;

		sums_release(&sums);
		in_pieces = read_by(&plan, &sums);
		sums_release(&sums);
		assert_string_equal(in_order, in_pieces);
		free(in_order);
		free(in_pieces);
	}
}

/* Each id occurs twice, so far apart that a new tally begins in between. */
TEST(more_ids_than_tally_holds_are_counted)
{
	enum { COUNT = 140000 };
	struct read_plan plan = {.threads = 2, .piece_bytes = 100000};
	struct source *source;
	struct dump_sums sums;
	struct maker maker = dump_new((struct maker){0});

	for (unsigned i = 0; i < 2 * COUNT; i++) {
		put(&maker, "%X bytes + 8 at 1000 by BackTrace%X", i % COUNT + 1, i % COUNT + 7);
		if (i < COUNT)
			put(&maker, "\t%X", 0x1000 + i);
	}
	dump_end(&maker, "new.txt");
	assert_int_equal(source_open(&source, "new.txt", NULL), 0);
	assert_true(source_is_plain(source, &plan.from, &plan.to));
	source_close(source);
	for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
		free(read_by(in_pieces ? &plan : NULL, &sums));
		assert_int_equal(sums.cell_count, COUNT);
		for (size_t i = 0; i < sums.cell_count; i++) {
			const struct stack_total *cell = &sums.cells[i];
			uint64_t number = stack_frame(&sums.stacks.stacks[cell->stack], 0) - 0x1000;

			assert_int_equal(cell->sums.block_count, 2);
			assert_int_equal(cell->sums.requested_bytes, 2 * (number + 1));
		}
		sums_release(&sums);
	}
}
