#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700
#include "tests/unit/test_diff.h"

#include "diff/read/stack_store.h"
#include "diff/read_files.h"

#define CELLS 4000

/* splitmix64 */
static uint64_t random_number(uint64_t *state)
{
	uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);

	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint64_t random_size(uint64_t *state)
{
	uint64_t value = random_number(state);

	return value >> random_number(state) % 64;
}

static void make_cells(struct stack_total *cells, size_t count, uint64_t seed)
{
	static const uint32_t stacks[] = {0, 1, STACK_NONE, STACK_NONE - 1, 127, 128};

	for (size_t i = 0; i < count; i++) {
		uint32_t next = i ? cells[i - 1].stack + 1 : 0;
		uint64_t kind = random_number(&seed) % 8;

		cells[i] = (struct stack_total){
			.stack = kind < 5 ? next : (uint32_t)random_size(&seed),
			.heap = kind % 2 ? 0 : (uint32_t)random_size(&seed),
			.is_bare = kind == 3,
			.sums = {kind == 4 ? 1 : random_size(&seed), random_size(&seed),
				random_size(&seed)}};
		if (kind == 7)
			cells[i].stack = stacks[random_number(&seed) % 6];
	}
	cells[count / 2].sums = (struct block_totals){UINT64_MAX, UINT64_MAX, UINT64_MAX};
	cells[count / 3].sums = (struct block_totals){0};
}

static void check_cells(const struct dump_sums *sums, const struct stack_total *want, size_t count)
{
	struct cell_walk walk = stack_totals_walk(sums);

	for (size_t i = 0; i < count; i++) {
		const struct stack_total *cell = stack_totals_next(&walk);

		assert_non_null(cell);
		assert_int_equal(cell->stack, want[i].stack);
		assert_int_equal(cell->heap, want[i].heap);
		assert_int_equal(cell->is_bare, want[i].is_bare);
		assert_memory_equal(&cell->sums, &want[i].sums, sizeof(cell->sums));
	}
	assert_null(stack_totals_next(&walk));
	assert_null(stack_totals_next(&walk));
}

TEST(packed_cells_are_same)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		size_t count = seed ? CELLS : 1;
		struct dump_sums sums;
		struct stack_total *want = calloc(count, sizeof(*want));

		sums_init(&sums);
		sums.cells = calloc(count, sizeof(*want));
		assert_true(want && sums.cells);
		make_cells(want, count, seed);
		memcpy(sums.cells, want, count * sizeof(*want));
		sums.cell_count = count;
		check_cells(&sums, want, count);
		stack_totals_pack(&sums);
		assert_true(!sums.cells && sums.packed_cells);
		check_cells(&sums, want, count);
		sums_release(&sums);
		free(want);
	}
}

/* ---------------------------------------------------------------- modules */

static struct dump_sums with_modules(const struct module *modules, size_t count)
{
	struct dump_sums sums;

	sums_init(&sums);
	sums.module_list.items = calloc(count + 1, sizeof(*modules));
	assert_non_null(sums.module_list.items);
	for (size_t i = 0; i < count; i++) {
		sums.module_list.items[i] = modules[i];
		sums.module_list.items[i].path = arena_text(
			&sums.module_list.texts, modules[i].path, strlen(modules[i].path));
		assert_non_null(sums.module_list.items[i].path);
	}
	sums.module_list.count = count;
	return sums;
}

TEST(modules_are_lent_to_those_that_have_same)
{
	const struct module made[] = {
		{.base = 0x1000, .size_bytes = 16, .path = "a.exe"}, {.base = 0x2000,
									     .size_bytes = 32,
									     .path = "b.dll",
									     .pdb = "b.pdb",
									     .pdb_guid = "0123",
									     .pdb_age = 1,
									     .timestamp = 2,
									     .checksum = 3,
									     .has_identity = true}};
	struct module other[11][2];
	struct stack_store *store = stack_store_new();
	struct dump_sums first = with_modules(made, 2), same = with_modules(made, 2);
	struct dump_sums none = with_modules(made, 0), fewer = with_modules(made, 1), changed;

	assert_non_null(store);
	stack_store_add(store, &first);
	stack_store_add(store, &fewer);
	stack_store_add(store, &none);
	stack_store_add(store, &same);
	assert_ptr_equal(first.module_list.items, same.module_list.items);
	assert_ptr_not_equal(first.module_list.items, fewer.module_list.items);
	assert_int_equal(none.module_list.count, 0);
	for (size_t i = 0; i < 11; i++)
		memcpy(other[i], made, sizeof(made));
	other[0][1].base++;
	other[1][1].size_bytes++;
	other[2][1].path = "c.dll";
	other[3][1].pdb = "c.pdb";
	other[4][1].pdb = NULL;
	other[5][1].pdb_guid = "0124";
	other[6][1].pdb_age++;
	other[7][1].timestamp++;
	other[8][1].checksum++;
	other[9][1].has_identity = false;
	other[10][0].unloaded_at = 7;
	for (size_t i = 0; i < 11; i++) {
		changed = with_modules(other[i], 2);
		stack_store_add(store, &changed);
		assert_ptr_not_equal(changed.module_list.items, first.module_list.items);
		assert_memory_equal(
			&changed.module_list.items[0].base, &other[i][0].base, sizeof(uint64_t));
		sums_release(&changed);
	}
	sums_release(&first); /* the borrowed modules stay valid */
	assert_string_equal(same.module_list.items[1].path, "b.dll");
	sums_release(&same);
	sums_release(&fewer);
	sums_release(&none);
	assert_ptr_equal(stack_store_text(store, "a"), stack_store_text(store, "a"));
	assert_string_equal(stack_store_text(store, ""), "");
	stack_store_free(store);
}

