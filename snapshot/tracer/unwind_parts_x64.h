/*
 * What is known of return addresses: how to get from the frame of the code there to its caller's.
 *
 * A step is a fact of the address alone: where the caller's frame begins (the CFA: RSP as it will be
 * after the return), counted from RSP or from RBP, and where the caller's RBP is saved, counted from
 * the CFA. The return address lies just below the CFA.
 *
 * One table for all threads, without locks: an entry is one word, read and written at once, which has
 * all of the address (what the index does not say of it, the tag does) and the step. An entry may be
 * overwritten by another at any time; none is ever wrong, unless the code at its address changed.
 *
 * Beside each entry stands a hint: which return address was the next one outwards, and where its entry
 * is. To take the next entry from there, and to see meanwhile whether the stack says the same, spares
 * a walk to wait for one look-up after the other. A hint may be wrong and does no harm then.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_PARTS_X64_H
#define SNAPSHOT_TRACER_UNWIND_PARTS_X64_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

#define UNWIND_SETS_LOG2 15
#define UNWIND_SETS ((uint64_t)1 << UNWIND_SETS_LOG2)
#define UNWIND_WAYS 2

/* In bytes. */
struct unwind_step {
	bool is_from_rbp;
	int64_t cfa; /* from RSP, or RBP */
	int64_t rbp; /* from the CFA; UNWIND_RBP_KEPT: the code leaves RBP as it is */
};

/* That place holds the return address. */
#define UNWIND_RBP_KEPT (-8)

/*
 * A packed step: bit 0 set; bit 1: from RBP; then 16 bits of cfa / 8 and 14 of rbp / 8, signed. Those
 * below and 0 have a CFA that is not above RSP, which no step has.
 */
#define UNWIND_UNKNOWN 0u
#define UNWIND_END 1u /* the walk ends here: there is no unwind data, or it cannot be read */
#define UNWIND_NO_CODE 0xfff80001u /* no return address: the walk ends before it */
#define UNWIND_NEVER 0xfffc0001u /* not a fact of the address: walk the slow way */
/* Of code that leaves RSP and RBP as they are. */
#define UNWIND_LEAF 0xfffc0005u

struct unwind_entry {
	uint64_t word; /* tag << 32 | packed step, or 0 */
	uint64_t hint; /* address << 16 | number of its entry */
};

/* A set's entries stand side by side. */
extern struct unwind_entry unwind_cache[UNWIND_SETS * UNWIND_WAYS];

/* All of the address above the bits of the index: 32 bits of an address below 2^47. */
static inline uint64_t unwind_tag(uint64_t addr)
{
	return addr >> UNWIND_SETS_LOG2;
}

/* Addresses near one another never meet in a set; the tag moves each group of them elsewhere. */
static inline uint64_t unwind_index(uint64_t low, uint64_t tag)
{
	return (low ^ (uint32_t)tag * 0x9e3779b1u >> (32 - UNWIND_SETS_LOG2)) & (UNWIND_SETS - 1);
}

/* The number of an address's entry, if it has one: else of one that is not its own. */
static inline uint64_t unwind_cache_place(uint64_t addr)
{
	uint64_t tag = unwind_tag(addr), first = unwind_index(addr, tag) * UNWIND_WAYS;

	return __atomic_load_n(&unwind_cache[first].word, __ATOMIC_RELAXED) >> 32 == tag ?
		       first :
		       first + 1;
}

/* The packed step of a return address. */
static inline uint32_t unwind_cache_find(uint64_t addr)
{
	uint64_t word =
		__atomic_load_n(&unwind_cache[unwind_cache_place(addr)].word, __ATOMIC_RELAXED);

	return word >> 32 == unwind_tag(addr) ? (uint32_t)word : UNWIND_UNKNOWN;
}

static inline bool unwind_packed_is_from_rbp(uint32_t packed)
{
	return packed & 2;
}

static inline int64_t unwind_packed_cfa(uint32_t packed)
{
	return (int64_t)(int16_t)(packed >> 2) * 8;
}

