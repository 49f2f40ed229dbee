/*
 * A recording that is read into sums, in three layers: its modules and stacks
 * (read_record_stacks.c); the sums of its blocks (read_record_sums.c); its moments and facts
 * (read_record.c).
 */
#ifndef DIFF_READ_READ_RECORD_H
#define DIFF_READ_READ_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/record/record.h"
#include "diff/read/dump_sums.h"

struct placing;

struct record_reader {
	struct dump_sums *sums;
	const struct record_facts *facts;
	struct placing *places; /* indexed by module */
	/* indexed by stack: the stack's number in the sums; STACK_NONE: not added yet */
	uint32_t *stacks;
	/* `heaps` maps a heap's address to its number, `cells` maps a heap and a stack to a cell */
	struct u64map heaps, cells;
	size_t heap_cap, cell_cap;
	/* sum of all blocks added so far; each number fits into an int64_t */
	struct block_totals all;
	bool *wanted_threads; /* indexed by thread; NULL: kinds are not divided by thread */
};

/* Chooses where modules are at a time: loaded modules at their bases, others where they overlap no
 * other. */
void record_reader_place(struct record_reader *reader, uint64_t time_ms);

/* Returns the number of a stack of the recording in the sums. Adds the stack if it is new. */
uint32_t record_reader_stack(struct record_reader *reader, uint32_t number);

/* Copies the modules that stacks use. */
void record_reader_copy_modules(struct record_reader *reader);

/* Returns a copy of a text, or NULL. */
const char *record_reader_text(struct arena *arena, const char *text);

/* Count the blocks of the window in the sums: those with its fate; those that are live at a position;
 * those with its fate, divided by thread. */
int record_reader_fates(struct record_reader *reader, struct recording *recording, struct err *err);
int record_reader_live(struct record_reader *reader, struct recording *recording, uint64_t position,
	struct err *err);
int record_reader_threads(struct record_reader *reader, struct recording *recording,
	const struct recording_part *part, struct err *err);

/* Reads the single blocks that are live at a position. Not possible for a sample, in which each
 * block also represents blocks whose addresses are unknown. */
int record_reader_blocks(struct record_reader *reader, struct recording *recording,
	uint64_t position, struct err *err);

#endif