/* ---------------------------------------------------------------- heads */

#define NOTES                                                                                      \
	"// hsnap: dump format=1 tool=0 time=2026-11-20T10:00:00.250Z\n"                           \
	"// hsnap: process id=7 start=2026-11-20T09:00:00.000Z bits=64 image=C:\\\\x\\\\app.exe\n"
#define BANNER "// UMDH: version 6.1: Logtime 2010-05-04 10:11 - Machine=BOX - PID=4711\n"
#define MODULES                                                                                    \
	"// Loaded modules: \n//     Base Size Module\n//     400000     1000 C:\\app.exe\n"       \
	"//     500000     1000 C:\\b.dll\n//\n// Process modules enumerated.\n"
#define ENTRY                                                                                      \
	"*- - - - - - - - - - Start of data for heap @ 1E0000 - - - - - - - - - -\n"               \
	"10 bytes + 8 at 1000 by BackTrace1\n\t401000\n\n"                                         \
	"*- - - - - - - - - - End of data for heap @ 1E0000 - - - - - - - - - -\n"

static int read_head(struct dump_sums *sums, const char *path)
{
	struct source *source;
	int rc;

	sums_init(sums);
	assert_int_equal(source_open(&source, path, NULL), 0);
	rc = sums_read_head(sums, path, source, NULL);
	source_close(source);
	return rc;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

TEST(head_has_same_facts_as_whole_dump)
{
	static const char *const texts[] = {NOTES ENTRY, NOTES MODULES ENTRY, BANNER MODULES ENTRY,
		BANNER ENTRY, MODULES ENTRY, BANNER NOTES ENTRY, NOTES BANNER MODULES ENTRY,
		"// hsnap: dump format=1 tool=0\n" BANNER MODULES ENTRY,
		"// hsnap: process id=9\n" BANNER MODULES ENTRY,
		"// hsnap: dump format=1 time=2026-11-20T10:00:00Z\n" MODULES ENTRY,
		"// UMDH: version 6: Logtime 2010-05-04 10:11 - PID=12\n" BANNER MODULES ENTRY};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct dump_sums head, all;

		write_bytes("old.txt", texts[i], strlen(texts[i]));
		(void)read_sums(&all, "old.txt"); /* the end mark may be missing */
		sums_copy_banner(&all);
		assert_int_equal(read_head(&head, "old.txt"), 0);
		assert_string_equal(head.id.path, "old.txt");
		assert_int_equal(head.id.pid, all.id.pid);
		assert_true(
			head.id.time_ms == all.id.time_ms && head.id.start_ms == all.id.start_ms);
		assert_int_equal(head.id.has_wall_time, all.id.has_wall_time);
		assert_true(same_text(head.id.image, all.id.image));
		if (!all.id.image) {
			assert_int_equal(head.module_list.count, all.module_list.count);
			for (size_t k = 0; k < all.module_list.count; k++)
				assert_string_equal(head.module_list.items[k].path,
					all.module_list.items[k].path);
		}
		sums_release(&all);
		sums_release(&head);
	}
}

TEST(uncertain_heads_are_reported)
{
	static const struct {
		const char *text;
		int rc;
	} cases[] = {
		{"", -ERR_EMPTY},
		{"no dump\n", -ERR_NOT_DUMP},
		{"// hsnap: dump format=99\n" ENTRY, -ERR_VERSION},
		{"// hsnap: dump format=1 time=soon\n" ENTRY, -ERR_BAD_LINE},
		{"// hsnap: dump format=1\n// hsnap: process id=x\n" ENTRY, -ERR_BAD_LINE},
		{"// hdiff 0.1.0: growth by stack, decimal\n" NOTES ENTRY, -ERR_NOT_DUMP},
		{"+ 10 ( 20 - 10) 1 allocs BackTrace1\n" NOTES ENTRY, -ERR_NOT_DUMP},
	};
	struct buf long_head;
	struct dump_sums head;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_bytes("old.txt", cases[i].text, strlen(cases[i].text));
		assert_int_equal(read_head(&head, "old.txt"), cases[i].rc);
		sums_release(&head);
	}
	buf_init(&long_head);
	buf_add_text(&long_head, BANNER "// Loaded modules: \n");
	for (unsigned i = 0; i < 2000; i++)
		buf_printf(&long_head, "//  %X 1000 C:\\module%u.dll\n", 4096 * i, i);
	buf_add_text(&long_head, "//\n// Process modules enumerated.\n" ENTRY);
	assert_true(long_head.len > 65536);
	write_bytes("old.txt", long_head.data, long_head.len);
	assert_int_equal(read_head(&head, "old.txt"), 1);
	sums_release(&head);
	buf_release(&long_head);
}
