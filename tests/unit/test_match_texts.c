#include "tests/unit/t.h"

#include "tests/unit/test_match.h"

#define TEXTS_MAX 16

/* Starts dumps made by hand, in which each stack has one block of the given size. */
static void made_begin(size_t count)
{
	compared_begin(count);
	for (size_t i = 0; i < count; i++) {
		struct dump_sums *sums = &compared.dumps[i];

		sums_init(sums);
		sums->id.path = "made";
		sums->texts = xcalloc(TEXTS_MAX, sizeof(*sums->texts));
		sums->heaps = xcalloc(1, sizeof(*sums->heaps));
		sums->cells = xcalloc(TEXTS_MAX, sizeof(*sums->cells));
		sums->heap_count = 1;
	}
}

static void sums_add(
	struct dump_sums *sums, const char *id, uint64_t bytes, const char *const *texts)
{
	struct stack stack = {.id = id, .same_id = STACK_NONE, .is_named = true};
	struct stack_total *cell = &sums->cells[sums->cell_count++];
	uint64_t frames[TEXTS_MAX];

	for (; *texts; texts++) {
		frames[stack.frame_count++] = sums->text_count;
		sums->texts[sums->text_count++] = *texts;
	}
	stack.frames = frames;
	stackset_add(&sums->stacks, &stack, strlen(id), &cell->stack);
	cell->sums = (struct block_totals){1, bytes, 0};
	sums->total.block_count++;
	sums->total.requested_bytes += bytes;
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static size_t rows_of(const char *const *old, const char *const *now, enum match_mode mode)
{
	made_begin(2);
	/* A text's number is valid only within its dump. */
	sums_add(&compared.dumps[1], "other", 0, TEXTS("nothing"));
	compared.dumps[1].cells[0].sums.block_count = 0;
	sums_add(&compared.dumps[0], "A", 10, old);
	sums_add(&compared.dumps[1], "B", 30, now);
	compared_make((struct match_request){.mode = mode});
	return compared.comparison.row_count;
}

TEST(texts_match_however_their_offsets_are_spelt)
{
	static const char *const same[] = {"ntdll!RtlAllocateHeap+0x00000808",
		"ntdll!RtlAllocateHeap+808", "ntdll!RtlAllocateHeap+0X808",
		"ntdll!RtlAllocateHeap+00000808"};

	for (size_t i = 0; i < 4; i++) {
		for (enum match_mode mode = MATCH_AUTO; mode <= MATCH_SYMBOL; mode++)
			assert_int_equal(
				rows_of(TEXTS(same[i], "a!b+0x1C"), TEXTS(same[0], "a!b+1c"), mode),
				mode == MATCH_ID ? 2 : 1);
	}
	assert_int_equal(
		rows_of(TEXTS("a!b+0x0010 (c.c, 7)"), TEXTS("a!b+10 (c.c, 7)"), MATCH_AUTO), 1);
	assert_int_equal(rows_of(TEXTS("a!b+0x000"), TEXTS("a!b+0"), MATCH_AUTO), 1);
	assert_int_equal(rows_of(TEXTS("no offset"), TEXTS("no offset"), MATCH_AUTO), 1);
}

TEST(texts_that_differ_elsewhere_do_not_match)
{
	static const char *const pairs[][2] = {{"a!b+0x808", "a!b+0x80"}, {"a!b+808", "a!c+808"},
		{"a!b+808", "a!b"}, {"a!b+8 (c.c, 7)", "a!b+8 (c.c, 70)"},
		{"a!b+8 (c.c, 7)", "a!b+8"}, {"a!b+0x80", "a!b+0x800"},
		/* Here the plus sign is part of the name. */
		{"a!operator+0<X>+8", "a!operator+00<X>+8"}, {"a!b+0+8", "a!b+00+8"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		assert_int_equal(rows_of(TEXTS(pairs[i][0]), TEXTS(pairs[i][1]), MATCH_AUTO), 2);
	assert_int_equal(rows_of(TEXTS("a!b+8", "c"), TEXTS("a!b+8"), MATCH_AUTO), 2);
	assert_int_equal(rows_of(TEXTS("a!b+8", "c"), TEXTS("c", "a!b+8"), MATCH_AUTO), 2);
}

TEST(by_symbol_texts_match_by_their_function_alone)
{
	assert_int_equal(rows_of(TEXTS("a!b+8 (c.c, 7)"), TEXTS("a!b+9"), MATCH_SYMBOL), 1);
	assert_int_equal(rows_of(TEXTS("a!b+8"), TEXTS("a!c+8"), MATCH_SYMBOL), 2);
	/* If the function is unknown, the offset counts. */
	assert_int_equal(rows_of(TEXTS("a+8"), TEXTS("a+9"), MATCH_SYMBOL), 2);
	assert_int_equal(rows_of(TEXTS("a+8"), TEXTS("a+08"), MATCH_SYMBOL), 1);
}

TEST(texts_and_addresses_of_equal_numbers_are_different)
{
	uint64_t frame = 0;
	struct stack stack = {.id = "A", .same_id = STACK_NONE, .frames = &frame, .frame_count = 1};

	for (enum match_mode mode = MATCH_AUTO; mode <= MATCH_SYMBOL; mode++) {
		made_begin(2);
		for (size_t i = 0; i < 2; i++)
			sums_add(&compared.dumps[i], "A", 10, TEXTS("a!b+8"));
		stackset_add(
			&compared.dumps[1].stacks, &stack, 1, &compared.dumps[1].cells[0].stack);
		compared_make((struct match_request){.mode = mode});
		assert_int_equal(compared.comparison.row_count, mode == MATCH_ID ? 0 : 2);
	}
}

TEST(text_is_what_is_shown)
{
	const char *text;

	made_begin(1);
	sums_add(compared.dumps, "A", 10, TEXTS("one!frame+0x00000010", "two!frame+0x00000020"));
	compared_make((struct match_request){0});
	text = report_of(true);
	assert_non_null(strstr(text, "one!frame+"));
	assert_true(strstr(text, "one!frame+") < strstr(text, "two!frame+"));
}

TEST(of_two_spellings_same_is_shown_in_any_order)
{
	static const char *const spellings[] = {"a!b+0x08", "a!b+8"};
	char *first = NULL;

	for (size_t order = 0; order < 2; order++) {
		made_begin(1);
		sums_add(compared.dumps, "A", 10, TEXTS(spellings[order]));
		sums_add(compared.dumps, "A", 10, TEXTS(spellings[!order]));
		compared_make((struct match_request){0});
		assert_int_equal(compared.comparison.row_count, 1);
		assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes, 20);
		if (!first)
			first = strdup(report_of(true));
	}
	assert_string_equal(report_of(true), first);
	free(first);
}
