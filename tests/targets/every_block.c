/* every_block: allocates through each door to the heap and states every block (stated.h). Step 1:
 * blocks of 0 to 3 MiB, including sizes near the limit for large blocks in Wine's heaps, and blocks
 * that were moved, grown and shrunk. Step 2: hundreds of blocks of a few sizes, which a heap with
 * low fragmentation puts into groups. Step 3: every third block is freed. Step 4: more blocks are
 * allocated in the gaps; then every fifth block is freed. */
#include "tests/targets/stated.h"

#define BLOCKS_MAX 60000
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum door {
	DOOR_PROCESS,
	DOOR_MALLOC,
	DOOR_LOCAL,
	DOOR_MOVEABLE,
	DOOR_GLOBAL,
	/* The program's own heaps, of which all blocks are known. */
	DOOR_PRIVATE,
	DOOR_FIXED,
	DOOR_UNLOCKED,
	DOOR_MANY,
	DOOR_LARGE,
	DOOR_MOVED,
	DOORS
};

#define OWN_HEAPS DOOR_PRIVATE
#define FIXED_BYTES_MAX 70000 /* maximum for one block in a heap with a maximum size */

static const char *const door_names[DOORS] = {"process", "malloc", "local", "moveable", "global",
	"private", "fixed", "unlocked", "many", "large", "moved"};

struct block {
	void *addr;
	size_t bytes;
	enum door door;
	bool is_live, is_moved;
	unsigned long freed_at; /* step at which the block was freed */
};

static struct block blocks[BLOCKS_MAX];
static size_t block_count;
static HANDLE heaps[DOORS];

static void add_block(enum door door, void *addr, size_t bytes, bool is_moved)
{
	if (!addr || block_count == BLOCKS_MAX)
		ExitProcess(3);
	blocks[block_count++] = (struct block){addr, bytes, door, true, is_moved, 0};
}

static NOINLINE void allocate(enum door door, size_t bytes)
{
	HLOCAL handle;
	void *addr;

	switch (door) {
	case DOOR_MALLOC: addr = malloc(bytes); break;
	case DOOR_LOCAL: addr = LocalAlloc(LMEM_FIXED, bytes); break;
	case DOOR_GLOBAL: addr = GlobalAlloc(GPTR, bytes); break;
	case DOOR_MOVEABLE:
		handle = LocalAlloc(LMEM_MOVEABLE, bytes);
		addr = handle ? LocalLock(handle) : NULL;
		break;
	default: addr = HeapAlloc(heaps[door], 0, bytes);
	}
	add_block(door, addr, bytes, false);
}

static void release(struct block *block, unsigned long step)
{
	if (!block->is_live || block->door == DOOR_MOVEABLE)
		return;
	block->is_live = false;
	block->freed_at = step;
	switch (block->door) {
	case DOOR_MALLOC: free(block->addr); break;
	case DOOR_LOCAL: LocalFree(block->addr); break;
	case DOOR_GLOBAL: GlobalFree(block->addr); break;
	default: HeapFree(heaps[block->door], 0, block->addr);
	}
}

static void allocate_sizes(void)
{
	static const unsigned sizes[] = {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33,
		40, 47, 48, 63, 64, 65, 77, 100, 127, 128, 129, 200, 255, 256, 257, 300, 496, 504,
		511, 512, 513, 600, 1000, 1023, 1024, 1025, 2000, 4080, 4096, 5000, 8192, 12000,
		16384, 20000, 32752, 32768, 33000, 65536, 100000, 262144, 400000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (enum door door = 0; door <= DOOR_UNLOCKED; door++) {
			/* Systems disagree about the meaning of an empty block of these doors. */
			if ((door >= DOOR_LOCAL && door <= DOOR_GLOBAL && !sizes[i]) ||
				(door == DOOR_FIXED && sizes[i] > FIXED_BYTES_MAX))
				continue;
			allocate(door, sizes[i]);
		}
	}
}

/* Including its head, a block is large in Wine if it has at least 0x7eff8 bytes in a 32-bit heap,
 * or 0xfeff0 bytes in a 64-bit heap. */
