/* Amounts of memory as people write them: "65536", "64K", "1.5M", "2 GiB" without the blank. */
#ifndef CORE_SIZE_H
#define CORE_SIZE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads len characters as bytes: decimal digits and a unit (K, M, G, T; KB and KiB are the same, in
 * either case), which stand for powers of 1024. With a unit there may be a fraction; what it leaves
 * of a byte is dropped. 0, or -ERR_USAGE: no such text, or more than 64 bits hold.
 */
int size_parse(const char *text, size_t len, uint64_t *bytes);

#endif
