/* One dump as hdiff sees it, and what it lacks. */
#ifndef DIFF_READ_DUMP_SUMS_H
#define DIFF_READ_DUMP_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/dump/source.h"
#include "core/dump/stackset.h"
#include "symbolize/symbolize.h"

/*
 * One dump as hdiff sees it: what each of its stacks adds up to.
 *
 * Sums are made while the file streams by; blocks are kept only where they are asked for. struct dump_sums owns all it points
 * to and sums_release() frees it at once. The numbers of stacks, heaps and texts and the order of
 * cells may differ from one reading of a file to the next; what they stand for does not.
 */

#define WARNINGS_MAX 20 /* that are kept */

#define CELL_NONE UINT32_MAX

/* What the blocks of one stack in one heap add up to. */
struct stack_total {
	uint32_t stack; /* index into stacks; STACK_NONE: no stack is known for these blocks */
	uint32_t heap : 31; /* index into heaps */
	/* The entries name an id that has several stacks, and give none: stack is the first of them
	 * (the others follow by same_id). */
	uint32_t is_bare : 1;
	struct block_totals sums;
};

struct listed_block {
	uint64_t addr, requested_bytes;
	uint32_t cell; /* it counts to, by number; or CELL_NONE. While it is read: its stack, */
	uint32_t heap; /* and twice its heap, and 1 if that is_bare */
};

/* A malformed line that was passed over. */
struct left_out {
	const char *place; /* "file:line"; NULL: the warning is another one */
	const char *why;
};

/* What became of the allocations of a recording between two moments of it. */
enum block_fate {
	FATE_LIVE, /* no such window: what is there at a moment */
	FATE_AIFO, /* allocated inside, freed outside, later or never: they add to what is in use */
	FATE_AIFI, /* allocated and freed inside: transient */
	FATE_AOFI, /* there before, freed inside */
	FATE_AOFO, /* there before and after */
	FATE_AI, /* allocated inside: AIFO and AIFI */
	FATE_ALL, /* all that were there at any moment of it */
};
#define BLOCK_FATES 7

/* "live", "aifo", ... */
const char *block_fate_name(enum block_fate fate);

/* What is read of a recording. Moments are as recording_position() takes them. */
struct recording_part {
	enum block_fate fate;
	const char *moment; /* of FATE_LIVE; NULL: its end */
	const char *from, *to; /* of others; NULL: start and end */
	bool wants_blocks; /* each by itself: of a dump, and of FATE_LIVE if it has their addresses */
	bool is_asked; /* of anything but a recording this cannot be had */
};

/* The first bytes of a block. */
struct dump_content {
	const char *stack; /* its id */
	uint64_t addr, requested_bytes;
	unsigned bits; /* of its process */
	uint32_t len;
	const unsigned char *bytes;
	size_t pointer_at, pointer_count; /* in pointers, by offset */
};

/* A word of it that is an address in another block. */
struct dump_pointer {
	uint64_t offset, to, requested_bytes;
	const char *stack;
};

/* Why time_ms is known to be wrong. */
enum date_doubt {
	DATE_PLAUSIBLE,
	DATE_EARLY, /* before its process began */
	DATE_AHEAD, /* more than a day after the clock of this machine */
	DATE_UNKNOWN, /* it lacks the clock by which others of its process are dated wrongly */
};

