/* A small, valid process with one of Wine's heaps and with the tracer. An input patches the
 * process's memory: its first byte selects the options of the snapshot, and the rest are patches.
 * The heap's layout follows the known facts about Wine 8.0, the DLL's follows Microsoft's "PE
 * Format", and the tables' follows snapshot/tracer/shared.h. */
#include "core/base/err.h"
#include "core/base/memory.h"
#include "snapshot/tracer/shared.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_capture.h"

/* Addresses of all parts, one after another from BASE. */
enum {
	BASE = 0x10000,
	PEB = BASE,
	HEAP = BASE + 0x1000,
	HEAP_BYTES = 0x1000,
	DLL = BASE + 0x2000,
	AREA = DLL + 0x1100,
	DLL_BYTES = 0x18000,
	TABLE = DLL + DLL_BYTES,
	STACKS = TABLE + 0x1000,
	RANGES = STACKS + 0x1000,
	MODULES = RANGES + 0x1000,
	UNLOADS = MODULES + 0x1000,
	END = UNLOADS + 0x1000,
};
enum { BLOCK_USED = 0x5355, BLOCK_FREE = 0x5246 };

static struct fuzz_memory memory_of;
static uint8_t bytes_of[END - BASE];

static void put(uint64_t addr, uint64_t value, unsigned bytes)
{
	fuzz_write(bytes_of + (addr - BASE), value, bytes);
}

/* ---------------------------------------------------------------- contents */

static uint64_t make_block(uint64_t at, unsigned bytes, unsigned flags, unsigned type)
{
	put(at, bytes / 16, 2);
	put(at + 2, flags, 1);
	put(at + 3, type == BLOCK_FREE ? bytes / 16 >> 16 : 4, 1); /* unused bytes of the block */
	put(at + 4, 0, 2);
	put(at + 6, type, 2);
	return at + bytes;
}

static void make_list(uint64_t head, uint64_t entry)
{
	put(head, entry, 8);
	put(head + 8, entry, 8);
	put(entry, head, 8);
	put(entry + 8, head, 8);
}

static void make_heap(void)
{
	enum { SUBHEAP = HEAP + 0x330, FIRST = SUBHEAP + 0x38 };
	uint64_t at = FIRST;

	put(PEB + 0x30, HEAP, 8);
	put(HEAP + 0x10, 0xffeeffee, 4);
	put(HEAP + 0xb8, 0x50414548, 4);
	put(HEAP + 0xd0, UINT32_MAX, 4);
	make_list(HEAP + 0x78, HEAP + 0x78);
	make_list(HEAP + 0x88, SUBHEAP + 0x20);
	make_list(HEAP + 0x98, HEAP + 0x98);
	put(SUBHEAP + 0x10, HEAP + 0x10000 - FIRST, 8);
	put(SUBHEAP + 0x18, HEAP + HEAP_BYTES - (SUBHEAP + 0x40), 8);
	put(SUBHEAP + 0x30, HEAP, 8);
	for (unsigned i = 0; i < 8; i++)
		at = make_block(at, 0x40 + 16 * i, i == 5 ? 1 : 0x20 + 2 * (i == 6),
			i == 5 ? BLOCK_FREE : BLOCK_USED);
	make_block(at, (unsigned)(HEAP + 0x10000 - 8 - at), 1, BLOCK_FREE);
}

static void make_dll(void)
{
	enum {
		PE = DLL + 0x80,
		OPTIONAL = PE + 24,
		SECTION = OPTIONAL + 240,
		EXPORTS = DLL + 0x1000
	};

	put(DLL, 0x5a4d, 2);
	put(DLL + 60, 0x80, 4);
	put(PE, 0x4550, 4);
	put(PE + 4, 0x8664, 2);
	put(PE + 6, 1, 2);
	put(PE + 20, 240, 2);
	put(OPTIONAL, 0x20b, 2);
	put(OPTIONAL + 56, DLL_BYTES, 4);
	put(OPTIONAL + 60, 0x1000, 4);
	put(OPTIONAL + 108, 16, 4);
	put(OPTIONAL + 112, 0x1000, 4);
	put(OPTIONAL + 116, 0x100, 4);
	put(SECTION + 8, DLL_BYTES - 0x1000, 4);
	put(SECTION + 12, 0x1000, 4);
	put(SECTION + 36, 0x60000020, 4);
	put(EXPORTS + 20, 1, 4);
	put(EXPORTS + 24, 1, 4);
	put(EXPORTS + 28, 0x1040, 4);
	put(EXPORTS + 32, 0x1050, 4);
	put(EXPORTS + 36, 0x1060, 4);
	put(DLL + 0x1040, AREA - DLL, 4);
	put(DLL + 0x1050, 0x1070, 4);
	memcpy(bytes_of + (DLL + 0x1070 - BASE), TRACER_EXPORT, sizeof(TRACER_EXPORT));
}

