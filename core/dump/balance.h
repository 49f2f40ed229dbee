/*
 * The balance of a process: where its memory is, and how many threads, handles and other objects it
 * has. hsnap records the balance in a dump; hdiff compares it. One table lists all figures. A
 * figure that the platform does not provide is unknown, not 0.
 */
#ifndef CORE_DUMP_BALANCE_H
#define CORE_DUMP_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/kv.h"

struct out;

enum balance_figure {
	/* The system's counters. */
	BALANCE_PRIVATE, /* private bytes */
	BALANCE_WORKING_SET,
	BALANCE_COMMIT_PEAK, /* highest number of private bytes so far */
	/* Parts of the private memory: committed bytes. */
	BALANCE_BLOCKS, /* requested bytes of live heap blocks */
	BALANCE_OVERHEAD, /* overhead of these blocks */
	BALANCE_FREE, /* committed memory of heaps that is not in live blocks */
	BALANCE_TRACER, /* tables of hsnap's tracer */
	BALANCE_STACKS, /* stacks of threads */
	BALANCE_VIRTUAL, /* other memory from VirtualAlloc */
	BALANCE_IMAGE_COPIES, /* written pages of images, which are no longer shared */
	BALANCE_VIEW_COPIES, /* written pages of copy-on-write views */
	BALANCE_SYSTEM, /* PEB, TEBs and other data of the system */
	/* Memory that is not private: committed bytes. */
	BALANCE_MAPPED, /* views of files and sections */
	BALANCE_IMAGES,
	/* Address space: reserved bytes, including committed ones. */
	BALANCE_STACKS_RESERVED,
	/* Numbers of objects. */
	BALANCE_THREADS,
	BALANCE_HANDLES,
	BALANCE_GDI,
	BALANCE_GDI_PEAK,
	BALANCE_USER,
	BALANCE_USER_PEAK,
	BALANCE_FIGURES
};

/* First and last part of the private memory. All parts are known if one of them is. */
#define BALANCE_FIRST_PART BALANCE_BLOCKS
#define BALANCE_LAST_PART BALANCE_SYSTEM

struct balance_handles {
	const char *type; /* "Event"; owned by the caller's arena */
	uint64_t count;
};

struct balance {
	uint32_t known; /* bit i: figure i is known */
	uint64_t figures[BALANCE_FIGURES];
	struct balance_handles *handles; /* by type, sorted by type; owned by the caller's arena */
	size_t handle_count;
};

/* Maximum number of types of handles. Windows has about 70 types of objects. */
#define BALANCE_HANDLES_MAX 256

struct balance_word {
	const char *key; /* in notes and JSON: "thread-stacks" */
	const char *words; /* for people: "thread stacks" */
	bool is_count; /* a number of objects; otherwise bytes */
};
extern const struct balance_word balance_words[BALANCE_FIGURES];

static inline bool balance_knows(const struct balance *balance, enum balance_figure figure)
{
	return balance->known >> figure & 1;
}

static inline void balance_set(struct balance *balance, enum balance_figure figure, uint64_t value)
{
	balance->known |= (uint32_t)1 << figure;
	balance->figures[figure] = value;
}

/* Returns the sum of all parts of the private memory, or 0 if they are unknown. */
uint64_t balance_parts_sum(const struct balance *balance);

/* Sorts handles by type and joins equal types. */
void balance_sort_handles(struct balance *balance);

/* Returns the number of handles of this type, or 0. */
uint64_t balance_handles_of(const struct balance *balance, const char *type);

/* Writes the notes "memory", "counts" and "handles", each with CR LF. Writes nothing if nothing is
 * known. */
void balance_write(struct out *out, const struct balance *balance);

/*
 * Reads one of these notes, and adds it to `balance`. `arena` holds the strings. Returns 0;
 * -ERR_BAD_LINE if the note is malformed; or 1 if the note is of another kind.
 */
int balance_note(
	struct balance *balance, struct arena *arena, const char *kind, const struct kv *kv);

#endif
