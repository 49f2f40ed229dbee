/*
 * What the system says about this process's pages, without touching them.
 */
#ifndef SNAPSHOT_TRACER_PAGES_H
#define SNAPSHOT_TRACER_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES ((uint64_t)4096)

/* Addresses of whole pages. */
struct pages {
	uint64_t from, to;
};

/* The pages that bytes at base lie in; false when they are none, or not in any address space. */
bool pages_around(uint64_t base, uint64_t bytes, struct pages *pages);

/* The pages from an address on, at most to pages->to, that are alike. */
struct pages_kind {
	struct pages pages;
	uint64_t allocation;
	uint32_t state, type; /* MEM_RESERVE and so on; MEM_PRIVATE and so on */
};

/* False when the system does not say: beyond the address space. */
bool pages_ask(uint64_t addr, struct pages_kind *kind);

/* The image that an address lies in; false when it lies in none. */
bool pages_of_image(uint64_t addr, struct pages *image);

/* True when so many bytes can be read: another thread may take them away at any time, but who hands
 * such an address to the system would not have fared better. */
bool pages_can_read(const void *at, size_t bytes);

#endif
