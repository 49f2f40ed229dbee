/*
 * Wine's heaps: offsets, in bytes, of the fields that the walker reads. Pointers and sizes in the
 * heaps have the program's bitness; nothing is encoded. All rows come from Wine's open source:
 * dlls/ntdll/heap.c of 8.0, 9.0, 10.0 and 11.x. The offsets were also verified on running processes
 * of Wine 8.0 and 10.0, x86 and x64: the walker found exactly the blocks that a test program had
 * allocated.
 */
#ifndef SNAPSHOT_HEAP_WINE_LAYOUT_H
#define SNAPSHOT_HEAP_WINE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct wine_layout {
	const char *name;
	unsigned bits;
	/* The heap has a low fragmentation heap, and struct block has the form that came with
	 * it. */
	bool has_groups;
	/* struct heap */
	uint32_t heap_signature; /* 0xffeeffee */
	uint32_t heap_entry; /* ring of all heaps; the process heap's entry is its head */
	uint32_t heap_subheaps, heap_larges; /* list heads */
	uint32_t heap_magic; /* 'HEAP' */
	uint32_t heap_lock_count; /* LockCount of the heap's critical section; -1: not held */
	uint32_t heap_lock_owner; /* OwningThread of the heap's critical section */
	uint32_t heap_bytes; /* size of struct heap; its last field is the first SUBHEAP */
	uint32_t heap_read_bytes; /* size of the part of struct heap that the walker reads */
	/* SUBHEAP */
	uint32_t subheap_block_size, subheap_data_size, subheap_entry, subheap_heap;
	uint32_t subheap_first_block, subheap_bytes;
	/* ARENA_LARGE */
	uint32_t large_entry, large_data_size, large_block_size, large_block, large_bytes;
	/* struct block: the 8 bytes before the program's bytes */
	uint32_t block_bytes, block_unit;
	/* struct group: the data of a block that has WINE_BLOCK_GROUP. A group contains
	 * WINE_GROUP_BLOCKS blocks of one size. */
	uint32_t group_first_block;
};

#define WINE_LAYOUT_COUNT 4
extern const struct wine_layout wine_layouts[WINE_LAYOUT_COUNT];

#define WINE_HEAP_SIGNATURE 0xffeeffeeu
#define WINE_HEAP_MAGIC 0x50414548u
#define WINE_GROUP_BLOCKS 31u
/* Number of bytes at the end of a subheap in which no block begins, on x86 and x64. */
#define WINE_BLOCKS_END 16u

/* Flags of a block. */
#define WINE_BLOCK_FREE 0x01u
#define WINE_BLOCK_GROUP 0x80u

/* Types of a block: 16 bits in 8.0, 8 bits since 9.0. */
#define WINE_TYPE_USED_8 0x5355u
#define WINE_TYPE_PENDING_8 0xdeadu /* freed, but retained for a while */
#define WINE_TYPE_FREE_8 0x5246u
#define WINE_TYPE_LARGE_8 0x614cu
#define WINE_TYPE_USED_9 'u'
#define WINE_TYPE_PENDING_9 'D'
#define WINE_TYPE_FREE_9 'F'
#define WINE_TYPE_LARGE_9 'L'

#endif
