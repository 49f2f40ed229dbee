/*
 * Where fields of the process environment block lie.
 */
#ifndef SNAPSHOT_PEB_LAYOUT_H
#define SNAPSHOT_PEB_LAYOUT_H

#include <stdint.h>

struct peb_layout {
	unsigned bits;
	uint16_t process_heap, global_flag, heap_count, heap_list;
	uint16_t os_major, os_minor, os_build;
	uint16_t ldr;
	uint16_t bytes; /* so many hold all of these */
};

/* The row for processes of that many bits. */
const struct peb_layout *peb_layout(unsigned bits);

#endif
