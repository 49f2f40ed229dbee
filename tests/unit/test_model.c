#include "tests/unit/t.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/stackset.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---------------------------------------------------------------- memory */

TEST(arena_pieces_are_apart)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, 1000, 16384, 16385, 65536, 65537, 1000000};
	enum { PIECES = 3000 };
	static unsigned char *pieces[PIECES];
	struct arena arena;

	arena_init(&arena);
	for (size_t i = 0; i < PIECES; i++) {
		size_t size = sizes[i % (i % 100 ? 6 : COUNT(sizes))];

		bool is_aligned = i % 3 != 0;

		pieces[i] = is_aligned ? arena_alloc(&arena, size) : arena_bytes(&arena, size);
		assert_non_null(pieces[i]);
		assert_true(!is_aligned || (uintptr_t)pieces[i] % 16 == 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(pieces[i][k], 0);
		memset(pieces[i], (int)(i % 251), size);
	}
	for (size_t i = 0; i < PIECES; i++) {
		size_t size = sizes[i % (i % 100 ? 6 : COUNT(sizes))];

		for (size_t k = 0; k < size; k++)
			assert_int_equal(pieces[i][k], i % 251);
	}
	assert_string_equal(arena_text(&arena, "words", 3), "wor");
	arena_release(&arena);
	assert_int_equal(arena.used_bytes, 0);
}

/* Without this setting the sanitizer would end the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void ask_for_too_much(int what)
{
	struct arena arena;
	struct buf buf;
	void *items = NULL;
	size_t cap = SIZE_MAX / 4;

	arena_init(&arena);
	buf_init(&buf);
	if (what == 0)
		arena_alloc(&arena, SIZE_MAX);
	else if (what == 1)
		buf_reserve(&buf, SIZE_MAX);
	else if (what == 2)
		buf_reserve(&buf, SIZE_MAX / 2);
	else if (what == 3)
		array_grow(&items, &cap, cap, 8);
	else if (what == 4)
		xmalloc(SIZE_MAX / 2);
	else
		xcalloc(SIZE_MAX / 2, 2);
}

TEST(running_out_of_memory_ends_program_with_line)
{
	for (int what = 0; what < 6; what++) {
		char line[2000] = "";
		int ends[2], status;
		pid_t pid;

		assert_int_equal(pipe(ends), 0);
		pid = fork();
		if (!pid) {
			dup2(ends[1], 2);
			memory_program = "prog";
			ask_for_too_much(what);
			_exit(0);
		}
		close(ends[1]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 2);
		assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
		assert_non_null(strstr(line, "prog: out of memory"));
		close(ends[0]);
	}
}

TEST(array_that_cannot_grow_stays_where_that_is_asked_for)
{
	int four = 4, *items = &four;
	size_t cap = SIZE_MAX / 4;

	assert_int_equal(array_try_grow((void **)&items, &cap, cap, sizeof(*items)), -ERR_NOMEM);
	assert_ptr_equal(items, &four);
	assert_int_equal(cap, SIZE_MAX / 4);
}

TEST(table_finds_what_was_added)
{
	enum { KEYS = 50000 };
	struct table table;

	table_init(&table);
	assert_null(table_find(&table, "a", 1));
	for (uint32_t i = 0; i < KEYS; i++)
		table_add(&table, &i, 3, i); /* the keys contain NULs */
	table_add(&table, "", 0, 77);
	assert_int_equal(table.count, KEYS + 1);
	for (uint32_t i = 0; i < KEYS; i++) {
		uint64_t *value = table_find(&table, &i, 3);

		assert_non_null(value);
		assert_int_equal(*value, i);
		*value += 1;
		assert_int_equal(*table_find(&table, &i, 3), i + 1);
		assert_null(table_find(&table, &i, 2));
	}
	assert_int_equal(*table_find(&table, "", 0), 77);
	table_release(&table);
	assert_null(table_find(&table, "", 0));
}

/* ---------------------------------------------------------------- stacks */