struct dump_sums {
	struct arena arena;
	const char *file; /* of a recording: what is opened; path is its name */
	const char *source; /* who saw its events, if it was not our tracer */
	const char *path; /* as it was given */
	struct stackset stacks;
	/* By stack: its number among those that dumps have in common (diff/read/stack_store.h), the same
	 * for the same id with the same frames; STACK_NONE: none. NULL: they have nothing in common. */
	uint32_t *shared;
	/* Where these numbers lead to, when that is all there is: stacks has a count and no stacks, and
	 * same_id, which is this dump's own, is here; NULL: each id has one stack. common is NULL: stacks has
	 * all of it. */
	const struct stack *const *common;
	uint32_t *same_id;
	/* One for each (stack, heap, is_bare) that occurs; or NULL, and they are packed: diff/read/stack_store.h
	 * shows them either way. */
	struct stack_total *cells;
	unsigned char *packed_cells;
	size_t cell_count;
	uint64_t *heaps; /* addresses; 0 for entries before any heading */
	unsigned char *
		reaches; /* of each of them, enum block_reach: what leads to its blocks; NULL: nobody looked */
	bool has_reach; /* somebody did */
	size_t heap_count;
	/* Of stacks that is_named: text number n is what the dump gives for a frame. */
	const char **texts;
	size_t text_count;
	/* Of all blocks but those of reserved, which are not memory; together they and their overhead fit
	 * into an int64_t. */
	struct block_totals total;
	struct block_totals reserved; /* of address space: under the heading HEAP_RESERVED */
	uint64_t
		sample_bytes; /* all figures are estimates, one in so many bytes was recorded; or 0 */
	/* Its tracer was attached while it ran; so much is from before, without a stack. */
	bool is_attached;
	struct block_totals before;
	struct module *modules; /* sorted by base */
	size_t module_count;
	struct arena module_texts; /* that they point to */
	/* They are the store's (diff/read/stack_store.h): other dumps with equal ones have the same. */
	bool modules_are_shared;
	struct symbol_names *names; /* that the dump carries; NULL: none */
	uint32_t pid, parent_pid; /* 0 when not recorded, as the next three */
	int64_t time_ms, start_ms;
	int64_t clock_ms; /* as in struct dump_head; dumps_settle_clocks() corrects time_ms by it */
	enum date_doubt date_doubt;
	const char *image, *host; /* or NULL */
	/* Of a recording alone: */
	const char *os;
	unsigned bits;
	/* What UMDH's banner says, 0 when there is none. The time is that of some clock on a wall, to the
	 * minute, as if it were UTC: good for what lies between two of them. */
	uint32_t banner_pid;
	int64_t banner_time_ms;
	bool has_wall_time; /* time_ms is banner_time_ms, see sums_take_banner() */
	/* Of a recording: its position and 1; 0: it is a dump. What time_ms is in it, and where the window of
	 * a fate begins. */
	uint64_t position;
	enum block_fate fate;
	uint64_t from_position, from_ms, to_ms;
	/* Of a fate: by kind of the recording the cell it counts to, also with nothing; CELL_NONE: of those that were neither
	 * there nor allocated in the window. */
	uint32_t *kind_cells;
	size_t kind_count;
	/* By module of the recording: where it is among modules, all of which a window has. */
	uint64_t *module_bases;
	/* Of a recording, when they were wanted and it has their addresses: those whose stack is known; else NULL. */
	struct block *blocks;
	size_t block_count;
	/* Of a dump, asked for before it is read: its blocks one by one. */
	bool wants_listed;
	bool has_unlisted; /* it has entries that are sums */
	struct listed_block *listed;
	size_t listed_count;
	struct dump_content *contents; /* by stack */
	size_t content_count;
	struct dump_pointer *pointers;
	size_t pointer_count;
	/* The first WARNINGS_MAX: what the dump lacks, a sentence each; NULL: nothing. */
	const char **warnings;
	size_t warning_count; /* of all */
	struct left_out *left_out; /* what warning number n is on */
	size_t skip_count; /* malformed lines that were passed over; a warning tells of each */
	bool is_cut; /* the end of the file is missing */
	bool is_incomplete; /* hsnap knew that something was missing in it */
	/* Made of printed comparisons (diff/chain.c), which do not tell the overhead of their rows; and their total
	 * lines count stacks of which there are no rows: total has more than the cells. */
	bool is_printed, lacks_rows;
};

void sums_init(struct dump_sums *sums);
void sums_release(struct dump_sums *sums);

/* A stack by its number in this dump. */
static inline const struct stack *sums_stack(const struct dump_sums *sums, uint32_t stack)
{
	return sums->common ? &(*sums->common)[sums->shared[stack]] : &sums->stacks.stacks[stack];
}

/* The number of the next stack under its id in this dump, or STACK_NONE. */
static inline uint32_t sums_same_id(const struct dump_sums *sums, uint32_t stack)
{
	if (sums->common)
		return sums->same_id ? sums->same_id[stack] : STACK_NONE;
	return sums->stacks.stacks[stack].same_id;
}

/* Takes pid and time from UMDH's banner where the dump does not tell them better. */
void sums_take_banner(struct dump_sums *sums);

/*
 * Reads a dump into sums, which was just initialised; the caller releases it in any case. path is
 * what the user calls it. Returns 0 or an error of dump_scan(); -ERR_BAD_LINE also when the
 * blocks add up to more than any address space holds. After -ERR_CUT sums holds what is there and
 * can be used. Several threads read a large file.
 */
int sums_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err);

/* The same with so many threads; 0: as many as are good for it. */
int sums_read_with(struct dump_sums *sums, const char *path, struct source *source,
	unsigned threads, struct err *err);

/*
 * The same of a part of the recording in file. 0; -ERR_USAGE: the window ends before it begins; or an error of
 * core/record.
 */
int sums_read_recording(struct dump_sums *sums, const char *path, const char *file,
	const struct recording_part *part, struct err *err);

struct record_facts;
struct record_kind;
struct record_stack;

/* The id that a stack of a recording has in its sums, which is its number and 1; 0: no frame of it is known. */
uint32_t record_stack_id(const struct record_facts *facts, uint32_t stack);

/* Fills frames[], one for each of the stack, with its return addresses by the modules of sums. */
void record_stack_addrs(
	const struct dump_sums *sums, const struct record_stack *stack, uint64_t *frames);

/* The heap in whose sums a kind is, by address or the heading, which is its memory; 0 when it is not known. */
uint64_t record_kind_heap(const struct record_facts *facts, const struct record_kind *kind);

/* What the dumps of a series lack: most often all of them the same, which is told once. */

struct dump_warning {
	const struct dump_sums *first; /* that has it */
	size_t number; /* among its warnings; WARNINGS_MAX: of it no more than how many it is, */
	size_t more; /* in all dumps together */
	size_t dump_count; /* that have it */
};

struct dump_warnings {
	struct dump_warning *items; /* in the order of the dumps */
	size_t count, cap;
};

/* Gathers those of dumps[0..count), which it borrows, each text once. */
void dump_warnings_gather(
	struct dump_warnings *warnings, const struct dump_sums *dumps, size_t count);
void dump_warnings_release(struct dump_warnings *warnings);

/* Appends its text, and of how many dumps it is when it is not of the first alone. */
void dump_warning_words(struct buf *words, const struct dump_warning *warning);

#endif
