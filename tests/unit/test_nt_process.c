#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/nt_process.h"

#define LIST 0x500000u
#define HEAP_0 0x610000u

static struct seen {
	struct memory memory;
	struct nt_process process;
	struct err err;
} seen[1];

static int seen_close(void **state)
{
	(void)state;
	nt_process_release(&seen->process);
	memory_release(&seen->memory);
	fake_release();
	return 0;
}

/* Replaces the open process. The last process is closed after the test. */
static void seen_open(unsigned bits)
{
	seen_close(NULL);
	seen->err = (struct err){0};
	fake_init();
	fake.target.bits = bits;
	assert_int_equal(memory_init(&seen->memory, &fake.target), 0);
	fake_map(LIST, 0x1000);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, seen_close

static void put(uint16_t field, uint64_t value, size_t len)
{
	fake_write(FAKE_PEB + field, value, len);
}

/* Writes a PEB whose list has room for `count` heaps. The caller writes the heaps' addresses. The
 * offsets are those of phnt. */
static void write_peb(uint64_t first, uint32_t count)
{
	unsigned pointer = fake.target.bits / 8;
	bool is_64 = pointer == 8;

	put(is_64 ? 0x30 : 0x18, first, pointer);
	put(is_64 ? 0xe8 : 0x88, count, 4);
	put(is_64 ? 0xf0 : 0x90, LIST, pointer);
	put(is_64 ? 0xbc : 0x68, NT_FLAG_UST | 0x70, 4);
	put(is_64 ? 0x118 : 0xa4, 10, 4);
	put(is_64 ? 0x11c : 0xa8, 1, 4);
	put(is_64 ? 0x120 : 0xac, 19041, 2);
}

static void write_heap(uint32_t index, uint64_t addr)
{
	unsigned pointer = fake.target.bits / 8;

	fake_write(LIST + (uint64_t)index * pointer, addr, pointer);
}

static int read_peb(void)
{
	return nt_process_read(
		&seen->process, &seen->memory, FAKE_PEB, fake.target.bits, &seen->err);
}

/* ---------------------------------------------------------------- modules */

#define LOADER 0x540000u
#define NAMES 0x541000u
#define ENTRIES 3

/* Selects the offset for 32 or 64 bits; both are those of phnt. */
static uint64_t by_bits(uint64_t narrow, uint64_t wide)
{
	return fake.target.bits == 64 ? wide : narrow;
}

static uint64_t list_head(void)
{
	return LOADER + by_bits(0xc, 0x10);
}

static uint64_t module_entry(unsigned i)
{
	return LOADER + 0x100 * (i + 1);
}

static void write_ptr(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, fake.target.bits / 8);
}

static void write_modules(void)
{
	fake_map(LOADER, 0x1000);
	fake_map(NAMES, 0x1000);
	put((uint16_t)by_bits(0xc, 0x18), LOADER, fake.target.bits / 8);
	write_ptr(list_head(), module_entry(0));
	for (unsigned i = 0; i < ENTRIES; i++) {
		uint64_t at = module_entry(i);

		write_ptr(at, i + 1 < ENTRIES ? module_entry(i + 1) : list_head());
		write_ptr(at + by_bits(0x18, 0x30), 0x10000000 * (i + 1));
		fake_write(at + by_bits(0x20, 0x40), 0x1000 * (i + 1), 4);
		fake_write(at + by_bits(0x24, 0x48), 10, 2);
		write_ptr(at + by_bits(0x28, 0x50), NAMES + 16 * i);
		for (unsigned k = 0; k < 5; k++)
			fake_write(
				NAMES + 16 * i + 2 * k, k ? (unsigned char)"?.dll"[k] : 'a' + i, 2);
	}
}

/* Compares the parsed modules with a text such as "a.dll 10000000 1000 ...". The text is empty if
 * there is no list. */
static void assert_modules(const char *expected)
{
	struct snapshot snapshot;
	char said[200] = "";
	int rc;

	snapshot_init(&snapshot);
	memory_clear(&seen->memory);
	rc = nt_modules_read(&seen->memory, FAKE_PEB, fake.target.bits, &snapshot);
	assert_int_equal(rc, *expected ? 0 : -ERR_READ);
	for (size_t i = 0; i < snapshot.module_count; i++) {
		const struct module *module = &snapshot.modules[i];

		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s %llx %llx",
			i ? " " : "", module->path, (unsigned long long)module->base,
			(unsigned long long)module->size_bytes);
	}
	assert_string_equal(said, expected);
	snapshot_release(&snapshot);
}

TEST(modules_are_those_of_loader_s_list)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		seen_open(bits);
		write_modules();
		assert_modules("a.dll 10000000 1000 b.dll 20000000 2000 c.dll 30000000 3000");
		/* This module's path is unmapped. */
		write_ptr(module_entry(1) + by_bits(0x28, 0x50), 0x666000);
		assert_modules("a.dll 10000000 1000 ?20000000 20000000 2000 c.dll 30000000 3000");
		write_ptr(module_entry(1) + by_bits(0x18, 0x30), 0); /* and its base is 0 */
		assert_modules("a.dll 10000000 1000 c.dll 30000000 3000");
		write_ptr(module_entry(1) + by_bits(0x18, 0x30), 0x10000000);
		assert_modules("a.dll 10000000 1000 c.dll 30000000 3000");
	}
}

