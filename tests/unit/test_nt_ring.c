/* The ring of heaps of Windows 11 24H2. The 32-bit addresses are from a real process of build
 * 26200. The offsets are from that process's dump and from ntdll's public symbols. */
#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/nt_process.h"

#define NTDLL_64 0x7ffa00000000u
#define NTDLL_32 0x77800000u
#define HEAPS 3

static struct ring {
	struct memory memory;
	struct nt_process process;
	struct err err;
	uint64_t heaps[HEAPS], entries[HEAPS], head;
} ring;

static int ring_close(void **state)
{
	(void)state;
	nt_process_release(&ring.process);
	memory_release(&ring.memory);
	fake_release();
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, ring_close

static bool is_64(void)
{
	return fake.target.bits == 64;
}

static void write_ptr(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, fake.target.bits / 8);
}

static void write_link(uint64_t from, uint64_t to)
{
	write_ptr(from, to);
	write_ptr(to + fake.target.bits / 8, from);
}

/* Returns the address of the field in which a heap points to its ring entry: _HEAP.UserContext or
 * _SEGMENT_HEAP.UserContext. */
static uint64_t context_of(unsigned i, bool is_segment)
{
	return ring.heaps[i] + (is_segment ? 0x38 : is_64() ? 0x188 : 0xdc);
}

static void write_heap(unsigned i, bool is_segment)
{
	fake_write(ring.heaps[i] + (is_64() ? 0x10 : 8), is_segment ? 0xddeeddee : 0xffeeffee, 4);
	write_ptr(context_of(i, is_segment), ring.entries[i]);
	write_ptr(ring.entries[i] + (is_64() ? 0x10 : 8), ring.heaps[i]);
}

static void read_process(void)
{
	nt_process_release(&ring.process);
	memory_clear(&ring.memory);
	assert_int_equal(
		nt_process_read(&ring.process, &ring.memory, FAKE_PEB, fake.target.bits, &ring.err),
		0);
}

/* Opens a process of build 26200 with three heaps. The PEB's list has one of them. */
static void ring_open(unsigned bits)
{
	static const uint64_t heaps[][HEAPS] = {
		{0x22e0000, 0x4270000, 0x42b0000}, {0x1dd3be60000, 0x1dd45860000, 0x1dd58c00000}};
	static const uint64_t entries[][HEAPS] = {
		{0x22e05b8, 0x22e6898, 0x22eb9b0}, {0x1dd3be60860, 0x1dd3be6d2b0, 0x1dd3be6f000}};

	ring_close(NULL);
	ring = (struct ring){0};
	fake_init();
	fake.target.bits = bits;
	assert_int_equal(memory_init(&ring.memory, &fake.target), 0);
	ring.head = (is_64() ? NTDLL_64 : NTDLL_32) + 0x2280;
	fake_map(ring.head & ~UINT64_C(0xffff), 0x10000);
	fake.modules[fake.module_count++] = (struct module){.base = ring.head & ~UINT64_C(0xffff),
		.size_bytes = 0x10000,
		.path = "C:\\Windows\\System32\\ntdll.dll"};
	for (unsigned i = 0; i < HEAPS; i++) {
		ring.heaps[i] = heaps[is_64()][i];
		ring.entries[i] = entries[is_64()][i];
		fake_map(ring.heaps[i], 0x10000);
		write_heap(i, false);
	}
	write_link(ring.head, ring.entries[0]);
	write_link(ring.entries[0], ring.entries[1]);
	write_link(ring.entries[1], ring.entries[2]);
	write_link(ring.entries[2], ring.head);
	write_ptr(FAKE_PEB + (is_64() ? 0x30 : 0x18), ring.heaps[0]);
	fake_write(FAKE_PEB + (is_64() ? 0xe8 : 0x88), 1, 4);
	write_ptr(FAKE_PEB + (is_64() ? 0xf0 : 0x90), ring.head + 0x100);
	write_ptr(ring.head + 0x100, ring.heaps[0]);
	fake_write(FAKE_PEB + (is_64() ? 0x118 : 0xa4), 10, 4);
	fake_write(FAKE_PEB + (is_64() ? 0x120 : 0xac), 26200, 2);
}

