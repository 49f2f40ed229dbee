/* The balance of the process in a minidump: the streams from which it comes, and what is unknown if
 * they are missing, incomplete or inconsistent. */
#include "tests/unit/t.h"

#include "tests/unit/test_minidump.h"

#include "core/dump/balance.h"

static struct balance balance;
static struct arena arena;

static void count(void)
{
	dmp_open();
	balance = (struct balance){0};
	arena_init(&arena);
	opened.target.ops->count(&opened.target, &balance, &arena);
	balance_sort_handles(&balance);
}

static void check_type(size_t i, const char *type, uint64_t handles)
{
	assert_true(i < balance.handle_count);
	assert_string_equal(balance.handles[i].type, type);
	assert_int_equal(balance.handles[i].count, handles);
}

/* ---------------------------------------------------------------- counters and handles */

TEST(figures_of_full_dump_are_known)
{
	dmp_make_full();
	count();
	assert_int_equal(balance.figures[BALANCE_PRIVATE], 8000);
	assert_int_equal(balance.figures[BALANCE_WORKING_SET], 7000);
	assert_int_equal(balance.figures[BALANCE_COMMIT_PEAK], 9000);
	assert_int_equal(balance.figures[BALANCE_THREADS], 1);
	assert_int_equal(balance.figures[BALANCE_HANDLES], 3);
	assert_int_equal(balance.handle_count, 2); /* the third has no type */
	check_type(0, "Event", 1);
	check_type(1, "File", 1);
	assert_int_equal(dmp_warnings("types"), 0);
	arena_release(&arena);
}

TEST(figures_without_stream_are_unknown)
{
	dmp_begin(0, 2);
	count();
	assert_int_equal(balance.known, 0);
	assert_int_equal(balance.handle_count, 0);
	arena_release(&arena);
}

/* Revision 2 has PrivateUsage at another place, and only if a flag is set. Windows 7 leaves
 * PagefileUsage 0. */
