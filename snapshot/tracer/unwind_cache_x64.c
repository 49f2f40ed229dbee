#include "snapshot/tracer/unwind_cache_x64.h"

#include "snapshot/tracer/unwind.h"

#define ADDR_BITS (32 + UNWIND_SETS_LOG2)

__attribute__((aligned(64))) struct unwind_entry unwind_cache[UNWIND_SETS * UNWIND_WAYS];

static uint64_t forgets; /* how often something was forgotten */

uint32_t unwind_pack(const struct unwind_step *step)
{
	int64_t cfa = step->cfa / 8, rbp = step->rbp / 8;

	if (step->cfa % 8 || step->rbp % 8 || cfa != (int16_t)cfa || rbp < -0x2000 || rbp > 0x1fff)
		return UNWIND_NEVER;
	if (!step->is_from_rbp && cfa <= 0)
		return UNWIND_NEVER;
	return (uint32_t)rbp << 18 | (uint32_t)(uint16_t)cfa << 2 | step->is_from_rbp << 1 | 1;
}

static uint64_t entry_addr(uint64_t index, uint64_t entry)
{
	uint64_t tag = entry >> 32;

	return tag << UNWIND_SETS_LOG2 | unwind_index(index, tag);
}

uint64_t unwind_cache_begin(void)
{
	return __atomic_load_n(&forgets, __ATOMIC_SEQ_CST);
}

/* The way to put an entry: where its address is already, or a free one, or one by chance. */
static unsigned way_for(const struct unwind_entry *set, uint64_t addr)
{
	for (unsigned way = 0; way < UNWIND_WAYS; way++) {
		uint64_t entry = __atomic_load_n(&set[way].word, __ATOMIC_RELAXED);

		if (!entry || entry >> 32 == unwind_tag(addr))
			return way;
	}
	return (unsigned)(addr * 0x9e3779b97f4a7c15u >> 32) % UNWIND_WAYS;
}

void unwind_cache_put(uint64_t addr, uint32_t packed, uint64_t begun)
{
	uint64_t tag = unwind_tag(addr), entry = tag << 32 | packed;
	struct unwind_entry *set = &unwind_cache[unwind_index(addr, tag) * UNWIND_WAYS];
	uint64_t *at;

	if (addr >> ADDR_BITS)
		return;
	at = &set[way_for(set, addr)].word;
	__atomic_store_n(at, entry, __ATOMIC_SEQ_CST);
	/* Who forgets counts first and looks then: one of the two sees the other. */
	if (__atomic_load_n(&forgets, __ATOMIC_SEQ_CST) != begun)
		__atomic_compare_exchange_n(
			at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void unwind_forget(uint64_t from, uint64_t to)
{
	__atomic_fetch_add(&forgets, 1, __ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < UNWIND_SETS * UNWIND_WAYS; i++) {
		uint64_t *at = &unwind_cache[i].word;
		uint64_t entry = __atomic_load_n(at, __ATOMIC_SEQ_CST), addr;

		addr = entry_addr(i / UNWIND_WAYS, entry);
		if (entry && addr >= from && addr < to)
			__atomic_compare_exchange_n(
				at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void unwind_forget_all(void)
{
	unwind_forget(0, UINT64_MAX);
}