static void assert_heaps(size_t count, const char *fault)
{
	read_process();
	assert_int_equal(ring.process.heap_count, count);
	assert_memory_equal(ring.process.heaps, ring.heaps, count * sizeof(*ring.heaps));
	if (fault)
		assert_string_equal(ring.process.list_fault, fault);
	else
		assert_null(ring.process.list_fault);
}

TEST(heaps_of_ring_follow_process_heap)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		ring_open(bits);
		assert_heaps(3, NULL);
		/* A heap that is on the ring and in the PEB's list is listed once. */
		fake_write(FAKE_PEB + (is_64() ? 0xe8 : 0x88), 2, 4);
		write_ptr(ring.head + 0x100 + bits / 8, ring.heaps[1]);
		assert_heaps(3, NULL);
	}
}

TEST(segment_heap_leads_to_ring_by_its_own_field)
{
	ring_open(64);
	write_heap(0, true);
	write_heap(2, true);
	write_ptr(context_of(0, false), 0);
	write_ptr(context_of(2, false), 0);
	assert_heaps(3, NULL);
}

TEST(process_with_one_heap_has_ring_of_one)
{
	ring_open(64);
	write_link(ring.entries[0], ring.head);
	assert_heaps(1, NULL);
}

TEST(earlier_build_needs_no_ring)
{
	ring_open(64);
	write_ptr(context_of(0, false), 0);
	assert_heaps(1, "process heap without a ring of heaps");
	fake_write(FAKE_PEB + 0x120, 22000, 2);
	assert_heaps(1, NULL);
	/* In these builds the field has another meaning. */
	write_ptr(context_of(0, false), 0x77777000);
	assert_heaps(1, NULL);
}

TEST(page_heap_needs_no_ring)
{
	ring_open(64);
	write_ptr(context_of(0, false), 0);
	fake_write(FAKE_PEB + 0xbc, NT_FLAG_HPA, 4);
	assert_heaps(1, NULL);
}

TEST(broken_ring_keeps_heaps_before_and_is_fault)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		const uint64_t word = bits / 8;

		ring_open(bits);
		write_ptr(ring.entries[1], 0x66660000);
		assert_heaps(2, "unreadable ring of heaps");
		assert_int_equal(ring.process.list_fault_addr, 0x66660000);
		ring_open(bits);
		/* The ring becomes a loop without the head. */
		write_ptr(ring.entries[2], ring.entries[1]);
		assert_heaps(3, "broken ring of heaps");
		ring_open(bits);
		write_ptr(ring.entries[1], ring.entries[1]);
		assert_heaps(2, "broken ring of heaps");
		ring_open(bits);
		write_ptr(ring.entries[2] + word, ring.entries[0]);
		assert_heaps(2, "broken ring of heaps");
		ring_open(bits);
		/* The backward link does not lead to the head. */
		write_ptr(ring.entries[0] + word, ring.entries[2]);
		assert_heaps(3, "broken ring of heaps");
	}
}

TEST(heap_that_does_not_name_its_descriptor_is_fault)
{
	ring_open(64);
	write_ptr(context_of(2, false), ring.entries[1]);
	assert_heaps(2, "entry of the ring of heaps that its heap does not point back to");
	assert_int_equal(ring.process.list_fault_addr, ring.entries[2]);
	ring_open(64);
	fake_unmap(ring.heaps[2]); /* the heap was destroyed but is still on the ring */
	assert_heaps(2, "entry of the ring of heaps that its heap does not point back to");
}

TEST(ring_has_exactly_one_head)
{
	ring_open(64);
	write_link(ring.entries[2], ring.entries[0]);
	assert_heaps(3, "ring of heaps without its head");
	ring_open(64);
	write_link(ring.entries[2], ring.head + 0x40);
	write_link(ring.head + 0x40, ring.head);
	assert_heaps(3, "ring of heaps without its head");
}