TEST(private_bytes_depend_on_revision)
{
	static const struct {
		struct dmp_counters counters;
		uint64_t private_bytes; /* 0: unknown */
	} rows[] = {
		{{1, 0, 1, 50, 60, 70}, 70},
		{{1, 0, 1, 0, 60, 70}, 70},
		{{1, 0, 1, 50, 60, 0}, 50},
		{{2, 4, 1, 50, 60, 70}, 70},
		{{2, 3, 1, 50, 60, 70}, 50},
		{{2, 15, 1, 0, 60, 70}, 70},
		{{2, 0, 1, 0, 60, 70}, 0},
		{{2, 4, 1, 50, 60, UINT64_MAX}, 0},
		{{3, 15, 1, 50, 60, 70}, 0},
		{{0, 15, 1, 50, 60, 70}, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		dmp_begin(1, 2);
		dmp_counters(&rows[i].counters);
		count();
		assert_int_equal(
			balance_knows(&balance, BALANCE_PRIVATE), rows[i].private_bytes != 0);
		if (rows[i].private_bytes)
			assert_int_equal(balance.figures[BALANCE_PRIVATE], rows[i].private_bytes);
		assert_int_equal(balance_knows(&balance, BALANCE_WORKING_SET),
			rows[i].counters.revision == 1 || rows[i].counters.revision == 2);
		arena_release(&arena);
	}
}

TEST(short_counters_are_unknown)
{
	static const struct dmp_counters counters = {2, 15, 1, 50, 60, 70};

	dmp_begin(1, 2);
	dmp_counters(&counters);
	dmp_set(32 + 12 * 2 + 4, 71, 4);
	count();
	assert_int_equal(balance.known, 0);
	arena_release(&arena);
	dmp_set(32 + 12 * 2 + 4, 95, 4); /* not all of PrivateUsage */
	count();
	assert_int_equal(balance.figures[BALANCE_PRIVATE], 50);
	arena_release(&arena);
}

/* Later versions may append fields. A type's name may be stored once, or for each handle. */
TEST(handles_are_counted_by_name_of_type)
{
	size_t places[6], shared;

	dmp_begin(1, 2);
	shared = dmp_write_text("Semaphore");
	places[0] = places[3] = places[4] = shared;
	places[1] = dmp_write_text("Event");
	places[2] = dmp_write_text("Semaphore");
	places[5] = dmp_write_text("Event");
	dmp_handles(places, 6, 8);
	count();
	assert_int_equal(balance.figures[BALANCE_HANDLES], 6);
	assert_int_equal(balance.handle_count, 2);
	check_type(0, "Event", 2);
	check_type(1, "Semaphore", 4);
	arena_release(&arena);
}

TEST(handles_of_cut_list_are_unknown)
{
	static const size_t places[2] = {0};
	size_t at;

	dmp_begin(1, 2);
	dmp_handles(places, 2, 0);
	at = dmp.len - (size_t)2 * 32 - 8;
	dmp_set(at, 3, 4);
	count();
	assert_false(balance_knows(&balance, BALANCE_HANDLES));
	assert_int_equal(dmp_warnings("its lists lack 1 of their entries"), 1);
	arena_release(&arena);
	dmp_set(at, 0, 4);
	count();
	assert_false(balance_knows(&balance, BALANCE_HANDLES));
	arena_release(&arena);
}

TEST(missing_names_of_types_are_reported)
{
	size_t places[3] = {1u << 30, 0, 0};

	dmp_begin(1, 2);
	places[2] = dmp_write_text("Event");
	dmp_handles(places, 3, 0);
	count();
	assert_int_equal(balance.figures[BALANCE_HANDLES], 3);
	assert_int_equal(balance.handle_count, 1);
	check_type(0, "Event", 1);
	assert_int_equal(dmp_warnings("the file lacks the types of 1 handle"), 1);
	arena_release(&arena);
}

/* Each handle's type is another part of one long string. */
TEST(overlapping_names_of_types_are_bounded)
{
	enum { HANDLES = 2000 };
	static size_t places[HANDLES];
	size_t at;

	dmp_begin(1, 2);
	at = dmp.len;
	for (size_t i = 0; i < HANDLES; i++)
		places[i] = at + 2 * i;
	dmp_write_zeros((size_t)2 * HANDLES);
	for (size_t i = 0; i < (size_t)HANDLES + 500; i++)
		dmp_set(at + 2 * i, 0x4000 + i, 2);
	dmp.len = at + (size_t)2 * (HANDLES + 500);
	dmp_handles(places, HANDLES, 0);
	count();
	assert_int_equal(balance.figures[BALANCE_HANDLES], HANDLES);
	assert_int_equal(balance.handle_count, BALANCE_HANDLES_MAX);
	assert_int_equal(dmp_warnings("the file lacks the types of 1744 handles"), 1);
	arena_release(&arena);
}

/* ---------------------------------------------------------------- address space */

struct info {
	uint64_t addr, allocation, len;
	uint32_t allocation_protect, state, protect, type;
};

enum {
	PRIVATE = 0x20000,
	MAPPED = 0x40000,
	IMAGE = 0x1000000,
	COMMIT = 0x1000,
	RESERVE = 0x2000,
	FREE = 0x10000,
};

static void write_infos(const struct info *infos, size_t info_count)
{
	size_t at = dmp_write(16, 4);

	dmp_write(48, 4);
	dmp_write(info_count, 8);
	for (size_t i = 0; i < info_count; i++) {
		dmp_write(infos[i].addr, 8);
		dmp_write(infos[i].allocation, 8);
		dmp_write(infos[i].allocation_protect, 8);
		dmp_write(infos[i].len, 8);
		dmp_write(infos[i].state, 4);
		dmp_write(infos[i].protect, 4);
		dmp_write(infos[i].type, 8);
	}
	dmp_stream(DMP_INFOS, at, dmp.len - at);
}

static int open_space(const struct info *infos, size_t info_count, unsigned architecture,
	struct target_memory **list, size_t *list_count)
{
	dmp_start(3, 2);
	dmp_system(architecture);
	dmp_modules(dmp_program, 2, 0);
	write_infos(infos, info_count);
	dmp_open();
	*list = NULL;
	*list_count = 0;
	return opened.target.ops->space(&opened.target, list, list_count);
}

/* One row for each use of memory that minidumps distinguish. */
static const struct info sound[] = {
	{0, 0, 0x10000, 0, FREE, 1, 0},
	{0x10000, 0x10000, 0x1000, 4, COMMIT, 4, PRIVATE},
	{0x11000, 0x10000, 0xf000, 4, RESERVE, 0, PRIVATE},
	{0x20000, 0x20000, 0x1000, 2, COMMIT, 2, MAPPED},
	{0x30000, 0x30000, 0x1000, 8, COMMIT, 8, MAPPED},
	{0x31000, 0x30000, 0x1000, 8, COMMIT, 4, MAPPED},
	{0x40000, 0x40000, 0x1000, 4, COMMIT, 4, MAPPED},
	{0x50000, 0x50000, 0x1000, 0x80, COMMIT, 0x20, IMAGE},
	{0x51000, 0x50000, 0x1000, 0x80, COMMIT, 0x40, IMAGE},
	{0x52000, 0x50000, 0x1000, 0x80, COMMIT, 0x80, IMAGE},
	{0x60000, 0, 0x7fffffff0000 - 0x60000, 0, FREE, 1, 0},
};

TEST(space_has_all_but_free_ranges)
{
	static const bool is_copy[] = {false, false, false, false, true, false, false, true, false};
	static const enum target_memory_type types[] = {TARGET_PRIVATE, TARGET_PRIVATE, TARGET_VIEW,
		TARGET_VIEW, TARGET_VIEW, TARGET_VIEW, TARGET_IMAGE, TARGET_IMAGE, TARGET_IMAGE};
	struct target_memory *list;
	size_t n;

	assert_int_equal(open_space(sound, 11, 9, &list, &n), 0);
	assert_int_equal(n, 9);
	for (size_t i = 0; i < n; i++) {
		const struct info *info = &sound[i + 1];

		assert_true(list[i].addr == info->addr && list[i].end == info->addr + info->len);
		assert_true(list[i].allocation == info->allocation);
		assert_int_equal(list[i].is_committed, info->state == COMMIT);
		assert_int_equal(list[i].is_copy, is_copy[i]);
		assert_int_equal(list[i].type, types[i]);
	}
	free(list);
}

TEST(addresses_of_32_bits_lose_their_sign)
{
	static const struct info infos[] = {
		{0x10000, 0x10000, 0x1000, 4, COMMIT, 4, PRIVATE},
		{0xffffffff90000000, 0xffffffff90000000, 0x1000, 4, COMMIT, 4, PRIVATE},
	};
	struct target_memory *list;
	size_t n;

	assert_int_equal(open_space(infos, 2, 0, &list, &n), 0);
	assert_int_equal(n, 2);
	assert_true(list[1].addr == 0x90000000 && list[1].allocation == 0x90000000);
	free(list);
	assert_int_equal(open_space(infos, 2, 9, &list, &n), -ERR_TARGET);
}

TEST(inconsistent_space_is_unknown)
{
	static const struct {
		size_t row;
		struct info info;
	} breaks[] = {
		{1, {0x10000, 0x10000, 0, 4, COMMIT, 4, PRIVATE}},
		{1, {0x10000, 0x10000, UINT64_MAX, 4, COMMIT, 4, PRIVATE}},
		{1, {0x10000, 0x10000, 0x2000, 4, COMMIT, 4, PRIVATE}},
		{1, {0x10000, 0x11000, 0x1000, 4, COMMIT, 4, PRIVATE}},
		{1, {0x8000, 0x8000, 0x1000, 4, COMMIT, 4, PRIVATE}},
		{1, {0x10000, 0x10000, 0x1000, 4, 0x3000, 4, PRIVATE}},
		{1, {0x10000, 0x10000, 0x1000, 4, COMMIT, 4, 0}},
		{1, {0x10000, 0x10000, 0x1000, 4, COMMIT, 4, PRIVATE | MAPPED}},
		{3, {0x20000, 0x1f000, 0x1000, 2, COMMIT, 2, MAPPED}},
		{7, {0x50000, 0x30000, 0x1000, 0x80, COMMIT, 0x20, IMAGE}},
		{10, {0x60000, 0x60000, 0x7ffffffff000, 4, COMMIT, 4, PRIVATE}},
		{10, {0x51000, 0, 0x10000, 0, FREE, 1, 0}},
	};
	struct info infos[11];
	struct target_memory *list;
	size_t n;

	for (size_t i = 0; i < sizeof(breaks) / sizeof(*breaks); i++) {
		memcpy(infos, sound, sizeof(infos));
		infos[breaks[i].row] = breaks[i].info;
		assert_int_equal(open_space(infos, 11, 9, &list, &n), -ERR_TARGET);
		assert_null(list);
		assert_int_equal(
			dmp_warnings("the list of the process's memory is inconsistent"), 1);
	}
}

TEST(missing_or_cut_space_is_unknown)
{
	struct target_memory *list = NULL;
	size_t n = 0;

	assert_int_equal(open_space(sound, 0, 9, &list, &n), -ERR_TARGET);
	assert_int_equal(dmp_warnings("inconsistent"), 0);
	dmp_begin(0, 2);
	dmp_open();
	assert_int_equal(opened.target.ops->space(&opened.target, &list, &n), -ERR_TARGET);
	dmp_begin(1, 2);
	write_infos(sound, 11);
	dmp_set(dmp.len - (size_t)11 * 48 - 8, 12, 8);
	dmp_open();
	assert_int_equal(opened.target.ops->space(&opened.target, &list, &n), -ERR_TARGET);
	assert_int_equal(dmp_warnings("its lists lack 1 of their entries"), 1);
}

/* ---------------------------------------------------------------- TEBs */

TEST(wow64_thread_has_two_tebs)
{
	static const uint64_t native[] = {DMP_TEB};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t range_count = dmp_ranges_wow64(&process, ranges), n;
	struct target_teb *tebs;

	dmp_begin(2, 2);
	dmp_threads(native, 1, 0);
	dmp_memory64(ranges, range_count);
	dmp_open();
	assert_int_equal(opened.target.bits, 32);
	assert_int_equal(opened.target.ops->tebs(&opened.target, &tebs, &n), 0);
	assert_int_equal(n, 2);
	assert_true(tebs[0].addr == DMP_TEB && tebs[0].bits == 64);
	assert_true(tebs[1].addr == DMP_TEB32 && tebs[1].bits == 32);
	free(tebs);
}

/* A thread that is ending may have no TEB. */
TEST(thread_without_teb_is_left_out)
{
	static const uint64_t native[] = {0, DMP_TEB};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t range_count = dmp_ranges_64(&process, ranges), n;
	struct target_teb *tebs;

	dmp_begin(2, 2);
	dmp_threads(native, 2, 0);
	dmp_memory64(ranges, range_count);
	count();
	assert_int_equal(balance.figures[BALANCE_THREADS], 2);
	assert_int_equal(opened.target.ops->tebs(&opened.target, &tebs, &n), 0);
	assert_int_equal(n, 1);
	assert_true(tebs[0].addr == DMP_TEB && tebs[0].bits == 64);
	free(tebs);
	arena_release(&arena);
}

/* Without a thread's TEB, its stack would count as other memory. */
TEST(tebs_are_unknown_if_file_lacks_one)
{
	static const uint64_t native[] = {DMP_TEB, 0x7ff600000};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t range_count = dmp_ranges_64(&process, ranges), n;
	struct target_teb *tebs = NULL;

	dmp_begin(3, 2);
	dmp_threads(native, 2, 0);
	write_infos(sound, 11);
	dmp_memory64(ranges, range_count);
	dmp_open();
	assert_int_equal(opened.target.ops->tebs(&opened.target, &tebs, &n), -ERR_TARGET);
	assert_null(tebs);
	assert_int_equal(dmp_warnings("the environment blocks of 1 thread, so the use"), 1);
}

TEST(threads_of_cut_list_are_unknown)
{
	struct target_teb *tebs = NULL;
	size_t n, at;

	dmp_make_full();
	at = dmp.bytes[32 + 12 * 2 + 8] | (size_t)dmp.bytes[32 + 12 * 2 + 9] << 8;
	dmp_set(at, 2, 4);
	count();
	assert_false(balance_knows(&balance, BALANCE_THREADS));
	assert_int_equal(opened.target.ops->tebs(&opened.target, &tebs, &n), -ERR_TARGET);
	assert_int_equal(dmp_warnings("its lists lack 1 of their entries"), 1);
	arena_release(&arena);
}