TEST(list_of_modules_without_end_is_none)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		static const uint64_t wild[] = {0, 0x666000, 0xfffffff0};

		seen_open(bits);
		write_modules();
		write_ptr(module_entry(2), module_entry(1));
		assert_modules("");
		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
			write_ptr(module_entry(1), wild[i]);
			assert_modules("");
		}
		write_ptr(list_head(), list_head());
		assert_modules("");
		put((uint16_t)by_bits(0xc, 0x18), 0, bits / 8);
		assert_modules("");
	}
}

/* ---------------------------------------------------------------- the command line */

#define PARAMETERS 0x520000u
#define COMMAND_LINE 0x530000u

/* The offsets are those of phnt. */
static void write_command_line(uint64_t buffer, uint16_t len)
{
	bool is_64 = fake.target.bits == 64;

	fake_map(PARAMETERS, 0x1000);
	fake_map(COMMAND_LINE, 0x1000);
	put(is_64 ? 0x20 : 0x10, PARAMETERS, fake.target.bits / 8);
	fake_write(PARAMETERS + (is_64 ? 0x70 : 0x40), len, 2);
	fake_write(PARAMETERS + (is_64 ? 0x78 : 0x44), buffer, fake.target.bits / 8);
}

static void assert_command_line(const char *expected)
{
	char *text = nt_command_line(&fake.target);

	if (expected)
		assert_string_equal(text, expected);
	else
		assert_null(text);
	free(text);
}

TEST(command_line_is_read_as_far_as_it_goes_and_is_there)
{
	static const uint16_t units[] = {'a', ' ', 0x20ac, 0xd83d, 0xde00, 0xd800, 'b'};

	for (unsigned bits = 32; bits <= 64; bits += 32) {
		seen_open(bits);
		write_command_line(COMMAND_LINE, sizeof(units));
		for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
			fake_write(COMMAND_LINE + 2 * i, units[i], 2);
		assert_command_line("a \u20ac\U0001f600\ufffdb");
		write_command_line(COMMAND_LINE, 3); /* one and a half units */
		assert_command_line("a");
		write_command_line(0, 0);
		assert_command_line("");
		write_command_line(COMMAND_LINE, 0xffff); /* the text's end is unmapped */
		assert_command_line(NULL);
		write_command_line(0x7000000, 4);
		assert_command_line(NULL);
		put(bits == 64 ? 0x20 : 0x10, 0x7000000, bits / 8);
		assert_command_line(NULL);
	}
}

/* ---------------------------------------------------------------- the PEB */

TEST(heaps_come_in_order_each_once_and_process_heap_first)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		seen_open(bits);
		static const uint64_t want[] = {HEAP_0, 0x9000000, 0x720000, 0x7640000};

		write_peb(HEAP_0, 5);
		write_heap(0, 0x9000000);
		write_heap(1, HEAP_0);
		write_heap(2, 0);
		write_heap(3, 0x720000);
		write_heap(4, 0x7640000);
		write_heap(5, 0x7777000); /* this entry is beyond the count */
		assert_int_equal(read_peb(), 0);
		assert_int_equal(seen->process.heap_count, 4);
		assert_memory_equal(seen->process.heaps, want, sizeof(want));
		assert_null(seen->process.list_fault);
		assert_int_equal(seen->process.bits, bits);
		assert_int_equal(seen->process.peb, FAKE_PEB);
		assert_int_equal(seen->process.global_flag, NT_FLAG_UST | 0x70);
		assert_int_equal(seen->process.os_major, 10);
		assert_int_equal(seen->process.os_minor, 1);
		assert_int_equal(seen->process.os_build, 19041);
	}
}

/* A duplicate entry replaces the entry of another heap, which is lost. */
TEST(heap_listed_twice_is_fault)
{
	static const uint64_t lists[][3] = {
		{HEAP_0, 0x720000, 0x9000000}, /* a valid list */
		{HEAP_0, 0x720000, 0x720000},
		{HEAP_0, 0x720000, HEAP_0},
	};

	for (size_t i = 0; i < 3; i++) {
		seen_open(64);

		write_peb(HEAP_0, 3);
		for (uint32_t k = 0; k < 3; k++)
			write_heap(k, lists[i][k]);
		assert_int_equal(read_peb(), 0);
		assert_int_equal(seen->process.heap_count, i ? 2 : 3);
		if (i)
			assert_string_equal(seen->process.list_fault, "heap that is listed twice");
		else
			assert_null(seen->process.list_fault);
	}
}

