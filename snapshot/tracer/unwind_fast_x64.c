#include "snapshot/tracer/unwind_fast_x64.h"

#include <stdbool.h>

#include "snapshot/tracer/unwind_cache_x64.h"

#define UNLIKELY(condition) __builtin_expect(condition, 0)

/* A frame: the return address that leads to it, and the registers as the code there has them. */
struct frame {
	uint64_t addr, rsp, rbp;
};

enum way {
	WAY_ON,
	WAY_END,
	WAY_MISS,
};

static uint64_t load(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

/*
 * To the caller's frame. What an unknown address has for a step leads nowhere, so that being unknown
 * is found out together with the rest. A frame register outside the stack is for the slow way to judge.
 */
static inline enum way step(struct frame *frame, const struct unwind_start *start)
{
	uint32_t packed = unwind_cache_find(frame->addr);
	uint64_t from = unwind_packed_is_from_rbp(packed) ? frame->rbp : frame->rsp;
	uint64_t cfa = from + (uint64_t)unwind_packed_cfa(packed);
	uint64_t saved = cfa + (uint64_t)unwind_packed_rbp(packed), rbp;
	uint64_t room = start->high - 8 - start->slot;

	if (UNLIKELY(cfa - frame->rsp - 1 >= start->high - frame->rsp || cfa & 7 ||
		     saved - start->slot > room || from - start->slot > room))
		return packed == UNWIND_END || frame->rsp > start->high - 8 ? WAY_END : WAY_MISS;
	rbp = load(saved);
	frame->rbp = unwind_packed_rbp(packed) == UNWIND_RBP_KEPT ? frame->rbp : rbp;
	frame->addr = load(cfa - 8);
	frame->rsp = cfa;
	return WAY_ON;
}

uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start)
{
	struct frame frame = {load(start->slot), start->slot + 8, start->rbp};
	enum way way = WAY_ON;
	uint32_t count = 0;

	while (frame.addr - skip->from < skip->to - skip->from) {
		way = step(&frame, start);
		if (UNLIKELY(way != WAY_ON))
			return way == WAY_END ? 0 : UNWIND_MISS;
	}
	while (frame.addr && count < max) {
		frames[count++] = frame.addr;
		if (count == max)
			break;
		way = step(&frame, start);
		if (UNLIKELY(way != WAY_ON))
			return way == WAY_END ? count : UNWIND_MISS;
	}
	return count;
}
