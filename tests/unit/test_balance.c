/* Notes of a process's balance: what is written is read, and invalid notes are refused. */
#include "core/dump/balance.h"

#include "tests/unit/t.h"
#include "tests/unit/test_dump.h"

static int read_note(
	struct balance *balance, struct arena *arena, const char *kind, const char *pairs)
{
	struct kv kv;
	int rc;

	kv_init(&kv);
	assert_int_equal(kv_parse(&kv, pairs, strlen(pairs)), 0);
	rc = balance_note(balance, arena, kind, &kv);
	kv_release(&kv);
	return rc;
}

/* Each figure has its own power of two, so no two can be mistaken for each other. */
TEST(notes_have_all_figures)
{
	struct balance balance = {0};
	struct arena arena;
	uint64_t parts = 0;

	arena_init(&arena);
	for (int i = 0; i < BALANCE_FIGURES; i++) {
		char pair[60];

		snprintf(pair, sizeof(pair), "%s=%llu", balance_words[i].key, 1ull << i);
		assert_int_equal(read_note(&balance, &arena,
					 balance_words[i].is_count ? "counts" : "memory", pair),
			0);
		assert_true(balance_knows(&balance, i));
		assert_int_equal(balance.figures[i], 1ull << i);
		if (i >= BALANCE_BLOCKS && i <= BALANCE_SYSTEM)
			parts += 1ull << i;
	}
	assert_int_equal(balance_parts_sum(&balance), parts);
	arena_release(&arena);
}

TEST(missing_figures_are_unknown)
{
	struct balance balance = {0};
	struct arena arena;

	arena_init(&arena);
	assert_int_equal(read_note(&balance, &arena, "memory", "private=0 later-key=7"), 0);
	assert_int_equal(read_note(&balance, &arena, "counts", "threads=3 private=9"), 0);
	assert_int_equal(read_note(&balance, &arena, "others", "threads=4"), 1);
	assert_true(balance_knows(&balance, BALANCE_PRIVATE));
	assert_int_equal(balance.figures[BALANCE_PRIVATE], 0);
	assert_int_equal(balance.figures[BALANCE_THREADS], 3);
	assert_false(balance_knows(&balance, BALANCE_HANDLES));
	assert_false(balance_knows(&balance, BALANCE_GDI));
	arena_release(&arena);
}

TEST(invalid_notes_are_refused)
{
	static const char *const handles[] = {"type=Event", "count=5", "type=Event count=x",
		"type=Event count=-1", "type=Event count=99999999999999999"};
	struct balance balance = {0};
	struct arena arena;

	arena_init(&arena);
	assert_int_equal(read_note(&balance, &arena, "memory", "private=x"), -ERR_BAD_LINE);
	assert_int_equal(
		read_note(&balance, &arena, "memory", "private=72057594037927936"), -ERR_BAD_LINE);
	assert_int_equal(read_note(&balance, &arena, "counts", "threads=18446744073709551616"),
		-ERR_BAD_LINE);
	for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
		assert_int_equal(read_note(&balance, &arena, "handles", handles[i]), -ERR_BAD_LINE);
	assert_int_equal(balance.known, 0);
	assert_int_equal(balance.handle_count, 0);
	for (int i = 0; i < BALANCE_HANDLES_MAX; i++)
		assert_int_equal(read_note(&balance, &arena, "handles", "type=A count=1"), 0);
	assert_int_equal(read_note(&balance, &arena, "handles", "type=A count=1"), -ERR_BAD_LINE);
	balance_sort_handles(&balance);
	assert_int_equal(balance.handle_count, 1);
	assert_int_equal(balance_handles_of(&balance, "A"), BALANCE_HANDLES_MAX);
	assert_int_equal(balance_handles_of(&balance, "B"), 0);
	arena_release(&arena);
}

/* Returns true if the snapshot's dump contains these lines. */
static bool dump_contains(const struct snapshot *snapshot, const char *lines)
{
	size_t len;
	char *dump = written(snapshot, &len);
	bool result = strstr(dump, lines);

	free(dump);
	return result;
}

TEST(dumps_contain_what_is_known)
{
	struct snapshot snapshot;
	struct balance_handles handles[] = {{"ALPC Port", 20}, {"Section", 1}};

	snapshot_init(&snapshot);
	balance_set(&snapshot.balance, BALANCE_STACKS, 4096);
	balance_set(&snapshot.balance, BALANCE_PRIVATE, 70000);
	balance_set(&snapshot.balance, BALANCE_GDI, 0);
	snapshot.balance.handles = handles;
	snapshot.balance.handle_count = 2;
	assert_true(dump_contains(&snapshot, "// hsnap: memory private=70000 thread-stacks=4096\r\n"
					     "// hsnap: counts gdi=0\r\n"
					     "// hsnap: handles type=\"ALPC Port\" count=20\r\n"
					     "// hsnap: handles type=\"Section\" count=1\r\n"));
	snapshot.balance = (struct balance){0};
	assert_false(dump_contains(&snapshot, "// hsnap: memory"));
	assert_false(dump_contains(&snapshot, "// hsnap: counts"));
	snapshot_release(&snapshot);
}
