/*
 * Walks of 32-bit stacks: rules, their sources, and their cache.
 *
 * A rule is a fact of a return address: where the caller's frame begins (the CFA: ESP before the
 * call), and where the caller's EBP is. The return address is just below the CFA. Rules come from
 * .eh_frame, which images by gcc and clang have in memory (unwind_rules_x86.c). An image without
 * .eh_frame has the rule of a frame at EBP.
 *
 * A cache for all threads keeps them, without locks (unwind_fast_x86.c). An entry is one word: the
 * part of the address that the index lacks, and the number of a rule. There are few different
 * rules: each is stored once, and never changes. An entry may be overwritten by another at any
 * time. No entry is ever wrong, unless the code at its address changed.
 *
 * Both files touch no memory except what they are given, so that they can be tested anywhere.
 */
#ifndef SNAPSHOT_TRACER_UNWIND_PARTS_X86_H
#define SNAPSHOT_TRACER_UNWIND_PARTS_X86_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/tracer/unwind.h"

enum unwind32_kind {
	UNWIND32_STEP,
	UNWIND32_END, /* the frame is the outermost one, or the way from it cannot be proven */
	UNWIND32_NO_CODE, /* not a return address: the stack ends before it */
};

enum unwind32_from {
	UNWIND32_ESP,
	UNWIND32_EBP,
	UNWIND32_CFA, /* for EBP only */
	UNWIND32_KEPT, /* for EBP only: the code leaves it as it is */
};

struct unwind32_rule {
	int32_t cfa; /* bytes from a register */
	int32_t ebp; /* bytes from ebp_from to where the caller's EBP is saved; 0 if it is kept */
	uint8_t kind; /* enum unwind32_kind; the other fields are 0 if it is not UNWIND32_STEP */
	uint8_t cfa_from; /* UNWIND32_ESP or UNWIND32_EBP */
	uint8_t is_indirect; /* 1: the CFA is the word at that place, not the place */
	uint8_t ebp_from; /* enum unwind32_from */
};

/* Code that begins with push %ebp; mov %esp, %ebp. */
#define UNWIND32_FRAME                                                                             \
	{                                                                                          \
		.cfa = 8, .ebp = -8, .cfa_from = UNWIND32_EBP, .ebp_from = UNWIND32_CFA            \
	}

/* ---------------------------------------------------------------- rules of an image */

/* An .eh_frame section, where it and its image lie in the target, and where it can be read. */
struct unwind32_section {
	uint32_t image, image_end;
	uint32_t addr, len;
	const uint8_t *bytes;
};

/* Returns true if a section begins as .eh_frame does: with a CIE that can be read. */
bool unwind32_is_eh_frame(const struct unwind32_section *section);

/* Place of a function's rules, for a search. It is valid wherever the image is loaded. */
struct unwind32_place {
	uint32_t begin; /* of the function, from the image's base */
	uint32_t offset; /* of its FDE in the section */
};

/*
 * Lists the image's functions in the order of their addresses, and returns their number. If that is
 * more than room, places is not usable.
 */
uint32_t unwind32_list(
	const struct unwind32_section *section, struct unwind32_place *places, uint32_t room);

enum unwind32_answer {
	UNWIND32_FOUND,
	UNWIND32_NOT_COVERED, /* no rules for this code */
	UNWIND32_NOT_UNDERSTOOD, /* its rules are damaged, or of a form that is not known */
};

/*
 * Finds the rule of a return address, and the beginning of the function around it. places: from
 * unwind32_list(), or NULL to search the whole section.
 */
enum unwind32_answer unwind32_read(const struct unwind32_section *section,
	const struct unwind32_place *places, uint32_t count, uint32_t addr,
	struct unwind32_rule *rule, uint32_t *begin);

/* ---------------------------------------------------------------- rules that are kept */

/*
 * Learning: call unwind32_begin() first, then ask the image, then call unwind32_put() with the
 * value of unwind32_begin(). A rule is not kept if something was forgotten meanwhile.
 */
uint32_t unwind32_begin(void);
void unwind32_put(uint32_t addr, const struct unwind32_rule *rule, uint32_t begun);

/* Returns the rule of a return address, or NULL. */
const struct unwind32_rule *unwind32_find(uint32_t addr);

void unwind32_forget(uint64_t from, uint64_t to);

/* ---------------------------------------------------------------- walks */

/* A stack, and where it can be read: the byte at an address is at origin + address. */
struct unwind32_stack {
	uint32_t high; /* its end */
	uintptr_t origin;
};

/* State in which a walk starts or has stopped. */
struct unwind32_start {
	uint32_t slot; /* place of a return address, aligned to 4; the walk reads in [slot, high) */
	uint32_t ebp; /* as the code there has it */
	uint32_t count; /* number of frames found before */
};

/*
 * An earlier walk of a thread: its frames, and each word of the stack that it depended on. As long
 * as these words are unchanged, so is the result of a walk from the first unchanged frame on.
 */
#define UNWIND32_MARKS 80
#define UNWIND32_WORDS 200

struct unwind32_mark {
	uint32_t slot, addr; /* a return address: place and value */
	uint32_t ebp; /* as the code at addr has it */
	uint32_t ebp_bits; /* bits that the way outwards depends on: all, or none */
	uint32_t first_word; /* index of the first word that the way outwards depends on */
};

/* Frame that a walk passed. */
struct unwind32_walked {
	uint32_t slot, addr, ebp;
	uint32_t cfa_place, ebp_place; /* words that the step from it read; 0: none */
	bool needs_ebp; /* the step from it depends on its EBP */
	bool is_end; /* there was no step from it */
};

struct unwind32_trail {
	uint32_t begun; /* unwind32_begin(): the trail holds until something is forgotten */
	uint32_t high; /* of the stack */
	uint32_t first; /* index of the innermost mark, or UNWIND32_MARKS */
	bool is_cut; /* that walk ended because it had reached its maximum of frames */
	bool is_whole; /* that walk found all marked frames, and no others */
	struct unwind_note note; /* note on that stack */
	/* The outermost frame and the last word are at the end. */
	struct unwind32_mark marks[UNWIND32_MARKS];
	struct unwind32_word {
		uint32_t place, value;
	} words[UNWIND32_WORDS];
	struct unwind32_walked
		*walked; /* room for UNWIND32_MARKS, which all trails of a thread share */
};

void unwind32_trail_init(struct unwind32_trail *trail, struct unwind32_walked *walked);

/* Returns true if a walk with the same max and skip would find all marked frames and no others. */
bool unwind32_is_same(const struct unwind32_trail *trail, const struct unwind32_stack *stack,
	const struct unwind32_start *start);

#define UNWIND32_MISS UINT32_MAX

/*
 * Walks like unwind_stack(). Returns UNWIND32_MISS if the rule of an address is not known: *stop,
 * which may be *start, is the place; its count includes the address, unless that is left out. trail
 * is the thread's, or NULL; a walk that misses leaves it as it is.
 */
uint32_t unwind32_walk(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind32_stack *stack, const struct unwind32_start *start,
	struct unwind32_start *stop, struct unwind32_trail *trail);

/* Makes a step from where a walk stopped. Returns false if it leads nowhere. */
bool unwind32_step_on(const struct unwind32_stack *stack, struct unwind32_start *at,
	const struct unwind32_rule *rule);

#endif