static inline int64_t unwind_packed_rbp(uint32_t packed)
{
	/* cppcheck-suppress shiftNegativeLHS; compilers for x64 keep the sign */
	return (int64_t)((int32_t)packed >> 18) * 8;
}

/* UNWIND_NEVER when it does not fit, or has no CFA above RSP. */
uint32_t unwind_pack(const struct unwind_step *step);

/*
 * The packed step of an address that lies offset bytes into its function, by the function's UNWIND_INFO ("x64 exception
 * handling", Microsoft Learn), which is read once; UNWIND_NEVER where that does not tell it: in the prologue, in a part of
 * another function, or where the frame hangs on another register.
 */
uint32_t unwind_read(const volatile uint8_t *info, uint64_t offset);

/*
 * Learning: what is about to be found out of an address counts only if nothing was forgotten since.
 * unwind_cache_begin() first, then ask the system, then unwind_cache_put() with what began.
 */
uint64_t unwind_cache_begin(void);
void unwind_cache_put(uint64_t addr, uint32_t packed, uint64_t begun);

/* A walk by what is known of return addresses, and by nothing but the stack's memory. */

/* Where a walk starts, or stopped: the place of a return address, and RBP as the code there has it. */
struct unwind_start {
	uint64_t slot; /* aligned to 8 */
	uint64_t rbp;
	uint64_t high; /* the stack's end: it reads in [slot, high) */
	uint32_t number; /* of the walk: something that changes */
	uint32_t count; /* of frames that were found before */
};

/*
 * An earlier walk of a thread. Most of its stack is the same the next time: from the first frame on that is where it was, with
 * the same address and, where the way outwards hangs on that, the same RBP, nothing is looked up. It is enough that what
 * that walk read of the stack is what stands there now.
 */
#define UNWIND_MARKS 96

struct unwind_mark {
	uint64_t slot, addr; /* a return address, where and which; addr 0: the end of the stack */
	uint64_t rbp; /* as the code at addr has it */
	uint64_t rbp_bits; /* those that the way from here on hangs on: all, or none */
	uint32_t first_saved; /* of what was saved for this frame and the outer ones */
};

/* A frame that a walk went through, and where it found that RBP (slot: nowhere), and the step from there, as the cache has it. */
struct unwind_walked {
	uint64_t slot, addr, rbp, saved, word;
};

struct unwind_trail {
	uint64_t begun; /* unwind_cache_begin(): it holds as long as nothing was forgotten */
	uint64_t high; /* of the stack */
	uint32_t first; /* the innermost mark; UNWIND_MARKS: there is none */
	bool is_whole; /* that walk found what is marked, all of it and no more */
	struct unwind_note note; /* of that stack */
	/* The last one is behind the outermost frame, and has no slot; its rbp_bits say whether there are more frames. */
	struct unwind_mark marks[UNWIND_MARKS + 1];
	/* What else must be the same: an RBP that the way outwards hangs on, where it was saved; the innermost one first. */
	struct unwind_saved {
		uint64_t place, rbp;
	} saved[UNWIND_MARKS];
	struct unwind_walked *walked; /* of a walk that is not at its end yet */
};

/* walked: room for UNWIND_MARKS, which all trails of a thread may share. */
void unwind_trail_init(struct unwind_trail *trail, struct unwind_walked *walked);

/* Whether a walk would find all that is marked and nothing else, if it were of as many frames at most. */
bool unwind_is_same(const struct unwind_trail *trail, const struct unwind_start *start);

#define UNWIND_MISS UINT32_MAX

/*
 * As unwind_stack(); UNWIND_MISS when an address is not known, or the stack is not as it says: stop, which may be
 * start, is where, and its count has the address in it, if that is not left out. Reads memory in [slot, high) only. trail is
 * the thread's, or NULL; a walk that misses leaves it as it is.
 */
uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start, struct unwind_start *stop, struct unwind_trail *trail);

/* Takes a step from where a walk stopped; false where it leads nowhere. */
bool unwind_step_on(struct unwind_start *at, uint32_t packed);

#endif
