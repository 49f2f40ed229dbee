/*
 * Walks of 32-bit stacks: rules, their sources, and their cache.
 *
 * A rule depends only on a return address. It states where the caller's frame begins (the CFA,
 * which is ESP before the call), and where the caller's EBP is. The return address is just below
 * the CFA. Rules come from .eh_frame, which gcc and clang put into images (unwind_rules_x86.c). In
 * an image without .eh_frame, all functions have the same rule: that of a frame addressed by EBP.
 *
 * One cache holds the rules for all threads, without locks (unwind_fast_x86.c). An entry is one
 * word: the tag, which contains the address bits that the index lacks, and the number of a rule.
 * There are few different rules. Each is stored once and never changes. Any entry may be
 * overwritten at any time. No entry is ever wrong, unless the code at its address changed.
 *
 * unwind_records_x86.c, unwind_rules_x86.c and unwind_fast_x86.c access only memory that the caller
 * passes, so they can be tested on any system.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_PARTS_X86_H
#define SNAPSHOT_TRACER_UNWIND_PARTS_X86_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

enum unwind32_kind {
	UNWIND32_STEP,
	UNWIND32_END, /* the frame is the outermost one, or its caller cannot be proven */
	UNWIND32_NO_CODE, /* not a return address: the walk ends before it */
};

enum unwind32_from {
	UNWIND32_ESP,
	UNWIND32_EBP,
	UNWIND32_CFA, /* only in ebp_from */
	UNWIND32_KEPT, /* only in ebp_from: the code leaves EBP unchanged */
};

struct unwind32_rule {
	int32_t cfa; /* bytes from the register `cfa_from` */
	/* bytes from `ebp_from` to the saved EBP of the caller; 0 if EBP is unchanged */
	int32_t ebp;
	uint8_t kind; /* enum unwind32_kind; unless it is UNWIND32_STEP, the other fields are 0 */
	uint8_t cfa_from; /* UNWIND32_ESP or UNWIND32_EBP */
	/* 1: the CFA is the word stored at the computed address; 0: the address itself */
	uint8_t is_indirect;
	uint8_t ebp_from; /* enum unwind32_from */
};

/* Rule of code that begins with push %ebp; mov %esp, %ebp. */
#define UNWIND32_FRAME                                                                             \
	{                                                                                          \
		.cfa = 8, .ebp = -8, .cfa_from = UNWIND32_EBP, .ebp_from = UNWIND32_CFA            \
	}

/* ---------------------------------------------------------------- rules of an image */

/* An .eh_frame section. `image` and `addr` are addresses in the target. The section can be read at
 * `bytes`. */
struct unwind32_section {
	uint32_t image, image_end;
	uint32_t addr, len;
	const uint8_t *bytes;
};

/* Returns true if a section begins like .eh_frame, with a readable CIE. */
bool unwind32_is_eh_frame(const struct unwind32_section *section);

/* Place of the rules of a function, used for searching. It does not depend on the load address of
 * the image. */
struct unwind32_place {
	uint32_t begin; /* first address of the function, from the image's base */
	uint32_t offset; /* offset of the function's FDE in the section */
};

/* Lists the image's functions in ascending order of address. Returns the number of functions. If
 * that number is greater than `room`, `places` must not be used. */
uint32_t unwind32_list(
	const struct unwind32_section *section, struct unwind32_place *places, uint32_t room);

#define UNWIND32_WORD_BYTES 4 /* bytes per word of 32-bit code */
#define UNWIND32_REGISTER_RETURN 8

/* Bytes of a section that remain to be read. A read beyond the end sets is_bad. */
struct unwind32_cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

/* Read from the cursor. unwind32_skip() returns a pointer to the next `len` bytes, or NULL.
 * unwind32_bytes() returns a number of `len` bytes. The last two functions return a LEB128
 * number. */
const uint8_t *unwind32_skip(struct unwind32_cursor *cursor, uint32_t len);
uint32_t unwind32_bytes(struct unwind32_cursor *cursor, uint32_t len);
uint32_t unwind32_uleb(struct unwind32_cursor *cursor);
int32_t unwind32_sleb(struct unwind32_cursor *cursor);

/* A record that several functions share. */
struct unwind32_cie {
	uint32_t offset; /* offset in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t encoding; /* encoding of addresses in FDEs */
	/* return addresses in these functions are addresses of interrupted instructions */
	bool is_signal;
	struct unwind32_cursor program;
};

/* The record of a function. */
struct unwind32_fde {
	uint32_t begin, end; /* bounds of the function, as addresses */
	struct unwind32_cursor program;
};

/* Finds the function that contains an address. `places` is the list of functions, or NULL to search
 * the whole section. */
