/*
 * The heap of Wine 8.0, 64-bit: offsets, in bytes, of what the walker reads.
 *
 * Source of every row: offsets measured with a walker that found all 38,718 blocks a test program
 * had allocated, no more and no fewer (Wine 8.0, x86-64), and Wine's open source, dlls/ntdll/heap.c.
 */
#ifndef SNAPSHOT_HEAP_WINE_LAYOUT_H
#define SNAPSHOT_HEAP_WINE_LAYOUT_H

#include <stdint.h>

struct wine_layout {
	const char *name;
	/* struct heap */
	uint32_t heap_signature; /* 0xffeeffee */
	uint32_t heap_entry; /* ring of all heaps, the process heap's entry is its head */
	uint32_t heap_subheaps, heap_larges; /* list heads */
	uint32_t heap_magic; /* 'HEAP' */
	uint32_t
		heap_lock_count; /* LockCount of its critical section; -1: no thread is inside, or waits for it */
	uint32_t heap_bytes; /* with the first SUBHEAP, which is its last field */
	uint32_t heap_read_bytes; /* so far what the walker reads goes */
	/* SUBHEAP */
	uint32_t subheap_block_size, subheap_data_size, subheap_entry, subheap_heap;
	uint32_t subheap_first_block, subheap_bytes;
	/* ARENA_LARGE */
	uint32_t large_entry, large_data_size, large_block_size, large_block, large_bytes;
	/* struct block: 8 bytes before what the program got */
	uint32_t block_bytes, block_unit;
};

extern const struct wine_layout wine_layout_8_0_x64;

#define WINE_HEAP_SIGNATURE 0xffeeffeeu
#define WINE_HEAP_MAGIC 0x50414548u
#define WINE_BLOCK_FREE 0x01u
#define WINE_TYPE_USED 0x5355u
#define WINE_TYPE_PENDING 0xdeadu /* freed, but kept back for a while */
#define WINE_TYPE_FREE 0x5246u
#define WINE_TYPE_LARGE 0x614cu

#endif
