/*
 * Steps from the frame of the code at a return address to the caller's frame.
 *
 * A step depends only on the return address. It states two things: where the caller's frame begins
 * (the CFA, which is RSP after the return), relative to RSP or RBP; and where the caller's RBP is
 * saved, relative to the CFA. The return address is just below the CFA.
 *
 * One table serves all threads, without locks. An entry is one word, which is read and written
 * atomically. An entry contains the step and the whole address: the index determines the low bits
 * of the address, and the tag contains the remaining bits. Any entry may be overwritten at any
 * time. No entry is ever wrong, unless the code at its address changed.
 *
 * Each entry has a hint: the address of the next frame outwards when the hint was made, and the
 * place of the entry for that address. A walk takes the next entry from the hint, and meanwhile
 * checks that the stack contains the hint's address. So the walk need not wait for each look-up to
 * finish. A wrong hint does no harm.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_PARTS_X64_H
#define SNAPSHOT_TRACER_UNWIND_PARTS_X64_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

#define UNWIND_SETS_LOG2 15
#define UNWIND_SETS ((uint64_t)1 << UNWIND_SETS_LOG2)
#define UNWIND_WAYS 2

/* Step; all distances in bytes. */
struct unwind_step {
	bool is_from_rbp;
	int64_t cfa; /* relative to RSP, or to RBP if is_from_rbp */
	int64_t rbp; /* relative to the CFA; UNWIND_RBP_KEPT: the code leaves RBP unchanged */
};

/* Value of unwind_step.rbp if RBP is unchanged. RBP is never saved at this distance, because the
 * return address is there. */
#define UNWIND_RBP_KEPT (-8)

/*
 * A packed step. Bit 0 is set, and bit 1 is set if the CFA is relative to RBP. The other bits are
 * 16 bits of cfa / 8 and 14 bits of rbp / 8, both signed. In UNWIND_UNKNOWN, _END, _NO_CODE and
 * _NEVER, the CFA is not above RSP, which cannot be true of a real step.
 */
#define UNWIND_UNKNOWN 0u
#define UNWIND_END 1u /* the walk ends here: there is no unwind data, or the data cannot be read */
#define UNWIND_NO_CODE 0xfff80001u /* not a return address: the walk ends before it */
/* the step does not depend on the address alone: walk the slow way */
#define UNWIND_NEVER 0xfffc0001u
/* Step of code that leaves RSP and RBP unchanged. */
#define UNWIND_LEAF 0xfffc0005u

struct unwind_entry {
	uint64_t word; /* tag << 32 | packed step; 0 if empty */
	uint64_t hint; /* next address << 16 | place of the next address's entry */
};

/* The cache. The entries of one set are adjacent. */
extern struct unwind_entry unwind_cache[UNWIND_SETS * UNWIND_WAYS];

/* Returns the tag of an address: the bits above those of the index. An address below 2^47 has a tag
 * of 32 bits. */
static inline uint64_t unwind_tag(uint64_t addr)
{
	return addr >> UNWIND_SETS_LOG2;
}

/* Returns the set of an address. Adjacent addresses never share a set. The tag is hashed into the
 * result, so that groups of adjacent addresses are spread over all sets. */
static inline uint64_t unwind_index(uint64_t low, uint64_t tag)
{
	return (low ^ (uint32_t)tag * 0x9e3779b1u >> (32 - UNWIND_SETS_LOG2)) & (UNWIND_SETS - 1);
}

/* Returns the place of the entry for an address. If no such entry exists, returns the place of
 * another entry. */
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
	/* cppcheck-suppress shiftNegativeLHS; x64 compilers keep the sign */
	return (int64_t)((int32_t)packed >> 18) * 8;
}

