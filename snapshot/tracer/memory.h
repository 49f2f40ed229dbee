/*
 * What the tracer's tables need from the system. The DLL takes it from ntdll (memory.c), the unit
 * tests from the C library. None of these allocates from a heap, and none is seen by the hooks.
 */
#ifndef SNAPSHOT_TRACER_MEMORY_H
#define SNAPSHOT_TRACER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory in a reserved range; committing a page again changes nothing. */
bool memory_commit(void *at, uint64_t bytes);

/* The range stays reserved. */
void memory_decommit(void *at, uint64_t bytes);

/* Waits for another thread, the longer the more tries there were before. False when waiting is of
 * no use any more: seconds have passed, or the process is ending and its other threads are gone. */
bool memory_wait(unsigned tries);

#endif
