/*
 * Steps from the frame of the code at a return address to its caller's frame.
 *
 * A step is a fact of the address alone: where the caller's frame begins (the CFA: RSP after the
 * return), counted from RSP or from RBP, and where the caller's RBP is saved, counted from the CFA.
 * The return address is just below the CFA.
 *
 * One table serves all threads, without locks. An entry is one word, read and written at once. It
 * has the whole address (the part that the index lacks is in the tag) and the step. An entry may be
 * overwritten by another at any time. No entry is ever wrong, unless the code at its address
 * changed.
 *
 * Next to each entry is a hint: the return address that was the next one outwards, and the place of
 * its entry. A walk takes the next entry from there, and meanwhile checks that the stack has the
 * same address. So it need not wait for one look-up after the other. A wrong hint does no harm.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_PARTS_X64_H
#define SNAPSHOT_TRACER_UNWIND_PARTS_X64_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

#define UNWIND_SETS_LOG2 15
#define UNWIND_SETS ((uint64_t)1 << UNWIND_SETS_LOG2)
#define UNWIND_WAYS 2

/* Step, in bytes. */
struct unwind_step {
	bool is_from_rbp;
	int64_t cfa; /* from RSP, or RBP */
	int64_t rbp; /* from the CFA; UNWIND_RBP_KEPT: the code leaves RBP as it is */
};

/* Value of unwind_step.rbp for a kept RBP. No RBP is saved at this place, because the return
 * address is there. */
#define UNWIND_RBP_KEPT (-8)

/*
 * A packed step: bit 0 is set; bit 1: from RBP; then 16 bits of cfa / 8 and 14 bits of rbp / 8,
 * signed. UNWIND_UNKNOWN, _END, _NO_CODE and _NEVER have a CFA that is not above RSP, which no step
 * has.
 */
#define UNWIND_UNKNOWN 0u
#define UNWIND_END 1u /* the walk ends here: there is no unwind data, or it cannot be read */
#define UNWIND_NO_CODE 0xfff80001u /* not a return address: the walk ends before it */
#define UNWIND_NEVER 0xfffc0001u /* not a fact of the address: walk the slow way */
/* Step of code that leaves RSP and RBP as they are. */
#define UNWIND_LEAF 0xfffc0005u

struct unwind_entry {
	uint64_t word; /* tag << 32 | packed step, or 0 */
	uint64_t hint; /* address << 16 | place of its entry */
};

/* The entries of a set are neighbours. */
extern struct unwind_entry unwind_cache[UNWIND_SETS * UNWIND_WAYS];

/* Returns the part of the address above the bits of the index: 32 bits of an address below 2^47. */
static inline uint64_t unwind_tag(uint64_t addr)
{
	return addr >> UNWIND_SETS_LOG2;
}

/* Returns the set of an address. Addresses near one another never share a set; the tag moves each
 * group of them elsewhere. */
static inline uint64_t unwind_index(uint64_t low, uint64_t tag)
{
	return (low ^ (uint32_t)tag * 0x9e3779b1u >> (32 - UNWIND_SETS_LOG2)) & (UNWIND_SETS - 1);
}

/* Returns the place of an address's entry; without one, the place of another address's entry. */
static inline uint64_t unwind_cache_place(uint64_t addr)
{
	uint64_t tag = unwind_tag(addr), first = unwind_index(addr, tag) * UNWIND_WAYS;

	return __atomic_load_n(&unwind_cache[first].word, __ATOMIC_RELAXED) >> 32 == tag ?
		       first :
		       first + 1;
}

/* Returns the packed step of a return address, or UNWIND_UNKNOWN. */
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

/* Packs a step. Returns UNWIND_NEVER if it does not fit, or has no CFA above RSP. */
uint32_t unwind_pack(const struct unwind_step *step);

/*
 * Returns the packed step of an address that is offset bytes into its function. Reads the
 * function's UNWIND_INFO ("x64 exception handling", Microsoft Learn) once. Returns UNWIND_NEVER if
 * that does not determine the step: in the prologue, in a part of another function, or if the frame
 * depends on another register.
 */
uint32_t unwind_read(const volatile uint8_t *info, uint64_t offset);

/*
 * Learning: a result counts only if nothing was forgotten since it was begun. Call
 * unwind_cache_begin() first, then ask the system, then call unwind_cache_put() with the value of
 * unwind_cache_begin().
 */
uint64_t unwind_cache_begin(void);
void unwind_cache_put(uint64_t addr, uint32_t packed, uint64_t begun);

/* Walks by the cache, which read nothing except the stack's memory. */

/* Start or end of a walk: the place of a return address, and RBP as the code there has it. */
struct unwind_start {
	uint64_t slot; /* aligned to 8 */
	uint64_t rbp;
	uint64_t high; /* end of the stack: the walk reads in [slot, high) */
	uint32_t number; /* of the walk: a value that changes */
	uint32_t count; /* number of frames found before */
};

/*
 * An earlier walk of a thread. Most of the thread's stack is the same the next time. A frame is
 * unchanged if it has the same place and address and, if the way outwards depends on RBP, the same
 * RBP. From the first unchanged frame on, nothing is looked up: it suffices that the words of the
 * stack which that walk read are still the same.
 */
#define UNWIND_MARKS 96

struct unwind_mark {
	uint64_t slot, addr; /* a return address: place and value; addr 0: the end of the stack */
	uint64_t rbp; /* as the code at addr has it */
	uint64_t rbp_bits; /* bits that the way outwards depends on: all, or none */
	uint32_t first_saved; /* index of the first saved RBP for this frame and the outer ones */
};

/* Frame that a walk passed. saved: where its RBP was read, or slot if nowhere; word: its step, as
 * in the cache. */
struct unwind_walked {
	uint64_t slot, addr, rbp, saved, word;
};

struct unwind_trail {
	uint64_t begun; /* unwind_cache_begin(): the trail holds until something is forgotten */
	uint64_t high; /* of the stack */
	uint32_t first; /* index of the innermost mark, or UNWIND_MARKS */
	bool is_whole; /* that walk found all marked frames, and no others */
	struct unwind_note note; /* note on that stack */
	/* The last mark is after the outermost frame, and has no slot; its rbp_bits are nonzero if
	 * there are more frames. */
	struct unwind_mark marks[UNWIND_MARKS + 1];
	/* Words that must be unchanged, too: each RBP that the way outwards depends on, where it
	 * was saved; the innermost one first. */
	struct unwind_saved {
		uint64_t place, rbp;
	} saved[UNWIND_MARKS];
	struct unwind_walked *walked; /* frames of a walk that has not ended yet */
};

/* Initializes a trail. walked: room for UNWIND_MARKS, which all trails of a thread may share. */
void unwind_trail_init(struct unwind_trail *trail, struct unwind_walked *walked);

/* Returns true if a walk with the same maximum of frames would find all marked frames and no
 * others. */
bool unwind_is_same(const struct unwind_trail *trail, const struct unwind_start *start);

#define UNWIND_MISS UINT32_MAX

/*
 * Walks like unwind_stack(). Returns UNWIND_MISS if an address is not known, or the stack does not
 * match its step: *stop, which may be *start, is the place, and its count includes the address,
 * unless that is left out. Reads memory in [slot, high) only. trail is the thread's, or NULL; a
 * walk that misses leaves it as it is.
 */
uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start, struct unwind_start *stop, struct unwind_trail *trail);

/* Makes a step from where a walk stopped. Returns false if it leads nowhere. */
bool unwind_step_on(struct unwind_start *at, uint32_t packed);

#endif