bool unwind32_function(const struct unwind32_section *section, const struct unwind32_place *places,
	uint32_t count, uint32_t addr, struct unwind32_cie *cie, struct unwind32_fde *fde);

enum unwind32_answer {
	UNWIND32_FOUND,
	UNWIND32_NOT_COVERED, /* no rules for this code */
	UNWIND32_NOT_UNDERSTOOD, /* the code's rules are damaged, or of an unknown form */
};

/* Finds the rule of a return address, and the first address of its function. `places` is the result
 * of unwind32_list(), or NULL to search the whole section. */
enum unwind32_answer unwind32_read(const struct unwind32_section *section,
	const struct unwind32_place *places, uint32_t count, uint32_t addr,
	struct unwind32_rule *rule, uint32_t *begin);

/* ---------------------------------------------------------------- cached rules */

/*
 * Caching of a new rule: call unwind32_begin(), then find the rule in the image, then call
 * unwind32_add() with the value from unwind32_begin(). The rule is not cached if anything was
 * forgotten in between.
 */
uint32_t unwind32_begin(void);
void unwind32_add(uint32_t addr, const struct unwind32_rule *rule, uint32_t begun);

/* Returns the rule of a return address, or NULL. */
const struct unwind32_rule *unwind32_find(uint32_t addr);

void unwind32_forget(uint64_t from, uint64_t to);

/* ---------------------------------------------------------------- walks */

/* A stack. The byte at an address can be read at origin + address. */
struct unwind32_stack {
	uint32_t high; /* end of the stack */
	uintptr_t origin;
};

/* State in which a walk starts or has stopped. */
struct unwind32_start {
	/* address of a return address, aligned to 4; the walk reads only [slot, high) */
	uint32_t slot;
	uint32_t ebp; /* value of EBP for the code at the return address */
	uint32_t count; /* number of frames found so far */
};

/* An earlier walk of a thread: its frames, and each stack word on which the walk depended. If these
 * words are unchanged, a new walk gets the same result after the first unchanged frame. */
#define UNWIND32_MARKS 80
#define UNWIND32_WORDS 200

struct unwind32_mark {
	uint32_t slot, addr; /* return address and its slot */
	uint32_t ebp; /* value of EBP for the code at `addr` */
	/* mask of the EBP bits on which the remaining walk depends: all or none */
	uint32_t ebp_bits;
	uint32_t first_word; /* index of the first word on which the remaining walk depends */
};

/* A frame passed by a walk. */
struct unwind32_walked {
	uint32_t slot, addr, ebp;
	/* addresses of words read by the step from this frame; 0: none */
	uint32_t cfa_place, ebp_place;
	bool needs_ebp; /* the step from this frame depends on EBP */
	bool is_end; /* no step from this frame was possible */
};

struct unwind32_trail {
	uint32_t begun; /* value of unwind32_begin(); if it has changed, the trail is invalid */
	uint32_t high; /* end of the stack */
	uint32_t first; /* index of the innermost mark, or UNWIND32_MARKS */
	bool is_cut; /* the earlier walk ended because it reached its maximum of frames */
	bool is_whole; /* the earlier walk found all marked frames and no others */
	struct unwind_note note; /* note on the stack that the marks describe */
	/* Both arrays are filled from the end: the last mark is the outermost frame, and the last
	 * word is a word of that frame. */
	struct unwind32_mark marks[UNWIND32_MARKS];
	struct unwind32_word {
		uint32_t place, value;
	} words[UNWIND32_WORDS];
	struct unwind32_walked
		*walked; /* array of UNWIND32_MARKS elements, which all trails of a thread share */
};

void unwind32_trail_init(struct unwind32_trail *trail, struct unwind32_walked *walked);

/* Returns true if a walk with the same `max` and `skip` would find all marked frames and no
 * others. */
bool unwind32_is_same(const struct unwind32_trail *trail, const struct unwind32_stack *stack,
	const struct unwind32_start *start);

#define UNWIND32_MISS UINT32_MAX

/*
 * Walks like unwind_stack(). Returns UNWIND32_MISS if the rule of an address is not in the cache.
 * `*stop` is then the place where the walk stopped. Its count includes the address there, unless
 * `skip` omits it. `stop` may equal `start`. `trail` is the thread's trail, or NULL. A walk that
 * misses does not change the trail.
 */
uint32_t unwind32_walk(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind32_stack *stack, const struct unwind32_start *start,
	struct unwind32_start *stop, struct unwind32_trail *trail);

/* Moves `*at` one step outwards, starting where a walk stopped. Returns false if the rule does not
 * lead to a valid frame. */
bool unwind32_step_on(const struct unwind32_stack *stack, struct unwind32_start *at,
	const struct unwind32_rule *rule);

#endif