static uint32_t put(struct stackset *set, const char *id, size_t count, const uint64_t *frames)
{
	struct stack wanted = {.id = id, .frames = frames, .frame_count = (uint32_t)count};
	uint32_t index = STACK_NONE;

	/* Ids are not terminated: bytes after an id must not count. */
	char *bytes = malloc(strlen(id));

	for (size_t i = 0; id[i]; i++)
		bytes[i] = id[i];
	wanted.id = bytes;
	stackset_add(set, &wanted, strlen(id), &index);
	free(bytes);
	assert_true(index < set->count);
	return index;
}

TEST(frames_are_kept_however_far_apart_they_are)
{
	struct stackset set;
	uint32_t number = 0;

	stackset_init(&set);
	for (unsigned bits = 0; bits <= 64; bits++) {
		uint64_t most = bits ? UINT64_MAX >> (64 - bits) : 0;
		uint64_t frames[] = {UINT64_MAX - most, UINT64_MAX, UINT64_MAX - most / 2};
		struct stack wanted = {.id = "A", .frames = frames, .frame_count = 3};

		stackset_add(&set, &wanted, 1, &number);
		assert_int_equal(set.count, bits + 1);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(stack_frame(&set.stacks[number], i), frames[i]);
		assert_true(stack_same_frames(&set.stacks[number], &wanted));
		frames[1]--;
		assert_false(stack_same_frames(&set.stacks[number], &wanted));
	}
	stackset_release(&set);
}

TEST(stacks_of_one_id_are_kept_apart)
{
	static const uint64_t one[] = {1, 2, 3}, two[] = {1, 2, 4}, less[] = {1, 2};
	struct stackset set;
	uint32_t a, b, c, late;

	stackset_init(&set);
	late = put(&set, "LATE", 0, NULL); /* a later line states this id's stack */
	a = put(&set, "AB", 3, one);
	b = put(&set, "AB", 3, two);
	c = put(&set, "AB", 2, less);
	assert_true(a != b && b != c && a != c);
	assert_int_equal(put(&set, "AB", 3, two), b);
	assert_int_equal(put(&set, "AB", 2, less), c);
	/* Without frames the id gives its first stack. */
	assert_int_equal(put(&set, "AB", 0, NULL), a);
	assert_int_equal(set.stacks[a].same_id, b);
	assert_int_equal(set.stacks[b].same_id, c);
	assert_int_equal(set.stacks[c].same_id, STACK_NONE);
	assert_true(put(&set, "A", 3, one) != a); /* equal frames, but another id */
	assert_true(put(&set, "ABC", 3, one) != a);
	assert_int_equal(put(&set, "LATE", 3, two), late);
	assert_int_equal(set.stacks[late].frame_count, 3);
	assert_int_equal(put(&set, "LATE", 0, NULL), late);
	assert_int_equal(set.count, 6);
	assert_string_equal(set.stacks[a].id, "AB");
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(stack_frame(&set.stacks[b], i), two[i]);
	stackset_release(&set);
}

TEST(stacks_with_candidates_differ)
{
	static const uint64_t frames[] = {1, 2, 3, 4};
	static const uint32_t at1[] = {1}, at2[] = {2};
	struct stack plain = {.id = "X", .frames = frames, .frame_count = 4}, x = plain, y = plain;
	struct stackset set;
	uint32_t index[4];

	x.alias_at = at1;
	y.alias_at = at2;
	x.alias_count = y.alias_count = 1;
	stackset_init(&set);
	stackset_add(&set, &plain, 1, &index[0]);
	stackset_add(&set, &x, 1, &index[1]);
	stackset_add(&set, &y, 1, &index[2]);
	stackset_add(&set, &x, 1, &index[3]);
	assert_int_equal(set.count, 3);
	assert_int_equal(index[3], index[1]);
	assert_int_equal(set.stacks[index[2]].alias_at[0], 2);
	stackset_release(&set);
}

/* ---------------------------------------------------------------- model */

