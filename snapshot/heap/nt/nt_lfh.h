/*
 * The low fragmentation heap (LFH), front end of an NT heap: containers of blocks of one size.
 *
 * A container is an internal block of the back end. A subsegment describes it, and it leads to its
 * subsegment; subsegments lie in zones, which hang on the _LFH_HEAP. Containers are collected while
 * the back end is walked, and what is in them is added afterwards.
 */
#ifndef SNAPSHOT_HEAP_NT_LFH_H
#define SNAPSHOT_HEAP_NT_LFH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nt_heap;

/* A container (_HEAP_USERDATA_HEADER and what follows) that was found in the back end. */
struct nt_container {
	uint64_t addr, end;
	uint64_t subsegment;
	uint64_t room_bytes; /* from addr on, as it says; 0: its layout has none */
	uint32_t offsets; /* as they are stored; 0: its layout has none */
	uint32_t stride; /* from block to block, in bytes, by its subsegment; 0: none has it */
	uint32_t block_count;
	uint32_t free_count; /* by its subsegment, where the layout has that */
};

/* A container as a subsegment in a zone has it. */
struct nt_listed {
	uint64_t container, subsegment;
};

struct nt_lfh {
	uint64_t addr; /* _LFH_HEAP; 0: none, or not known */
	bool is_list_cut; /* zones or subsegments are not there */
	uint64_t
		*internals; /* where it and its zones lie, sorted: they may be blocks like others */
	size_t internal_count, internal_cap;
	struct nt_listed *listed; /* sorted */
	size_t listed_count, listed_cap;
	struct nt_container *containers;
	size_t container_count, container_cap;
	uint64_t taken_end; /* of the last container that was only in zones */
};

/* Each returns 0 or -ERR_NOMEM. */

/* Looks at the heap's front end: before its blocks are walked. */
int nt_lfh_open(struct nt_heap *heap);

/* An internal block: kept when it is a container. */
int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Adds the live blocks of all containers, after all of the back end was walked. */
int nt_lfh_walk(struct nt_heap *heap);

void nt_lfh_release(struct nt_lfh *lfh);

/* True when the LFH's own structures begin in addr..end. */
bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end);

/* True when addr..end is a container as the zones have it, whatever its own header says. */
bool nt_lfh_lists(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Holds the containers against what zones list, and lets subsegments describe them
 * (nt_lfh_zones.c). 0 or -ERR_NOMEM. */
int nt_lfh_match(struct nt_heap *heap);

/* Takes over what the subsegment that a container points to says of it, when that has no container
 * any more. False: it has another one, or there is none. */
bool nt_lfh_last_described(struct nt_heap *heap, struct nt_container *container);

/* What the offsets of a container say. */
struct nt_offsets {
	uint32_t first, stride; /* of the first block, from block to block; in bytes */
};

/* Takes offsets apart, with the key where they are coded. */
struct nt_offsets nt_offsets_decode(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t key);

/* RtlpLFHKey, found without symbols and verified (nt_lfh_key.c). False: none fits the containers. */
bool nt_lfh_key_find(struct nt_heap *heap, uint32_t *key);

/* Where a container's first block lies. */
uint32_t nt_first_offset(const struct nt_heap *heap, const struct nt_container *container);

#endif
