/* The hooks for virtual memory, with a simulated system below them, including operations that this
 * system lacks or refuses (placeholders, partial release). Prints TAP. */
#include <stdio.h>
#include <string.h>

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/hooks.h"
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"
#include "snapshot/tracer/unwind.h"
#include "tests/win/tap.h"

#define PAGES_MAX 16
#define NODES_BYTES 65536
#define ODD_BITS ((uint64_t)0xdeadbeef00000000) /* bits above those of a ULONG or NTSTATUS */
#define REFUSED 0xc0000001u /* STATUS_UNSUCCESSFUL */

#define RESERVE_PLACEHOLDER 0x40000u
#define REPLACE_PLACEHOLDER 0x4000u
#define PRESERVE_PLACEHOLDER 2u
#define COALESCE_PLACEHOLDERS 1u

struct tracer_area hsnap_tracer;

static char *base; /* real memory, because the hooks may query the system about it */

/* ---------------------------------------------------------------- dependencies of the hooks */

static enum guard guard;
static uint32_t stack; /* the caller's stack */
static const void *last_caller;
static struct pages forgotten;
static unsigned forgotten_count;

enum guard guard_now(void)
{
	return guard;
}

uint32_t record_stack(const void *caller)
{
	last_caller = caller;
	return stack;
}

void unwind_forget(uint64_t from, uint64_t to)
{
	forgotten = (struct pages){from, to};
	forgotten_count++;
}

