/*
 * What Windows keeps about a process in its environment block (PEB): its heaps, its global flags, its
 * build. A 32-bit process on 64-bit Windows has two, each with heaps of its own.
 */
#ifndef SNAPSHOT_TARGET_NT_PROCESS_H
#define SNAPSHOT_TARGET_NT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"
#include "snapshot/target/target_memory.h"

#define HEAPS_MAX 65536 /* in one process; more is a broken list */
#define NT_MODULES_MAX 16384
#define NT_PATHS_BYTES ((size_t)1 << 24) /* of all modules; no more are read */
#define NT_FLAG_UST 0x1000u /* FLG_USER_STACK_TRACE_DB */
#define NT_FLAG_HPA 0x2000000u /* FLG_HEAP_PAGE_ALLOCS */

struct nt_process {
	unsigned bits;
	uint64_t peb;
	uint32_t global_flag; /* PEB.NtGlobalFlag */
	uint32_t os_major, os_minor, os_build; /* as the PEB says; 0 under Wine before its start */
	/* Each once: the process heap, the heaps of the PEB's list, those of the ring. Owned. */
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	/* The first fault of the list or the ring, after which heaps may be missing, and its address; or NULL. */
	const char *list_fault;
	uint64_t list_fault_addr;
};

/* Reads a PEB, and the heaps that the system lists. Returns 0; -ERR_GONE, -ERR_TARGET (not readable, or no heap yet),
 * -ERR_NOMEM. */
int nt_process_read(struct nt_process *process, struct memory *memory, uint64_t peb, unsigned bits,
	struct err *err);
void nt_process_release(struct nt_process *process);

/* Adds a heap that is not listed yet, which the caller checks; beyond HEAPS_MAX that is a fault. 0 or -ERR_NOMEM. */
int nt_process_add_heap(struct nt_process *process, uint64_t addr);

/* Records a fault of the list of heaps, a literal, unless there is one. */
void nt_process_list_fault(struct nt_process *process, uint64_t addr, const char *fault);

/* Adds the heaps of the ring (nt_ring.c) that are not listed yet. 0 or -ERR_NOMEM. */
int nt_ring_read(struct nt_process *process, struct memory *memory);

/*
 * Adds the modules of a process, or of one half of it, as its loader lists them: base, size, and a path, which is "?" and
 * the base where it cannot be read. Those that lie where there is one already are left out. 0; -ERR_READ: there is no list
 * yet, or it cannot be read to its end, since it is being changed or damaged; then none is added.
 */
int nt_modules_read(struct memory *memory, uint64_t peb, unsigned bits, struct snapshot *snapshot);

/*
 * A 32-bit process on a 64-bit system has a guest's environment blocks, of 32 bits, and a host's, of 64 bits.
 */

/* Reads the PEB that a TEB of that bitness names. Returns 0; -ERR_READ: that is not a TEB, or it cannot be read. */
int nt_peb_of_teb(struct target *target, unsigned bits, uint64_t teb, uint64_t *peb);

/* The 32-bit TEB of a thread by its 64-bit one; 0: it cannot be read, or names no address of 32 bits. */
uint64_t nt_guest_teb(struct target *target, uint64_t teb);

/* The 32-bit PEB where no thread leads to it. peb is the 64-bit one, asked the system's answer to the question for the
 * other one: an address, 1 or 0. Both PEBs must name the same program. 0: not found. */
uint64_t nt_guest_peb(struct target *target, uint64_t peb, uint64_t asked);

/* Returns peb, a 64-bit PEB, if it has a loader's list or cannot be read; 0 if there is no 64-bit half. Wine runs a
 * 32-bit program as a 32-bit process of Unix, and its 64-bit PEB stays empty. So it is before the process begins. */
uint64_t nt_host_peb(struct target *target, uint64_t peb);

/* The flags that the process, or the 64-bit part of a 32-bit one, was started with; those that cannot
 * be read are 0. */
uint32_t nt_global_flag(struct target *target);

/* What the process was started with, as UTF-8 and hostile; the caller frees it. NULL: it cannot be read. */
char *nt_command_line(struct target *target);

#endif