TEST(list_that_is_not_there_leaves_process_heap)
{
	seen_open(64);

	write_peb(HEAP_0, 3);
	put(0xf0, 0x1230000, 8);
	assert_int_equal(read_peb(), 0);
	assert_int_equal(seen->process.heap_count, 1);
	assert_int_equal(seen->process.heaps[0], HEAP_0);
	assert_string_equal(seen->process.list_fault, "unreadable list of heaps");
	assert_int_equal(seen->process.list_fault_addr, 0x1230000);
}

TEST(count_that_cannot_be_reads_up_to_unused_part)
{
	static const uint32_t counts[] = {HEAPS_MAX + 1, 0x80000000, 0xffffffff};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		seen_open(64);

		write_peb(HEAP_0, counts[i]);
		write_heap(0, HEAP_0);
		write_heap(1, 0x720000);
		write_heap(3, 0x55550000);
		assert_int_equal(read_peb(), 0);
		assert_int_equal(seen->process.heap_count, 2);
		assert_int_equal(seen->process.heaps[1], 0x720000);
		assert_string_equal(
			seen->process.list_fault, "list of heaps of an impossible length");
	}
}

TEST(process_without_heap_or_readable_peb_is_error)
{
	seen_open(64);

	write_peb(0, 0);
	seen->process.bits = 5;
	assert_int_equal(read_peb(), -ERR_TARGET);
	assert_int_equal(seen->err.code, ERR_TARGET);
	fake_unmap(FAKE_PEB);
	memory_clear(&seen->memory);
	assert_int_equal(read_peb(), -ERR_TARGET);
	fake.is_dead = true;
	assert_int_equal(read_peb(), -ERR_GONE);
	assert_int_equal(seen->process.bits, 5); /* open() did not change the member */
}

/* ---------------------------------------------------------------- lists */

static struct links {
	struct walk walk;
	struct nt_walk nt;
	uint64_t found[64];
	size_t count;
	int rc; /* return value of the third link's visit */
} links;

static int keep(void *ctx, uint64_t link)
{
	(void)ctx;
	assert_true(links.count < 64);
	links.found[links.count++] = link;
	return links.count == 3 ? links.rc : 0;
}

/* Links n addresses to a list. The first address is the list's head. */
static void write_list(const uint64_t *addrs, size_t n, bool is_coded)
{
	unsigned pointer = fake.target.bits / 8;

	for (size_t i = 0; i < n; i++) {
		uint64_t key = is_coded ? addrs[i] : 0;

		fake_write(addrs[i], addrs[(i + 1) % n] ^ key, pointer);
		fake_write(addrs[i] + pointer, addrs[(i + n - 1) % n] ^ key, pointer);
	}
}

static const uint64_t addrs[] = {
	LIST, LIST + 0x40, LIST + 0x20, LIST + 0x200, LIST + 0x118, LIST + 0xfe0};

static int follow(bool is_coded, int rc)
{
	struct nt_list list = {.head = LIST, .each = keep, .is_coded = is_coded};

	links = (struct links){.rc = rc};
	seen->process.bits = fake.target.bits;
	links.nt = (struct nt_walk){
		.memory = &seen->memory, .process = &seen->process, .walk = &links.walk};
	return nt_list_walk(&links.nt, &list);
}

TEST(list_is_followed_to_its_end_in_order)
{
	for (unsigned i = 0; i < 4; i++) {
		seen_open(i % 2 ? 64 : 32);

		write_list(addrs, 6, i / 2);
		assert_int_equal(follow(i / 2, 0), 0);
		assert_int_equal(links.count, 5);
		assert_memory_equal(links.found, addrs + 1, 5 * sizeof(addrs[0]));
		assert_int_equal(links.walk.broken_count, 0);
	}
}

TEST(what_each_returns_ends_list)
{
	seen_open(64);

	write_list(addrs, 6, false);
	assert_int_equal(follow(false, -ERR_NOMEM), -ERR_NOMEM);
	assert_int_equal(links.count, 3);
}

/* Redirects each link to each element. Every element must be visited at most once, and the fault
 * must be reported. */
TEST(no_list_leads_round)
{
	for (size_t from = 0; from < 6; from++) {
		for (size_t to = 0; to < 6; to++) {
			seen_open(64);

			write_list(addrs, 6, false);
			fake_write(addrs[from], addrs[to], 8);
			assert_int_equal(follow(false, 0), 0);
			assert_int_equal(links.walk.broken_count, to != (from + 1) % 6);
			assert_int_equal(links.count, to == (from + 1) % 6 ? 5 : from);
		}
	}
}

TEST(link_to_nowhere_ends_list)
{
	static const uint64_t wild[] = {0, UINT64_MAX, UINT64_MAX - 15, 0x7fff00000000};

	for (size_t i = 0; i < 4; i++) {
		seen_open(64);

		write_list(addrs, 6, false);
		fake_write(addrs[2], wild[i], 8);
		assert_int_equal(follow(false, 0), 0);
		assert_int_equal(links.count, 2);
		assert_int_equal(links.walk.broken_count, 0);
		assert_int_equal(links.walk.missing_count, 1);
		assert_int_equal(links.walk.missing_addr, wild[i]);
		assert_string_equal(links.walk.missing_what, "unreadable list");
	}
}