static void allocate_large(void)
{
	static const unsigned from[] = {0x7efd8, 0xfefd0};

	for (size_t i = 0; i < COUNT_OF(from); i++) {
		for (unsigned more = 0; more < 0x30; more += 8)
			allocate(DOOR_LARGE, from[i] + more);
	}
	for (unsigned bytes = 500000; bytes < 3u << 20; bytes += 1199999) {
		allocate(DOOR_LARGE, bytes);
		allocate(DOOR_MALLOC, bytes);
		allocate(DOOR_PROCESS, bytes);
	}
}

static NOINLINE void reallocate(void)
{
	for (unsigned i = 0; i < 60; i++) {
		unsigned old = 50 + 53 * i, bytes = i % 3 ? 20 + 71 * i : old - 1;
		void *addr = HeapAlloc(heaps[DOOR_MOVED], 0, old);

		addr = addr ? HeapReAlloc(heaps[DOOR_MOVED], 0, addr, bytes) : NULL;
		add_block(DOOR_MOVED, addr, bytes, true);
		addr = malloc(old);
		add_block(DOOR_MALLOC, addr ? realloc(addr, bytes) : NULL, bytes, true);
	}
	for (unsigned i = 0; i < 4; i++) {
		size_t bytes = ((size_t)1 << 20) + 4000 * i;
		void *addr = HeapAlloc(heaps[DOOR_MOVED], 0, 700000);

		addr = addr ? HeapReAlloc(heaps[DOOR_MOVED], 0, addr, bytes) : NULL;
		add_block(DOOR_MOVED, addr, bytes, true);
	}
}

static void allocate_many(void)
{
	static const unsigned sizes[] = {5, 16, 40, 64, 120, 250, 700, 1500, 3000};

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		for (unsigned k = 0; k < 500; k++) {
			allocate(DOOR_MANY, sizes[i] + k % 5);
			allocate(DOOR_MALLOC, sizes[i] + k % 5);
		}
	}
	for (unsigned k = 0; k < 300; k++) /* groups of these blocks become large blocks */
		allocate(DOOR_MANY, 30000 + k % 7);
}

static void free_each(size_t distance, unsigned long step)
{
	for (size_t i = distance / 2; i < block_count; i += distance)
		release(&blocks[i], step);
}

static void state_all(unsigned long step)
{
	size_t bytes[2] = {0}, count[2] = {0};

	for (enum door door = OWN_HEAPS; door < DOORS; door++)
		state("whole %llX %s\n", (unsigned long long)(uintptr_t)heaps[door],
			door_names[door]);
	for (size_t i = 0; i < block_count; i++) {
		const struct block *block = &blocks[i];
		unsigned long long addr = (uintptr_t)block->addr;

		if (block->is_live) {
			bytes[block->is_moved] += block->bytes;
			count[block->is_moved]++;
			state("block %llX %zu %s\n", addr, block->bytes, door_names[block->door]);
		} else if (block->freed_at == step) { /* no later block has this address */
			state("gone %llX %s\n", addr, door_names[block->door]);
		}
	}
	state("sum allocate %zu %zu\n", bytes[false], count[false]);
	state("sum reallocate %zu %zu\n", bytes[true], count[true]);
}

int main(void)
{
	static HANDLE counted[64];

	heaps[DOOR_PROCESS] = GetProcessHeap();
	for (enum door door = OWN_HEAPS; door < DOORS; door++)
		heaps[door] = HeapCreate(door == DOOR_UNLOCKED ? HEAP_NO_SERIALIZE : 0,
			door == DOOR_FIXED ? 0x10000 : 0, door == DOOR_FIXED ? 0x300000 : 0);
	for (unsigned long step = 1;; step++) {
		if (step == 1) {
			allocate_sizes();
			allocate_large();
			reallocate();
		} else if (step == 2 || step == 4) {
			allocate_many();
		}
		if (step == 3 || step == 4)
			free_each(step == 3 ? 3 : 5, step);
		state("heaps %lu\n", GetProcessHeaps(COUNT_OF(counted), counted));
		state_all(step);
		if (!state_step(step))
			return 0;
	}
}