bool memory_commit(void *at, uint64_t bytes)
{
	return VirtualAlloc(at, bytes, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

void memory_decommit(void *at, uint64_t bytes)
{
	VirtualFree(at, bytes, MEM_DECOMMIT);
}

uint32_t memory_thread_id(void)
{
	return GetCurrentThreadId();
}

bool memory_is_in_heap(void)
{
	return false;
}

uintptr_t *memory_thread_word(void)
{
	return NULL;
}

bool memory_wait_hsnap(struct memory_patience *patience)
{
	(void)patience;
	return false;
}

bool memory_may_wait(struct memory_patience *patience, uint64_t limit)
{
	(void)limit;
	return memory_wait(patience);
}

bool memory_wait(struct memory_patience *patience)
{
	return patience->tries++ < 1000;
}

/* ---------------------------------------------------------------- simulated system */

static uint64_t answer; /* value that the simulated system returns */
static uint64_t seen[10]; /* arguments that it received */
static unsigned listed_then; /* number of ranges that a reader outside sees during the call */
static void (*meanwhile)(void);

static const struct tracer_range *nodes(void)
{
	return (const struct tracer_range *)(uintptr_t)hsnap_tracer.ranges.nodes;
}

static unsigned listed(void)
{
	unsigned live = 0;

	for (uint32_t i = 0; i < hsnap_tracer.ranges.node_count; i++)
		live += nodes()[i].kind != RANGE_NONE;
	return live;
}

typedef uint64_t u64;
typedef u64(WINAPI *function)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

/* The simulated function that every hook calls. Arguments that the hook does not pass are arbitrary
 * words of the stack. */
static u64 WINAPI the_system(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j)
{
	memcpy(seen, (const u64[]){a, b, c, d, e, f, g, h, i, j}, sizeof(seen));
	listed_then = listed();
	if (meanwhile)
		meanwhile();
	return answer;
}

static void set_up(void)
{
	static const enum tracer_hook_id hooked[] = {HOOK_VIRTUAL_ALLOCATE,
		HOOK_VIRTUAL_ALLOCATE_EX, HOOK_VIRTUAL_FREE, HOOK_MAP, HOOK_MAP_EX, HOOK_UNMAP,
		HOOK_UNMAP_EX};

	hsnap_tracer.limit_bytes = NODES_BYTES;
	hsnap_tracer.ranges.node_limit = NODES_BYTES / sizeof(struct tracer_range);
	hsnap_tracer.ranges.nodes =
		(uintptr_t)VirtualAlloc(NULL, NODES_BYTES, MEM_RESERVE, PAGE_READWRITE);
	hsnap_tracer.state = TRACER_ON;
	hooks_virtual_init();
	for (size_t i = 0; i < sizeof(hooked) / sizeof(*hooked); i++)
		hsnap_tracer.hooks[hooked[i]].original = (uintptr_t)the_system;
	base = VirtualAlloc(NULL, PAGES_MAX * TRACER_PAGE, MEM_RESERVE, PAGE_READWRITE);
}

/* ---------------------------------------------------------------- calls */

#define SELF ((u64)-1)

/* Extra arguments do no harm, because the caller removes them from the stack. */
static u64 call(enum tracer_hook_id id, const u64 words[10])
{
	return ((function)(uintptr_t)hsnap_tracer.hooks[id].hook)(words[0], words[1], words[2],
		words[3], words[4], words[5], words[6], words[7], words[8], words[9]);
}
#define CALL(id, ...) call(id, (const u64[10]){__VA_ARGS__})

static u64 addr_of(unsigned page)
{
	return (uintptr_t)base + page * TRACER_PAGE;
}

struct named {
	PVOID at;
	SIZE_T bytes;
};

static struct named named(unsigned from, unsigned to)
{
	return (struct named){(PVOID)(uintptr_t)addr_of(from), (to - from) * TRACER_PAGE};
}

static void allocate(unsigned from, unsigned to, u64 type, uint32_t by)
{
	struct named what = named(from, to);

	stack = by;
	CALL(HOOK_VIRTUAL_ALLOCATE, SELF, (u64)&what.at, 0, (u64)&what.bytes, type, PAGE_READWRITE);
}

static void free_pages(unsigned from, unsigned to, u64 type)
{
	struct named what = named(from, to);

	CALL(HOOK_VIRTUAL_FREE, SELF, (u64)&what.at, (u64)&what.bytes, type);
}

/* Returns true if the table's nodes have these pages, allocation, kind and stacks. */
static bool is(unsigned from, unsigned to, unsigned allocation, uint32_t kind, uint32_t by,
	uint32_t reserved_by)
{
	for (uint32_t i = 0; i < hsnap_tracer.ranges.node_count; i++) {
		const struct tracer_range *node = &nodes()[i];

		if (node->kind == kind && node->start == addr_of(from) &&
			node->end == addr_of(to) && node->allocation == addr_of(allocation) &&
			node->stack == by && node->reserve_stack == reserved_by)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- */

static void check_passing_on(void)
{
	struct named what = named(0, 1);
	u64 at = (u64)&what.at, bytes = (u64)&what.bytes, o = ODD_BITS;
	const struct {
		const char *name;
		enum tracer_hook_id id;
		unsigned count;
		u64 words[10];
	} calls[] = {
		{"NtAllocateVirtualMemory", HOOK_VIRTUAL_ALLOCATE, 6,
			{SELF, at, o | 1, bytes, o | 2, o | 3}},
		{"NtAllocateVirtualMemoryEx", HOOK_VIRTUAL_ALLOCATE_EX, 7,
			{SELF, at, bytes, o | 2, o | 3, o | 4, o | 5}},
		{"NtFreeVirtualMemory", HOOK_VIRTUAL_FREE, 4, {SELF, at, bytes, o | MEM_RELEASE}},
		{"NtMapViewOfSection", HOOK_MAP, 10,
			{o | 1, SELF, at, o | 2, o | 3, o | 4, bytes, o | 5, o | 6, o | 7}},
		{"NtMapViewOfSectionEx", HOOK_MAP_EX, 9,
			{o | 1, SELF, at, o | 2, bytes, o | 3, o | 4, o | 5, o | 6}},
		{"NtUnmapViewOfSection", HOOK_UNMAP, 2, {SELF, o | 1}},
		{"NtUnmapViewOfSectionEx", HOOK_UNMAP_EX, 3, {SELF, o | 1, o | 2}},
	};

	answer = o | REFUSED;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		memset(seen, 0, sizeof(seen));
		printf("# %s\n", calls[i].name);
		ok(call(calls[i].id, calls[i].words) == answer &&
				!memcmp(seen, calls[i].words, calls[i].count * sizeof(*seen)),
			"all words are passed on as they came, and the answer");
	}
	ok(what.at == base && what.bytes == TRACER_PAGE && !listed(),
		"what is refused is not recorded");
	answer = ODD_BITS;
}

static void check_release_of_a_part(void)
{
	allocate(0, 16, MEM_RESERVE, 1);
	allocate(2, 6, MEM_COMMIT, 2);
	answer = REFUSED;
	free_pages(4, 8, MEM_RELEASE);
	ok(listed_then == 5 && listed() == 3 && is(0, 2, 0, RANGE_RESERVED, 1, 0) &&
			is(2, 6, 0, RANGE_COMMITTED, 2, 1) && is(6, 16, 0, RANGE_RESERVED, 1, 0),
		"a part that may not be released is listed all the time, and stays");
	answer = ODD_BITS;
	free_pages(4, 8, MEM_RELEASE);
	ok(listed() == 3 && is(0, 2, 0, RANGE_RESERVED, 1, 0) &&
			is(2, 4, 0, RANGE_COMMITTED, 2, 1) && is(8, 16, 8, RANGE_RESERVED, 1, 0),
		"a part that is released goes, and what lies behind it is an allocation of its "
		"own");
	free_pages(0, 0, MEM_RELEASE);
	ok(listed() == 1 && is(8, 16, 8, RANGE_RESERVED, 1, 0), "each goes");
	free_pages(8, 8, MEM_RELEASE);
	ok(!listed(), "by itself");
}

static void check_placeholders(void)
{
	struct named view = named(4, 8);

	allocate(0, 16, MEM_RESERVE | RESERVE_PLACEHOLDER, 1);
	free_pages(4, 8, MEM_RELEASE | PRESERVE_PLACEHOLDER);
	ok(listed() == 3 && is(0, 4, 0, RANGE_RESERVED, 1, 0) &&
			is(4, 8, 4, RANGE_RESERVED, 1, 0) && is(8, 16, 8, RANGE_RESERVED, 1, 0),
		"a placeholder is split in three");
	allocate(4, 8, MEM_RESERVE | MEM_COMMIT | REPLACE_PLACEHOLDER, 2);
	ok(listed() == 3 && is(4, 8, 4, RANGE_COMMITTED, 2, 1), "and replaced by memory");
	free_pages(4, 8, MEM_RELEASE | PRESERVE_PLACEHOLDER);
	ok(listed() == 3 && is(4, 8, 4, RANGE_RESERVED, 1, 0), "which gives it back");
	stack = 3;
	CALL(HOOK_MAP_EX, 7, SELF, (u64)&view.at, 0, (u64)&view.bytes, REPLACE_PLACEHOLDER, 4, 0,
		0);
	ok(listed() == 3 && is(4, 8, 4, RANGE_MAPPED, 3, 1), "and replaced by a view");
	answer = REFUSED;
	CALL(HOOK_UNMAP_EX, SELF, addr_of(6), PRESERVE_PLACEHOLDER);
	ok(listed() == 3 && is(4, 8, 4, RANGE_MAPPED, 3, 1), "which stays when that is refused");
	answer = 0;
	CALL(HOOK_UNMAP_EX, SELF, addr_of(6), PRESERVE_PLACEHOLDER);
	ok(listed() == 3 && is(4, 8, 4, RANGE_RESERVED, 1, 0), "and gives it back");
	free_pages(0, 16, MEM_RELEASE | COALESCE_PLACEHOLDERS);
	ok(listed() == 1 && is(0, 16, 0, RANGE_RESERVED, 1, 0), "the three become one");
	free_pages(0, 0, MEM_RELEASE);
	ok(!listed(), "and go");
	allocate(2, 4, MEM_RESERVE | MEM_COMMIT | REPLACE_PLACEHOLDER, 2);
	ok(listed() == 1 && is(2, 4, 2, RANGE_COMMITTED, 2, 2),
		"one from before is its replacer's");
	free_pages(2, 2, MEM_RELEASE);
}

/* Another thread allocates the memory between the call and its return. */
static void somebody_else(void)
{
	meanwhile = NULL;
	answer = 0;
	allocate(0, 8, MEM_RESERVE, 5);
}

static void check_other_threads(void)
{
	allocate(0, 16, MEM_RESERVE | MEM_COMMIT, 1);
	meanwhile = somebody_else;
	free_pages(0, 0, MEM_RELEASE);
	ok(listed() == 1 && is(0, 8, 0, RANGE_RESERVED, 5, 0),
		"what another thread gets before the call returns is its");
	free_pages(0, 0, MEM_RELEASE);
}

static void check_views(void)
{
	struct named view = named(3, 9);
	struct named image = {(PVOID)(uintptr_t)&hsnap_tracer, TRACER_PAGE};

	stack = 4;
	CALL(HOOK_MAP, 7, SELF, (u64)&view.at, 0, 0, 0, (u64)&view.bytes, 1, 0, 4);
	ok(listed() == 1 && is(3, 9, 3, RANGE_MAPPED, 4, 0), "a view");
	allocate(4, 5, MEM_COMMIT, 6);
	free_pages(4, 5, MEM_DECOMMIT);
	ok(listed() == 1, "commits inside of it change nothing");
	answer = REFUSED;
	CALL(HOOK_UNMAP, SELF, addr_of(8));
	ok(listed() == 1 && is(3, 9, 3, RANGE_MAPPED, 4, 0), "which is not unmapped");
	answer = 0;
	CALL(HOOK_UNMAP, SELF, addr_of(8));
	ok(!listed() && !forgotten_count, "which is unmapped by any address in it");
	CALL(HOOK_MAP, 7, SELF, (u64)&image.at, 0, 0, 0, (u64)&image.bytes, 1, 0, 4);
	ok(!listed(), "an image is no view");
	CALL(HOOK_UNMAP, SELF, (u64)&hsnap_tracer);
	ok(forgotten_count == 2 && forgotten.from == (uintptr_t)GetModuleHandleW(NULL) &&
			forgotten.to > (uintptr_t)&hsnap_tracer && !(forgotten.to % TRACER_PAGE),
		"its return addresses are forgotten before and after");
}

static void check_who_counts(void)
{
	struct named what = named(0, 4);

	guard = GUARD_HEAP;
	allocate(0, 4, MEM_RESERVE | MEM_COMMIT, 1);
	guard = GUARD_TRACER;
	allocate(0, 4, MEM_RESERVE | MEM_COMMIT, 1);
	guard = GUARD_NONE;
	hsnap_tracer.state = TRACER_OFF;
	allocate(0, 4, MEM_RESERVE | MEM_COMMIT, 1);
	hsnap_tracer.state = TRACER_ON;
	CALL(HOOK_VIRTUAL_ALLOCATE, 0xabcc, (u64)&what.at, 0, (u64)&what.bytes, MEM_RESERVE,
		PAGE_READWRITE);
	ok(!listed(), "heaps, the tracer, after it, for others: not recorded");
	last_caller = NULL;
	CALL(HOOK_VIRTUAL_ALLOCATE, SELF, (u64)&what.at, 0, (u64)&what.bytes, MEM_RESERVE,
		PAGE_READWRITE);
	ok(listed() == 1 && (uintptr_t)last_caller > (uintptr_t)check_who_counts - 0x10000 &&
			(uintptr_t)last_caller < (uintptr_t)check_who_counts + 0x10000,
		"else it is, and who called is told");
	CALL(HOOK_VIRTUAL_FREE, 0xabcc, (u64)&what.at, (u64)&what.bytes, MEM_RELEASE);
	ok(listed() == 1, "freed in another process: it stays here");
	guard = GUARD_HEAP;
	free_pages(0, 0, MEM_RELEASE);
	guard = GUARD_NONE;
	ok(!listed(), "who frees it does not matter");
	allocate(0, 4, MEM_RESET, 1);
	allocate(0, 4, 0x1000000 /* MEM_RESET_UNDO */, 1);
	ok(!listed(), "MEM_RESET is no allocation");
}

static struct ring_area *rings;

/* Removes all events; returns how many of this type there were since the last call. */
static unsigned said(unsigned type, uint32_t by)
{
	struct ring *ring = &rings->rings[RING_SHARED];
	const struct ring_event *events = ring_events(rings, 1, RING_LOG2_MIN, RING_SHARED);
	unsigned count = 0;

	for (; ring->tail != ring->head; ring->tail++) {
		const struct ring_event *event = &events[ring->tail & ring->events_mask];

		count += event->type == type && tracer_block_stack(&event->block) == by;
	}
	return count;
}

/* The stacks of frees are recorded only for a recording. */
static void check_who_frees(void)
{
	struct named view = named(3, 9);

	allocate(0, 8, MEM_RESERVE | MEM_COMMIT, 1);
	last_caller = NULL;
	free_pages(0, 0, MEM_RELEASE);
	ok(!last_caller && !listed(), "nobody asks who frees");
	rings = VirtualAlloc(NULL, (SIZE_T)ring_area_bytes(1, RING_LOG2_MIN),
		MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	ring_area_init(rings, 1, RING_LOG2_MIN, 0);
	hsnap_tracer.rings = (uintptr_t)rings;
	allocate(0, 8, MEM_RESERVE | MEM_COMMIT, 1);
	ok(said(RING_RANGE_ADD, 1) == 1, "but for a recording");
	stack = 2;
	free_pages(2, 4, MEM_DECOMMIT);
	ok(said(RING_RANGE_GIVE_UP, 2) == 1, "a decommit has its own stack");
	ok((uintptr_t)last_caller > (uintptr_t)check_who_frees - 0x10000 &&
			(uintptr_t)last_caller < (uintptr_t)check_who_frees + 0x10000,
		"that of its caller");
	guard = GUARD_HEAP;
	free_pages(4, 5, MEM_DECOMMIT);
	guard = GUARD_NONE;
	ok(said(RING_RANGE_GIVE_UP, 0) == 1, "a heap's has none");
	stack = 3;
	free_pages(0, 0, MEM_RELEASE);
	ok(said(RING_RANGE_TAKE, 3) == 1 && !listed(), "and a release");
	CALL(HOOK_MAP, 7, SELF, (u64)&view.at, 0, 0, 0, (u64)&view.bytes, 1, 0, 4);
	stack = 4;
	CALL(HOOK_UNMAP, SELF, addr_of(8));
	ok(said(RING_RANGE_TAKE, 4) == 1 && !listed(), "and an unmapping");
	allocate(0, 16, MEM_RESERVE | RESERVE_PLACEHOLDER, 1);
	free_pages(4, 8, MEM_RELEASE | PRESERVE_PLACEHOLDER);
	stack = 5;
	view = named(4, 8);
	CALL(HOOK_MAP_EX, 7, SELF, (u64)&view.at, 0, (u64)&view.bytes, REPLACE_PLACEHOLDER, 4, 0,
		0);
	CALL(HOOK_UNMAP_EX, SELF, addr_of(6), PRESERVE_PLACEHOLDER);
	ok(said(RING_RANGE_GIVE_UP, 5) == 1, "and what becomes a placeholder again");
	free_pages(0, 16, MEM_RELEASE | COALESCE_PLACEHOLDERS);
	free_pages(0, 0, MEM_RELEASE);
	hsnap_tracer.rings = 0;
	ok(!listed(), "all of it went");
}

int main(void)
{
	set_up();
	check_passing_on();
	check_release_of_a_part();
	check_placeholders();
	check_other_threads();
	check_views();
	check_who_counts();
	check_who_frees();
	ok(!hsnap_tracer.dropped_ranges && hsnap_tracer.ranges.changing % 2 == 0,
		"nothing was dropped");
	return ok_end();
}
