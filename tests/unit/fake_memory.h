/*
 * What the tracer's tables ask the system for, in a test: address space between guards, that can be
 * read and written only where it was committed, and that is refused when the test wants it.
 */
#ifndef TESTS_UNIT_FAKE_MEMORY_H
#define TESTS_UNIT_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define FAKE_ALIGN ((uint64_t)65536)
#define FAKE_ALWAYS INT32_MAX

/* How often each still succeeds. */
struct fake_memory {
	int32_t reserves_left, commits_left;
	uint32_t yields;
};

static inline bool fake_spend(int32_t *left)
{
	return __atomic_load_n(left, __ATOMIC_RELAXED) == FAKE_ALWAYS ||
	       __atomic_fetch_sub(left, 1, __ATOMIC_RELAXED) > 0;
}

static inline void *fake_reserve(struct fake_memory *memory, uint64_t bytes)
{
	char *at;

	if (!fake_spend(&memory->reserves_left))
		return NULL;
	at = mmap(NULL, bytes + 2 * FAKE_ALIGN, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? NULL : at + (FAKE_ALIGN - (uintptr_t)at % FAKE_ALIGN);
}

static inline bool fake_commit(struct fake_memory *memory, void *at, uint64_t bytes)
{
	return fake_spend(&memory->commits_left) && !mprotect(at, bytes, PROT_READ | PROT_WRITE);
}

/* Whoever still looks there crashes. */
static inline void fake_give_back(void *at, uint64_t bytes)
{
	mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static inline uint64_t fake_dice(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1du >> 16;
}

#endif