/* Reads a word of the stack. */
static inline uint64_t unwind_load(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

/* Packs a step. Returns UNWIND_NEVER if the step does not fit, or if its CFA is not above RSP. */
uint32_t unwind_pack(const struct unwind_step *step);

/*
 * Returns the packed step of an address that is `offset` bytes into its function. Reads the
 * function's UNWIND_INFO ("x64 exception handling", Microsoft Learn) once. Returns UNWIND_NEVER if
 * UNWIND_INFO does not determine the step: the address is in the prologue, the UNWIND_INFO is
 * chained to that of another function, or the frame depends on another register.
 */
uint32_t unwind_read(const volatile uint8_t *info, uint64_t offset);

/*
 * Caching of a new step: call unwind_cache_begin(), then ask the system for the step, then call
 * unwind_cache_add() with the value from unwind_cache_begin(). The step is not cached if anything
 * was forgotten in between.
 */
uint64_t unwind_cache_begin(void);
void unwind_cache_add(uint64_t addr, uint32_t packed, uint64_t begun);

/* Walks that use only the cache. They read no memory except the stack. */

/* State in which a walk starts or has stopped: the slot of a return address, and the value of RBP
 * for the code at that address. */
struct unwind_start {
	uint64_t slot; /* address of the return address, aligned to 8 */
	uint64_t rbp;
	uint64_t high; /* end of the stack: the walk reads only [slot, high) */
	uint32_t number; /* number of the walk, which differs from walk to walk */
	uint32_t count; /* number of frames found so far */
};

/*
 * An earlier walk of a thread. In the next walk, most of the stack is usually the same. A frame is
 * unchanged if its slot and its return address are the same. If the rest of the walk depends on
 * RBP, RBP must be the same too. After the first unchanged frame, the next walk looks nothing up.
 * It only checks that the stack words read by the earlier walk are unchanged.
 */
#define UNWIND_MARKS 96

struct unwind_mark {
	uint64_t slot, addr; /* return address and its slot; addr 0: the end of the stack */
	uint64_t rbp; /* value of RBP for the code at `addr` */
	/* mask of the RBP bits on which the remaining walk depends: all or none */
	uint64_t rbp_bits;
	/* index of the first saved RBP that belongs to this frame or an outer frame */
	uint32_t first_saved;
};

/* A frame passed by a walk. `saved` is the address from which the frame's RBP was read, or `slot`
 * if RBP was not read. `word` is the cache word of the frame's step. */
struct unwind_walked {
	uint64_t slot, addr, rbp, saved, word;
};

struct unwind_trail {
	uint64_t begun; /* value of unwind_cache_begin(); if it has changed, the trail is invalid */
	uint64_t high; /* end of the stack */
	uint32_t first; /* index of the innermost mark, or UNWIND_MARKS */
	bool is_whole; /* the earlier walk found all marked frames and no others */
	struct unwind_note note; /* note on the stack that the marks describe */
	/* The last mark is a terminator and has no slot. Its rbp_bits are nonzero if the stack may
	 * have more frames. */
	struct unwind_mark marks[UNWIND_MARKS + 1];
	/* Words that must also be unchanged: all saved RBPs on which the remaining walk depends.
	 * Innermost first. */
	struct unwind_saved {
		uint64_t place, rbp;
	} saved[UNWIND_MARKS];
	struct unwind_walked *walked; /* frames of a walk that has not ended yet */
};

/* Initializes a trail. `walked` is an array of UNWIND_MARKS elements, which all trails of a thread
 * may share. */
void unwind_trail_init(struct unwind_trail *trail, struct unwind_walked *walked);

/* Returns true if a walk with the same `max` would find all marked frames and no others. */
bool unwind_is_same(const struct unwind_trail *trail, const struct unwind_start *start);

#define UNWIND_MISS UINT32_MAX

/*
 * Walks like unwind_stack(). Reads only memory in [slot, high). Returns UNWIND_MISS if an address
 * is not in the cache, or if its cached step does not fit the stack. `*stop` is then the place
 * where the walk stopped. Its count includes the address there, unless `skip` omits it. `stop` may
 * equal `start`. `trail` is the thread's trail, or NULL. A walk that misses does not change the
 * trail.
 */
uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start, struct unwind_start *stop, struct unwind_trail *trail);

/* Moves `*at` one step outwards, starting where a walk stopped. Returns false if the step does not
 * lead to a valid frame. */
bool unwind_step_on(struct unwind_start *at, uint32_t packed);

/* State of a walk that needs unwind data or the system's unwinder. Such walks run inside
 * unwind_guarded(). */
struct unwind_walk {
	/* Set by the caller. */
	uint64_t *frames;
	uint32_t max;
	const struct unwind_skip *skip;
	uint64_t slot; /* address of the first wanted return address, in the frame of a caller */
	uint64_t low, high; /* bounds of the stack */
	bool is_learning; /* adds learnt steps to the cache */
	struct unwind_start at; /* where a fast walk stopped */
	struct unwind_trail *trail; /* the thread's trail, or NULL */

	/* Results. `count` is correct at any time, even if an exception ends the walk. */
	volatile uint32_t count;
	bool differs; /* a frame differs from the frame found by the fast walk */
	bool is_done; /* set by unwind_data() if unwind data was sufficient */

	/* Progress, which the exception handler needs. */
	volatile uint64_t addr;
	volatile enum unwind_doing {
		UNWIND_LOOKING_UP, /* looks up the address, which may call the target */
		UNWIND_READING, /* reads the unwind data; a fault depends on the address only */
		UNWIND_STEPPING, /* makes a step that depends on the registers' contents */
		UNWIND_LEARNING,
	} doing;
};

/* Calls unwind_slow(), unwind_data() or unwind_region_data(). Returns false if an exception ended
 * the call; otherwise true. */
bool unwind_guarded(struct unwind_walk *walk, void (*how)(struct unwind_walk *));

/* Walks with the system's unwinder only. May raise an exception. */
void unwind_slow(struct unwind_walk *walk);

/*
 * Continues where a fast walk stopped at code that is never cached. Makes this one step with the
 * current unwind data, then continues with the cache. So only frames of code that was generated at
 * run time need a look-up.
 */
void unwind_data(struct unwind_walk *walk);

/* Walks with unwind data on a stack that is not the thread's own and may be too small for the
 * system's unwinder. Caches new steps. */
void unwind_region_data(struct unwind_walk *walk);

/*
 * Caches what an exception has shown. Unreadable unwind data in an image stays unreadable, so this
 * data is not tried again. Unwind data of code outside images may be replaced, so nothing is cached
 * for such code.
 */
void unwind_note_exception(const struct unwind_walk *walk);

#endif