/* Gives stacks to two of the heap's blocks and to a range, and records an unloaded module. */
static void make_tables(void)
{
	struct tracer_area *area = xcalloc(1, sizeof(*area));
	enum { FIRST_BLOCK = HEAP + 0x330 + 0x38 + 8 };

	area->magic = TRACER_MAGIC;
	area->version = TRACER_VERSION;
	area->area_bytes = sizeof(*area);
	area->state = TRACER_ON;
	area->pointer_bytes = 8;
	area->reserved = TABLE;
	area->reserved_bytes = END - TABLE;
	area->stacks = STACKS;
	area->stacks_top = 8 + 2 * (16 + 3 * 8);
	area->stacks_committed = area->stacks_limit = 0x1000;
	area->modules = MODULES;
	area->modules_top = 56;
	area->modules_limit = 0x1000;
	area->unloads = UNLOADS;
	area->unload_count = 1;
	area->unload_limit = 0x1000 / sizeof(struct tracer_unload);
	area->ranges.nodes = RANGES;
	area->ranges.node_limit = 0x1000 / sizeof(struct tracer_range);
	area->ranges.node_count = 2;
	area->heaps[1] = HEAP;
	area->shards[3].table = TABLE;
	area->shards[3].pages = 1;
	area->shards[3].count = 2;
	memcpy(bytes_of + (AREA - BASE), area, sizeof(*area));
	free(area);
	for (unsigned i = 0; i < 2; i++) {
		put(TABLE + 16 * i, (FIRST_BLOCK + 0x40 * i) | UINT64_C(1) << 48, 8);
		put(TABLE + 16 * i + 8, (UINT64_C(0x34) + 16 * i) << 27 | (1 + 5 * i), 8);
		put(STACKS + 8 + 40 * i + 8, 3, 2);
		for (unsigned k = 0; k < 3; k++)
			put(STACKS + 8 + 40 * i + 16 + 8 * k, DLL + 0x1100 * (i + 1) + 16 * k, 8);
		put(RANGES + 48 * i, 0x900000 + 0x10000 * i, 8);
		put(RANGES + 48 * i + 8, 0x904000 + 0x10000 * i, 8);
		put(RANGES + 48 * i + 24, RANGE_RESERVED + i, 4);
		put(RANGES + 48 * i + 28, 1, 4);
	}
	put(MODULES, 56, 4);
	put(MODULES + 4, 0x10000, 4);
	put(MODULES + 36, 5, 2);
	for (unsigned i = 0; i < 5; i++)
		put(MODULES + 40 + 2 * i, (unsigned char)"a.dll"[i], 2);
	put(UNLOADS, DLL + 0x2000, 8);
	put(UNLOADS + 8, DLL + 0x3000, 8);
}

/* ---------------------------------------------------------------- the target */

static int read_memory(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	(void)target;
	if (addr < BASE || addr >= END || len > END - addr)
		return -ERR_READ;
	memcpy(bytes, bytes_of + (addr - BASE), len);
	return 0;
}

static int find_region(struct target *target, uint64_t addr, struct target_region *region)
{
	(void)target;
	if (addr >= END)
		return -ERR_READ;
	*region = (struct target_region){
		.addr = BASE, .end = END, .access = TARGET_READ | TARGET_WRITE | TARGET_EXECUTE};
	return 0;
}

static int list_modules(struct target *target, struct snapshot *snapshot, struct err *err)
{
	(void)target;
	(void)err;
	*snapshot_add_module(snapshot) = (struct module){
		.base = DLL, .size_bytes = DLL_BYTES, .path = "C:\\x\\" TRACER_DLL_64};
	return 0;
}

static int suspend(struct target *target, struct err *err)
{
	(void)target;
	(void)err;
	return 0;
}

static void resume(struct target *target)
{
	(void)target;
}

static bool is_alive(struct target *target)
{
	(void)target;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct target_ops ops = {.read = read_memory,
		.region = find_region,
		.modules = list_modules,
		.suspend = suspend,
		.resume = resume,
		.is_alive = is_alive};
	struct target target = {
		.ops = &ops, .name = "made", .pid = 12, .bits = 64, .peb = PEB, .is_file = true};
	struct fuzz_input input = {bytes, bytes + len};
	unsigned how = (unsigned)fuzz_number(&input, 1);

	if (!memory_of.bytes) {
		make_heap();
		make_dll();
		make_tables();
		fuzz_memory_take(&memory_of, bytes_of, sizeof(bytes_of));
	}
	fuzz_memory_patch(&memory_of, &input);
	capture_check(&target, how);
	fuzz_memory_restore(&memory_of);
	return 0;
}
