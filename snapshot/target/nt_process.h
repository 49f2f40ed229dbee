/*
 * Facts about a process in its environment block (PEB): its heaps, its global flags, its build, its
 * modules. A 32-bit process on 64-bit Windows has two PEBs, each with heaps of its own. */
#ifndef SNAPSHOT_TARGET_NT_PROCESS_H
#define SNAPSHOT_TARGET_NT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"
#include "snapshot/target/target_memory.h"

#define HEAPS_MAX 65536 /* per process; more means a broken list */
#define NT_MODULES_MAX 16384
#define NT_PATHS_BYTES ((size_t)1 << 24) /* limit for the paths of all modules */
#define NT_FLAG_UST 0x1000u /* FLG_USER_STACK_TRACE_DB */
#define NT_FLAG_HPA 0x2000000u /* FLG_HEAP_PAGE_ALLOCS */

struct nt_process {
	unsigned bits;
	uint64_t peb;
	uint32_t global_flag; /* PEB.NtGlobalFlag */
	uint32_t os_major, os_minor, os_build; /* 0 under Wine before the process has started */
	/* Process heap, heaps of the PEB's list and heaps of the ring, without duplicates.
	 * Owned. */
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	/* First fault of the list or the ring and its address, or NULL. Heaps after the fault may
	 * be missing. */
	const char *list_fault;
	uint64_t list_fault_addr;
};

/* Reads a PEB and the heaps that the system lists. Returns 0, -ERR_GONE, -ERR_TARGET (unreadable,
 * or no heap yet), or -ERR_NOMEM. */
int nt_process_read(struct nt_process *process, struct memory *memory, uint64_t peb, unsigned bits,
	struct err *err);
void nt_process_release(struct nt_process *process);

/* Adds a heap; the caller checks that it is not listed yet. Beyond HEAPS_MAX it records a fault
 * instead. Returns 0 or -ERR_NOMEM. */
int nt_process_add_heap(struct nt_process *process, uint64_t addr);

/* Records a fault (a literal) of the list of heaps, unless there is one already. */
void nt_process_list_fault(struct nt_process *process, uint64_t addr, const char *fault);

/* Adds the heaps of the ring (nt_ring.c) that are not listed yet. Returns 0 or -ERR_NOMEM. */
int nt_ring_read(struct nt_process *process, struct memory *memory);

/*
 * Adds the modules of a process, or of one of its halves, from the loader's list: base, size and
 * path. An unreadable path becomes "?" and the base. Modules at a base that snapshot already has
 * are left out. Returns 0, or -ERR_READ if there is no list yet or it cannot be read to its end,
 * because it is changing or damaged; then no module is added. */
int nt_modules_read(struct memory *memory, uint64_t peb, unsigned bits, struct snapshot *snapshot);

/*
 * Environment blocks of a 32-bit process on a 64-bit system: the guest's, of 32 bits, and the
 * host's, of 64 bits. */

/* Reads the PEB that a TEB of that bitness names. Returns 0, or -ERR_READ if it is not a TEB or
 * unreadable. */
int nt_peb_of_teb(struct target *target, unsigned bits, uint64_t teb, uint64_t *peb);

/* Returns the 32-bit TEB of the thread with this 64-bit TEB, or 0 if it is unreadable or not a
 * 32-bit address. */
uint64_t nt_guest_teb(struct target *target, uint64_t teb);

/* Returns the 32-bit PEB without the help of a thread, or 0. peb is the 64-bit one; asked is the
 * system's answer to a query for the other one: an address, 1 or 0. Both PEBs must name the same
 * program. */
uint64_t nt_guest_peb(struct target *target, uint64_t peb, uint64_t asked);

/* Returns peb, a 64-bit PEB, if it has a loader's list or is unreadable, or 0 if there is no 64-bit
 * half. Wine runs a 32-bit program as a 32-bit process of Unix, and its 64-bit PEB stays empty. It
 * is also empty before the process begins. */
uint64_t nt_host_peb(struct target *target, uint64_t peb);

/* Returns the flags with which the process was started, including those of its 64-bit half.
 * Unreadable flags count as 0. */
uint32_t nt_global_flag(struct target *target);

/* Returns the command line as UTF-8, or NULL if it is unreadable. Its content is untrusted. The
 * caller frees it. */
char *nt_command_line(struct target *target);

#endif
