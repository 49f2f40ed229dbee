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
 * A second table contains runs, sequences of steps that earlier walks made. Walks follow runs as far
 * as the stack agrees with them, and look up only the other addresses.
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

/* The cache. An entry is tag << 32 | packed step, or 0 if it is empty. The entries of one set are
 * adjacent. */
extern uint64_t unwind_cache[UNWIND_SETS * UNWIND_WAYS];

/*
 * A run: the steps from a return address outwards, as an earlier walk made them. A walk follows the
 * run from that address while the stack contains the same addresses. So it looks up few addresses,
 * and need not wait until a word of the stack is loaded before it loads the next one.
 *
 * key: the address, and a version that changes whenever the run does (and repeats after 2^17
 * changes). While a thread stores the run, the address is UNWIND_RUN_BUSY. The other words are a step
 * each, or 0: the address that the step leads to; the place of the caller's RBP; and the CFA
 * relative to RSP, or to RBP. Both distances are in units of 8 bytes.
 */
#define UNWIND_RUN_BITS 17 /* bits below the address */
#define UNWIND_RUN_BUSY ((uint64_t)1) /* the address in the key of a run that is being stored */
#define UNWIND_RUN_SIZE_BITS 10
#define UNWIND_RUN_SIZE_MAX 1023u
#define UNWIND_RUN_RBP_MAX 127u
#define UNWIND_RUN_RBP_KEPT 0u
/* the CFA is relative to RBP, and the caller's RBP is saved 16 bytes below the CFA */
#define UNWIND_RUN_FROM_RBP 1u
/* the field is 7 minus the distance of the saved RBP from the CFA, in words */
#define UNWIND_RUN_RBP_ZERO 7
#define UNWIND_RUN_MAX 7
#define UNWIND_RUNS_LOG2 14
#define UNWIND_RUNS ((uint64_t)1 << UNWIND_RUNS_LOG2)

struct unwind_run {
	uint64_t key;
	uint64_t words[UNWIND_RUN_MAX];
};

extern struct unwind_run unwind_runs[UNWIND_RUNS];

/* Returns the only place where the run of an address may be. */
static inline struct unwind_run *unwind_run_of(uint64_t addr)
{
	return &unwind_runs[addr * 0x9e3779b97f4a7c15u >> (64 - UNWIND_RUNS_LOG2)];
}

/* Empties all runs. The caller has changed unwind_cache_begin() before. */
void unwind_runs_forget(void);

/* Steps of a walk, which become a run. `addr` is 0 while none are recorded. */
struct unwind_learner {
	uint64_t addr, begun;
	uint32_t count;
	uint64_t words[UNWIND_RUN_MAX];
};

/* Begins a run at a return address. */
void unwind_learner_begin(struct unwind_learner *learner, uint64_t addr);

/* Adds a step that led to `addr`. Ends the run if it is full or cannot contain the step. */
void unwind_learner_step(struct unwind_learner *learner, uint32_t packed, uint64_t addr);

void unwind_learner_end(struct unwind_learner *learner);

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

	return __atomic_load_n(&unwind_cache[first], __ATOMIC_RELAXED) >> 32 == tag ? first :
										      first + 1;
}

/* Returns the packed step of a return address, or UNWIND_UNKNOWN. */
static inline uint32_t unwind_cache_find(uint64_t addr)
{
	uint64_t word = __atomic_load_n(&unwind_cache[unwind_cache_place(addr)], __ATOMIC_RELAXED);

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
extern uint64_t unwind_forgets; /* number of times that entries were forgotten */

static inline uint64_t unwind_cache_begin(void)
{
	return __atomic_load_n(&unwind_forgets, __ATOMIC_SEQ_CST);
}

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

/* An earlier walk of a thread. If all words that it read are unchanged, a new walk would find the
 * same stack. */
#define UNWIND_TRAIL_MAX 65 /* TRACER_DEPTH_MAX addresses, and the word 0 that ends a stack */

struct unwind_trail {
	uint64_t begun; /* value of unwind_cache_begin(); if it has changed, the trail is invalid */
	uint64_t high; /* end of the stack */
	uint64_t rbp; /* RBP at the start */
	uint32_t count; /* number of words that must be unchanged; 0: no walk is stored */
	uint32_t saved_count;
	uint32_t differed; /* index of the last word that was found changed */
	bool needs_rbp; /* the walk depends on `rbp` */
	bool is_full; /* there was no room in saved[] */
	struct unwind_note note; /* note on the stack that the walk found */
	/* return addresses and their slots; the last address may be the 0 that ended the walk */
	uint64_t slots[UNWIND_TRAIL_MAX], addrs[UNWIND_TRAIL_MAX];
	/* saved RBPs on which the walk depends */
	struct unwind_saved {
		const uint64_t *place;
		uint64_t rbp;
	} saved[UNWIND_TRAIL_MAX];
};

/* Returns true if a walk with the same `max` would find the stack that the trail describes. */
bool unwind_is_same(struct unwind_trail *trail, const struct unwind_start *start);

#define UNWIND_MISS UINT32_MAX

/*
 * Walks like unwind_stack(). Reads only memory in [slot, high). Returns UNWIND_MISS if an address is
 * not in the cache, or if its cached step does not fit the stack. `*stop` is then the place where
 * the walk stopped. Its count includes the address there, unless `skip` omits it. `stop` may equal
 * `start`. `trail` is NULL, or the trail in which to store the walk. It remains empty if the walk
 * misses, ends before an address that is not code, or continues another walk, if `skip` omits a
 * frame, and if `max` is not below UNWIND_TRAIL_MAX.
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
