/*
 * The memory that the tracer keeps in the target and hsnap reads from outside.
 *
 * struct tracer_area is the DLL's data export TRACER_EXPORT. Everything in it and behind it can be
 * read at any instant, also while every thread of the target is suspended wherever it stood:
 *  - A block entry is valid when its addr is not 0; addr is written last and cleared first.
 *    An entry that is being moved is there twice; it is never missing.
 *  - A stack record is complete before its id is handed out, and never changes after that.
 * Integers are little-endian and laid out alike for 32- and 64-bit targets.
 */
#ifndef SNAPSHOT_TRACER_SHARED_H
#define SNAPSHOT_TRACER_SHARED_H

#include <stdint.h>

#define TRACER_DLL "hsnap-tracer64.dll"
#define TRACER_EXPORT "hsnap_tracer"
#define TRACER_MAGIC 0x315243415254u /* "TRACR1" */
#define TRACER_VERSION 1

#define TRACER_DEPTH_MAX 64 /* frames kept of one stack */
#define TRACER_SHARDS 64

enum tracer_state {
	TRACER_OFF,
	TRACER_ON,
	TRACER_FAILED, /* nothing is hooked; tracer_area.failure says at which step */
};

/* Steps of setting up, for messages. */
enum tracer_failure {
	TRACER_OK,
	TRACER_NO_MEMORY,
	TRACER_NO_TLS_SLOT,
	TRACER_NO_EXPORT,
	TRACER_NOT_PATCHABLE,
};

/* One live block. */
struct tracer_block {
	uint64_t addr; /* 0: free entry */
	uint64_t size_bytes; /* requested */
	uint64_t heap;
	uint32_t stack; /* id; 0: its stack found no room */
	uint32_t unused;
};

/* A part of the live-block table, chosen by the block's address. */
struct tracer_shard {
	/* Address of an array of struct tracer_block, aligned to 64 KiB; its low 6 bits are the
	 * binary logarithm of the number of entries. 0: empty yet. */
	uint64_t table;
	uint32_t lock;
	uint32_t count;
	uint32_t broken; /* its lock was never given back: what it holds is old */
	uint32_t unused;
	uint64_t padding[5]; /* a cache line each */
};

/* One stack. Its id is its offset in the stack area divided by 8. */
struct tracer_stack {
	uint32_t next; /* id of the next record with the same bucket, or 0 */
	uint32_t hash;
	uint32_t depth;
	uint32_t unused;
	uint64_t frames[]; /* return addresses, innermost first */
};

struct tracer_area {
	uint64_t magic;
	uint32_t version, area_bytes;
	uint32_t state, failure;
	uint64_t stacks; /* address of the stack area */
	uint64_t stacks_top; /* bytes used of it */
	uint64_t stacks_committed, stacks_limit; /* bytes */
	uint64_t stack_buckets; /* address; the tracer's own business */
	uint64_t dropped_blocks; /* not recorded: no memory, or a broken shard */
	uint64_t dropped_stacks; /* blocks recorded with stack 0 */
	/* Set by hsnap before the program starts: handles of the target's process, or 0. At exit
	 * the target sets exit_reached and waits for exit_continue or the end of hsnap_process. */
	uint64_t exit_reached, exit_continue, hsnap_process;
	struct tracer_shard shards[TRACER_SHARDS];
};

#endif