TEST(total_counts_blocks_without_stack)
{
	struct snapshot snapshot;
	struct block_totals total;

	snapshot_init(&snapshot);
	total = snapshot_total(&snapshot);
	assert_int_equal(total.block_count + total.requested_bytes + total.overhead_bytes, 0);
	for (unsigned i = 1; i <= 100; i++) {
		struct block *block = snapshot_add_block(&snapshot);

		assert_non_null(block);
		block->requested_bytes = i;
		block->overhead_bytes = 16;
	}
	for (unsigned i = 0; i < 2; i++)
		snapshot_add_heap(&snapshot)->stackless = (struct block_totals){3, 1000, 7};
	total = snapshot_total(&snapshot);
	assert_int_equal(total.block_count, 106);
	assert_int_equal(total.requested_bytes, 5050 + 2000);
	assert_int_equal(total.overhead_bytes, 1600 + 14);
	snapshot_warn(&snapshot, "%d of %s", 3, "them");
	assert_string_equal(snapshot.warnings[0], "3 of them");
	snapshot_release(&snapshot);
	assert_int_equal(snapshot.block_count, 0);
}

TEST(module_at_its_edges)
{
	struct module modules[] = {
		{.base = 0x7000, .size_bytes = 0x1000},
		{.base = UINT64_MAX - 0xfff, .size_bytes = 0x1000}, /* ends at the last address */
		{.base = 0x1000, .size_bytes = 0x1000},
		{.base = 0x2000, .size_bytes = 1},
		{.base = 0x3000, .size_bytes = 0},
	};

	modules_sort(modules, COUNT(modules));
	for (size_t i = 1; i < COUNT(modules); i++)
		assert_true(modules[i - 1].base < modules[i].base);
	assert_null(module_at(modules, COUNT(modules), 0));
	assert_null(module_at(modules, COUNT(modules), 0xfff));
	assert_ptr_equal(module_at(modules, COUNT(modules), 0x1000), &modules[0]);
	assert_ptr_equal(module_at(modules, COUNT(modules), 0x1fff), &modules[0]);
	assert_ptr_equal(module_at(modules, COUNT(modules), 0x2000), &modules[1]);
	assert_null(module_at(modules, COUNT(modules), 0x2001));
	assert_null(module_at(modules, COUNT(modules), 0x3000));
	assert_ptr_equal(module_at(modules, COUNT(modules), 0x7fff), &modules[3]);
	assert_null(module_at(modules, COUNT(modules), 0x8000));
	assert_ptr_equal(module_at(modules, COUNT(modules), UINT64_MAX), &modules[4]);
	assert_null(module_at(modules, 0, 0x1000));
	assert_null(module_at(NULL, 0, 0x1000));
	modules_sort(NULL, 0);
}

TEST(path_base_is_behind_either_slash)
{
	assert_string_equal(module_path_base("C:\\a b\\c.dll"), "c.dll");
	assert_string_equal(module_path_base("Z:\\a/c.dll"), "c.dll");
	assert_string_equal(module_path_base("c.dll"), "c.dll");
	assert_string_equal(module_path_base("c\\"), "");
	/* CP932: characters 83 5C and 95 5C */
	assert_string_equal(module_path_base("C:\\app\\\x89\xef\x8cv\x83\\\x83t\x83g.exe"),
		"\x89\xef\x8cv\x83\\\x83t\x83g.exe");
	assert_string_equal(module_path_base("C:\\\x95\\\x8e\xa6.dll"), "\x95\\\x8e\xa6.dll");
	assert_string_equal(
		module_path_base("C:\\\x97\\\x92\xe8\x95\\.exe"), "\x97\\\x92\xe8\x95\\.exe");
	/* CP1252, CP1250 and CP1251: the folder's name ends with a letter that is not ASCII */
	assert_string_equal(module_path_base("C:\\Soci\xe9t\xe9\\app.exe"), "app.exe");
	assert_string_equal(module_path_base("C:\\Tom\xe1\x9a\\app.exe"), "app.exe");
	assert_string_equal(
		module_path_base("C:\\\xcf\xf0\xee\xe3\xf0\xe0\xec\xec\xfb\\app.exe"), "app.exe");
	assert_string_equal(module_path_base("C:\\\u8868\\\u793a.dll"), "\u793a.dll");
	assert_string_equal(module_path_base(""), "");
}
