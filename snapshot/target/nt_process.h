/*
 * Facts about a process from its environment block (PEB): its heaps, global flags, build and
 * modules. A 32-bit process on 64-bit Windows has two PEBs, each with its own heaps. */
#ifndef SNAPSHOT_TARGET_NT_PROCESS_H
#define SNAPSHOT_TARGET_NT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "snapshot/target/target.h"
#include "snapshot/target/target_memory.h"

#define HEAPS_MAX 65536 /* maximum per process; more indicate a broken list */
#define NT_MODULES_MAX 16384
#define NT_PATHS_BYTES ((size_t)1 << 24) /* limit for the paths of all modules */
#define NT_FLAG_UST 0x1000u /* FLG_USER_STACK_TRACE_DB */
#define NT_FLAG_HPA 0x2000000u /* FLG_HEAP_PAGE_ALLOCS */

struct nt_process {
	unsigned bits;
	uint64_t peb;
	uint32_t global_flag; /* PEB.NtGlobalFlag */
	uint32_t os_major, os_minor, os_build; /* 0 under Wine before the process has started */
	/* The process heap, the heaps in the PEB's list and the heaps in the ring, without
	 * duplicates. Owned. */
	uint64_t *heaps;
	size_t heap_count, heap_cap;
	/* First fault in the list or the ring, or NULL, and its address. Heaps after the fault may
	 * be missing. */
	const char *list_fault;
	uint64_t list_fault_addr;
};

/* Reads a PEB and the heaps in the system's lists. Returns 0, -ERR_GONE, -ERR_TARGET (unreadable,
 * or no heap yet), or -ERR_NOMEM. */
int nt_process_read(struct nt_process *process, struct memory *memory, uint64_t peb, unsigned bits,
	struct err *err);
void nt_process_release(struct nt_process *process);

/* Adds a heap. The caller must check that it has not been added yet. If there are already HEAPS_MAX
 * heaps, records a fault instead. Returns 0 or -ERR_NOMEM. */
int nt_process_add_heap(struct nt_process *process, uint64_t addr);

/* Records a fault (a literal) in the list of heaps, unless one is already recorded. */
void nt_process_list_fault(struct nt_process *process, uint64_t addr, const char *fault);

/* Adds the heaps of PEB.ProcessHeaps. The process heap always becomes the first, wherever it is in
 * the list. Returns 0 or -ERR_NOMEM. */
int nt_process_read_list(struct nt_process *process, struct memory *memory, uint64_t first,
	const unsigned char *peb);

/* Adds the heaps of the ring (nt_ring.c) that have not been added yet. Returns 0 or -ERR_NOMEM. */
int nt_ring_read(struct nt_process *process, struct memory *memory);

/*
 * Adds the modules of a process, or of its 32-bit or 64-bit half, from the loader's list: base,
 * size and path. An unreadable path is replaced by "?" and the base. Omits modules whose base is
 * already in `snapshot`. Returns 0. Returns -ERR_READ, and adds no module, if the end of the list
 * cannot be reached: there is no list yet, or the list is changing or damaged.
 */
int nt_modules_read(struct memory *memory, uint64_t peb, unsigned bits, struct snapshot *snapshot);

/*
 * Environment blocks of a 32-bit process on a 64-bit system: the 32-bit blocks of the guest and the
 * 64-bit blocks of the host. */

/* Reads the PEB's address from a TEB of this bitness. Returns 0, or -ERR_READ if the TEB is
 * unreadable or is not a TEB. */
int nt_peb_of_teb(struct target *target, unsigned bits, uint64_t teb, uint64_t *peb);

/* Returns the address of the 32-bit TEB of the thread that has this 64-bit TEB. Returns 0 if it is
 * unreadable or not a 32-bit address. */
uint64_t nt_guest_teb(struct target *target, uint64_t teb);

/* Returns the address of the 64-bit TEB of the thread that has this 32-bit TEB, or 0. */
uint64_t nt_host_teb(struct target *target, uint64_t teb);

/* Returns the address of the 32-bit PEB without using a thread, or 0. `peb` is the 64-bit PEB.
 * `asked` is the system's answer to a query for the 32-bit PEB: an address, 1 or 0. Both PEBs must
 * refer to the same program. */
uint64_t nt_guest_peb(struct target *target, uint64_t peb, uint64_t asked);

/*
 * Returns `peb`, a 64-bit PEB, if it has a loader's list or is unreadable. Otherwise returns 0,
 * because the process has no 64-bit half. There are two such cases. Wine runs a 32-bit program as a
 * 32-bit Unix process, whose 64-bit PEB remains empty. And the PEB is empty before the process
 * begins.
 */
uint64_t nt_host_peb(struct target *target, uint64_t peb);

/* Returns the global flags with which the process was started, including those of its 64-bit half.
 * Unreadable flags count as 0. */
uint32_t nt_global_flag(struct target *target);

/* Returns the command line as UTF-8, or NULL if it is unreadable. The string is untrusted; the
 * caller frees it. */
char *nt_command_line(struct target *target);

#endif
