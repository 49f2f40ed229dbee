/*
 * Where fields of Windows' heap stack records lie, by the size of a pointer.
 */
#ifndef SNAPSHOT_OS_STACKS_LAYOUT_H
#define SNAPSHOT_OS_STACKS_LAYOUT_H

#include <stddef.h>

struct os_stacks_layout {
	unsigned bits;
	size_t old_header_bytes, header_bytes;
	size_t allocation_address, allocation_size, allocation_bytes;
	size_t group_bytes; /* eight frames */
};

#define OS_STACKS_INIT_BYTES ((size_t)12)
#define OS_STACKS_HEADER_VERSION 0 /* 16 bits */
#define OS_STACKS_HEADER_POINTER 2 /* 16 bits: bytes of a pointer */
#define OS_STACKS_GROUP 8

const struct os_stacks_layout *os_stacks_layout(unsigned bits);

#endif
